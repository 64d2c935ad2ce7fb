//! What a program that drew on the user's terminal has left switched on, and what switches it off again. Reads the
//! bytes that pass and changes none of them. A program that tidies up after itself leaves nothing to do here.

use std::collections::BTreeSet;

use super::escapes::{Escapes, Seen};

/// Private modes that a terminal has on by itself: wrapping, and the cursor.
const USUALLY_ON: [u16; 2] = [7, 25];
/// The other screen; it is left last, because some modes belong to a screen.
const OTHER_SCREEN: [u16; 3] = [47, 1047, 1049];
/// What stands on the terminal now, as far as it was changed.
#[derive(Debug, Default)]
pub(super) struct Modes {
    escapes: Escapes,
    on: BTreeSet<u16>,
    off: BTreeSet<u16>,
    /// How many layers of the newer keyboard protocol were put on.
    keyboard: u32,
    keyboard_set: bool,
    other_keys: bool,
    keypad: bool,
    coloured: bool,
    region: bool,
    cursor_shape: bool,
    in_line: bool,
}

impl Modes {
    pub(super) fn see(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.escapes.is_in_text() {
                let end = memchr::memchr(0x1b, rest).unwrap_or(rest.len());
                if let Some(last) = rest[..end].last() {
                    self.in_line = !matches!(last, b'\n' | b'\r');
                }
                rest = &rest[end..];
            }
            if let Some((byte, after)) = rest.split_first() {
                match self.escapes.step(*byte) {
                    Seen::Nothing | Seen::Text(_) => {}
                    Seen::Escape(last) => self.escape(last),
                    Seen::Sequence(last) => self.sequence(last),
                }
                rest = after;
            }
        }
    }

    fn escape(&mut self, last: u8) {
        match last {
            b'=' => self.keypad = true,
            b'>' => self.keypad = false,
            b'c' => {
                *self = Self::default();
            }
            _ => {}
        }
    }

    fn sequence(&mut self, last: u8) {
        let text = String::from_utf8_lossy(self.escapes.parameters()).into_owned();
        let numbers = |text: &str| -> Vec<u16> { text.split(';').filter_map(|n| n.parse().ok()).collect() };
        match (text.as_bytes().first(), last) {
            (Some(b'?'), b'h') => numbers(&text[1..])
                .into_iter()
                .for_each(|mode| self.switch_on(mode)),
            (Some(b'?'), b'l') => numbers(&text[1..])
                .into_iter()
                .for_each(|mode| self.switch_off(mode)),
            (Some(b'>'), b'u') => self.keyboard += 1,
            (Some(b'<'), b'u') => {
                let count = text[1..].parse().unwrap_or(1);
                self.keyboard = self.keyboard.saturating_sub(count);
            }
            (Some(b'='), b'u') => self.keyboard_set = !text.starts_with("=0"),
            (Some(b'>'), b'm') => {
                self.other_keys = matches!(numbers(&text[1..])[..], [4, level] if level > 0)
            }
            (Some(b'?' | b'>' | b'<' | b'='), _) => {}
            (_, b'm') => self.coloured = !matches!(text.rsplit(';').next(), Some("" | "0")),
            (_, b'r') => self.region = !text.is_empty(),
            (_, b'q') if text.ends_with(' ') => self.cursor_shape = !matches!(text.trim(), "" | "0"),
            _ => {}
        }
    }

    fn switch_on(&mut self, mode: u16) {
        self.off.remove(&mode);
        if !USUALLY_ON.contains(&mode) {
            self.on.insert(mode);
        }
    }

    fn switch_off(&mut self, mode: u16) {
        self.on.remove(&mode);
        if USUALLY_ON.contains(&mode) {
            self.off.insert(mode);
        }
        if OTHER_SCREEN.contains(&mode) {
            self.in_line = false;
        }
    }

    /// What puts the terminal back, and the cursor at the beginning of a line.
    pub(super) fn undo(&self) -> Vec<u8> {
        let mut out = String::new();
        let (screens, modes): (Vec<u16>, Vec<u16>) =
            self.on.iter().partition(|mode| OTHER_SCREEN.contains(mode));
        for (wanted, sequence) in [
            (self.coloured, "\x1b[m"),
            (self.other_keys, "\x1b[>4m"),
            (self.keyboard_set, "\x1b[=0u"),
            (self.keypad, "\x1b>"),
            (self.cursor_shape, "\x1b[0 q"),
            // A region's end moves the cursor, so that is put back.
            (self.region, "\x1b7\x1b[r\x1b8"),
        ] {
            if wanted {
                out.push_str(sequence);
            }
        }
        if self.keyboard > 0 {
            out.push_str(&format!("\x1b[<{}u", self.keyboard));
        }
        modes
            .iter()
            .for_each(|mode| out.push_str(&format!("\x1b[?{mode}l")));
        self.off
            .iter()
            .for_each(|mode| out.push_str(&format!("\x1b[?{mode}h")));
        screens
            .iter()
            .for_each(|mode| out.push_str(&format!("\x1b[?{mode}l")));
        if self.in_line && screens.is_empty() {
            out.push_str("\r\n");
        }
        out.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn undone(bytes: &[u8]) -> String {
        let mut whole = Modes::default();
        whole.see(bytes);
        // However the bytes are cut, they say the same.
        let mut cut = Modes::default();
        bytes.iter().for_each(|byte| cut.see(&[*byte]));
        assert_eq!(whole.undo(), cut.undo());
        String::from_utf8(whole.undo()).unwrap()
    }

    #[test]
    fn who_tidies_up_leaves_nothing_to_do() {
        let tidy = b"\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[>1u\x1b[1;31mhi\x1b[0m\x1b[<u\x1b[?2004l\x1b[?25h\x1b[?1049l";
        assert_eq!(undone(tidy), "");
        assert_eq!(undone(b"plain text\r\n"), "");
    }

    #[test]
    fn what_was_left_on_is_switched_off_and_the_other_screen_last() {
        let killed =
            b"\x1b[?1049h\x1b[?1000;1006h\x1b[?25l\x1b[>5u\x1b[>4;2m\x1b[5;10r\x1b[2 q\x1b=\x1b[41mhi";
        assert_eq!(
            undone(killed),
            "\x1b[m\x1b[>4m\x1b>\x1b[0 q\x1b7\x1b[r\x1b8\x1b[<1u\x1b[?1000l\x1b[?1006l\x1b[?25h\x1b[?1049l"
        );
    }

    #[test]
    fn half_a_line_is_ended() {
        assert_eq!(undone(b"half"), "\r\n");
        assert_eq!(undone(b"half\x1b[?1049hfull\x1b[?1049l"), "");
    }

    #[test]
    fn what_stands_in_a_title_or_is_no_mode_switches_nothing() {
        assert_eq!(
            undone(b"\x1b]0;\x1b[?1000h\x07\x1b[?1049$p\x1b[>0q\x1b[6n\r"),
            "\x1b[?1000l"
        );
        assert_eq!(undone(b"\x1b]0;[?1000h\x1b\\\x1bP+q\x1b\\\r"), "");
        assert_eq!(undone(b"\x1b[?1000h\x1bc"), "");
        assert_eq!(undone(b"\x1b[=1;1u\r"), "\x1b[=0u");
        assert_eq!(undone(b"\x1b[=1;1u\x1b[=0u\r"), "");
    }
}
