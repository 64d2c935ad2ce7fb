//! Recognizes Ctrl-C and Ctrl-\ in the keyboard input for an agent's screen, both as control characters and in the extended
//! key encodings that an agent may enable.

/// A typed key, reduced to its meaning for ralph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TypedKey {
    Other,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-\; not forwarded to the agent.
    Kill,
}

/// The keys as control characters.
const INTERRUPT: u8 = 0x03;
const KILL: u8 = 0x1c;
/// The keys that are pressed together with Ctrl.
const C: u32 = 'c' as u32;
const BACKSLASH: u32 = '\\' as u32;
/// Modifiers are encoded as 1 plus one bit each; the bits of locks are ignored.
const CTRL: u32 = 4;
const LOCKS: u32 = 64 + 128;
/// No key sequence is longer.
const LONGEST: usize = 32;

/// The state of a key sequence that is not complete yet.
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
    /// Returns the keys in the bytes, in order. Consecutive other keys are reported once.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Vec<TypedKey> {
        let mut keys = Vec::new();
        for byte in bytes {
            match self.step(*byte) {
                TypedKey::Other if keys.last() == Some(&TypedKey::Other) => {}
                key => keys.push(key),
            }
        }
        keys
    }

    fn step(&mut self, byte: u8) -> TypedKey {
        let (state, key) = match (self.state, byte) {
            // These bytes are these keys in any context, even within a reply of the terminal.
            (_, INTERRUPT) => (State::Ground, TypedKey::Interrupt),
            (_, KILL) => (State::Ground, TypedKey::Kill),
            (_, 0x1b) => (State::Escape, TypedKey::Other),
            (State::Escape, b'[') => {
                self.parameters.clear();
                (State::Sequence, TypedKey::Other)
            }
            (State::Sequence, b'0'..=b'?') if self.parameters.len() < LONGEST => {
                self.parameters.push(byte);
                (State::Sequence, TypedKey::Other)
            }
            (State::Sequence, b'u' | b'~') => (State::Ground, self.key(byte)),
            (State::Ground | State::Escape | State::Sequence, _) => (State::Ground, TypedKey::Other),
        };
        self.state = state;
        key
    }

    /// `99;5u`, `99:67;5:1u`, or `27;5;99~`.
    fn key(&self, last: u8) -> TypedKey {
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
            _ => return TypedKey::Other,
        };
        let is_released = modifiers.get(1) == Some(&3);
        let pressed = modifiers.first().copied().unwrap_or(1).saturating_sub(1) & !LOCKS;
        if pressed != CTRL || is_released {
            return TypedKey::Other;
        }
        // The key itself, and the key at its position in another keyboard layout.
        match (codes.first(), codes.get(2)) {
            (Some(&C), _) | (_, Some(&C)) => TypedKey::Interrupt,
            (Some(&BACKSLASH), _) | (_, Some(&BACKSLASH)) => TypedKey::Kill,
            _ => TypedKey::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The recognized keys, whether the bytes arrive together or one by one.
    fn typed(bytes: &[u8]) -> Vec<TypedKey> {
        let matter = |keys: Vec<TypedKey>| {
            keys.into_iter()
                .filter(|key| *key != TypedKey::Other)
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
            assert_eq!(typed(bytes), [TypedKey::Interrupt], "{}", bytes.escape_ascii());
        }
        for bytes in [&b"\x1c"[..], b"\x1b[92;5u", b"\x1b[27;5;92~"] {
            assert_eq!(typed(bytes), [TypedKey::Kill], "{}", bytes.escape_ascii());
        }
        assert_eq!(typed(b"a\x03b\x03"), [TypedKey::Interrupt, TypedKey::Interrupt]);
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
        assert_eq!(Keys::default().read(b"abc"), [TypedKey::Other]);
        assert_eq!(Keys::default().read(b""), []);
    }
}
