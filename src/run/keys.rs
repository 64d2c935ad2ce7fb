//! The keys that ralph itself must know among all that is typed into an agent's screen: Ctrl-C and Ctrl-\, as a
//! terminal sends them by itself, and as it does when the agent has asked for a newer way of sending keys.

use crate::engine::Key;

/// As control characters.
const INTERRUPT: u8 = 0x03;
const KILL: u8 = 0x1c;
/// As the keys with which Ctrl is pressed.
const C: u32 = 'c' as u32;
const BACKSLASH: u32 = '\\' as u32;
/// Modifiers are told as 1 and a bit for each; those of locks do not matter.
const CTRL: u32 = 4;
const LOCKS: u32 = 64 + 128;
/// Longer than any key.
const LONGEST: usize = 32;

/// What has been typed so far of a key that takes more than one byte.
#[derive(Debug, Default)]
pub(super) struct Keys {
    state: State,
    parameters: Vec<u8>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    Escape,
    Sequence,
}

impl Keys {
    /// The keys in what was typed, in their order; other keys are one together, if there is any.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Vec<Key> {
        let mut keys = Vec::new();
        for byte in bytes {
            match self.step(*byte) {
                Key::Any if keys.last() == Some(&Key::Any) => {}
                key => keys.push(key),
            }
        }
        keys
    }

    fn step(&mut self, byte: u8) -> Key {
        let (state, key) = match (self.state, byte) {
            // Whatever came before, and whatever the terminal has to answer: these bytes are these keys.
            (_, INTERRUPT) => (State::Ground, Key::Interrupt),
            (_, KILL) => (State::Ground, Key::Kill),
            (_, 0x1b) => (State::Escape, Key::Any),
            (State::Escape, b'[') => {
                self.parameters.clear();
                (State::Sequence, Key::Any)
            }
            (State::Sequence, b'0'..=b'?') if self.parameters.len() < LONGEST => {
                self.parameters.push(byte);
                (State::Sequence, Key::Any)
            }
            (State::Sequence, b'u' | b'~') => (State::Ground, self.key(byte)),
            (State::Ground | State::Escape | State::Sequence, _) => (State::Ground, Key::Any),
        };
        self.state = state;
        key
    }

    /// `99;5u`, `99:67;5:1u`, or `27;5;99~`.
    fn key(&self, last: u8) -> Key {
        let text = String::from_utf8_lossy(&self.parameters);
        let parts: Vec<Vec<u32>> = text
            .split(';')
            .map(|part| {
                part.split(':')
                    .map(|number| number.parse().unwrap_or(0))
                    .collect()
            })
            .collect();
        let (codes, modifiers) = match (last, &parts[..]) {
            (b'u', [codes, modifiers, ..]) => (codes, modifiers),
            (b'~', [kind, modifiers, codes]) if kind[..] == [27] => (codes, modifiers),
            _ => return Key::Any,
        };
        let is_released = modifiers.get(1) == Some(&3);
        let pressed = modifiers.first().copied().unwrap_or(1).saturating_sub(1) & !LOCKS;
        if pressed != CTRL || is_released {
            return Key::Any;
        }
        // The key itself, and where it would be on a keyboard of another alphabet.
        match (codes.first(), codes.get(2)) {
            (Some(&C), _) | (_, Some(&C)) => Key::Interrupt,
            (Some(&BACKSLASH), _) | (_, Some(&BACKSLASH)) => Key::Kill,
            _ => Key::Any,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keys that matter, whether the bytes come together or one by one.
    fn typed(bytes: &[u8]) -> Vec<Key> {
        let matter = |keys: Vec<Key>| {
            keys.into_iter()
                .filter(|key| *key != Key::Any)
                .collect::<Vec<_>>()
        };
        let together = matter(Keys::default().read(bytes));
        let mut keys = Keys::default();
        let one_by_one = bytes
            .iter()
            .flat_map(|byte| matter(keys.read(&[*byte])))
            .collect::<Vec<_>>();
        assert_eq!(together, one_by_one);
        together
    }

    #[test]
    fn ctrl_c_and_ctrl_backslash_are_known_in_every_way_of_sending_them() {
        for bytes in [
            &b"\x03"[..],
            b"\x1b[99;5u",
            b"\x1b[99:67;69:1;3u",
            b"\x1b[1089::99;5u",
            b"\x1b[27;5;99~",
            b"\x1b\x03",
            b"\x1b]\x03",
            b"\x1b[1;\x03",
        ] {
            assert_eq!(typed(bytes), [Key::Interrupt], "{}", bytes.escape_ascii());
        }
        for bytes in [&b"\x1c"[..], b"\x1b[92;5u", b"\x1b[27;5;92~"] {
            assert_eq!(typed(bytes), [Key::Kill], "{}", bytes.escape_ascii());
        }
        assert_eq!(typed(b"a\x03b\x03"), [Key::Interrupt, Key::Interrupt]);
    }

    #[test]
    fn other_keys_are_other_keys() {
        let others: [&[u8]; 8] = [
            b"abc\r",
            b"\x1b[A\x1bOP\x1b[3~",
            b"\x1b[99u\x1b[99;1u\x1b[99;6u\x1b[99;5:3u",
            b"\x1b[27;2;99~\x1b[27;5;100~",
            b"\x1b]11;rgb:9999/5c5c/0000\x1b\\",
            b"\x1b[?62;99;5c\x1b[99;5R",
            "ü日本".as_bytes(),
            b"\x1b[200~99;5u\x1b[201~",
        ];
        for bytes in others {
            assert_eq!(typed(bytes), [], "{}", bytes.escape_ascii());
        }
        assert_eq!(Keys::default().read(b"abc"), [Key::Any]);
        assert_eq!(Keys::default().read(b""), []);
    }
}
