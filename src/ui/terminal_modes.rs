//! Tracks the terminal modes that a program enables, and builds the sequence that resets those it left enabled.

use std::collections::BTreeSet;

use super::escapes::{EscapeParser, EscapeToken};

/// Private modes that are on by default: line wrapping and the cursor.
const DEFAULT_ON: [u16; 2] = [7, 25];
/// The alternate screen; left last, because some modes belong to a screen.
const ALTERNATE_SCREEN: [u16; 3] = [47, 1047, 1049];

/// The modes that differ from the terminal's defaults.
#[derive(Debug, Default)]
pub(super) struct TerminalModes {
    escapes: EscapeParser,
    on: BTreeSet<u16>,
    off: BTreeSet<u16>,
    /// Entries that the program pushed on the stack of the kitty keyboard protocol.
    kitty_keyboard_pushes: u32,
    kitty_keyboard_set: bool,
    modify_other_keys: bool,
    keypad: bool,
    colored: bool,
    scroll_region: bool,
    cursor_shape: bool,
    /// The cursor is not at the start of a line.
    mid_line: bool,
}

impl TerminalModes {
    pub(super) fn observe(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.escapes.is_in_text() {
                let end = memchr::memchr(0x1b, rest).unwrap_or(rest.len());
                if let Some(last) = rest[..end].last() {
                    self.mid_line = !matches!(last, b'\n' | b'\r');
                }
                rest = &rest[end..];
            }
            if let Some((byte, after)) = rest.split_first() {
                match self.escapes.step(*byte) {
                    EscapeToken::Incomplete | EscapeToken::Text(_) => {}
                    EscapeToken::Escape(last) => self.escape(last),
                    EscapeToken::Csi(last) => self.control_sequence(last),
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

    fn control_sequence(&mut self, last: u8) {
        let text = String::from_utf8_lossy(self.escapes.parameters()).into_owned();
        let numbers = |text: &str| -> Vec<u16> { text.split(';').filter_map(|n| n.parse().ok()).collect() };
        match (text.as_bytes().first(), last) {
            (Some(b'?'), b'h') => numbers(&text[1..]).into_iter().for_each(|mode| self.enable(mode)),
            (Some(b'?'), b'l') => numbers(&text[1..])
                .into_iter()
                .for_each(|mode| self.disable(mode)),
            (Some(b'>'), b'u') => self.kitty_keyboard_pushes += 1,
            (Some(b'<'), b'u') => {
                let count = text[1..].parse().unwrap_or(1);
                self.kitty_keyboard_pushes = self.kitty_keyboard_pushes.saturating_sub(count);
            }
            (Some(b'='), b'u') => self.kitty_keyboard_set = !text.starts_with("=0"),
            (Some(b'>'), b'm') => {
                self.modify_other_keys = matches!(numbers(&text[1..])[..], [4, level] if level > 0)
            }
            (Some(b'?' | b'>' | b'<' | b'='), _) => {}
            (_, b'm') => self.colored = !matches!(text.rsplit(';').next(), Some("" | "0")),
            (_, b'r') => self.scroll_region = !text.is_empty(),
            (_, b'q') if text.ends_with(' ') => self.cursor_shape = !matches!(text.trim(), "" | "0"),
            _ => {}
        }
    }

    fn enable(&mut self, mode: u16) {
        self.off.remove(&mode);
        if !DEFAULT_ON.contains(&mode) {
            self.on.insert(mode);
        }
    }

    fn disable(&mut self, mode: u16) {
        self.on.remove(&mode);
        if DEFAULT_ON.contains(&mode) {
            self.off.insert(mode);
        }
        if ALTERNATE_SCREEN.contains(&mode) {
            self.mid_line = false;
        }
    }

    /// The bytes that restore the defaults and move the cursor to the start of a line.
    pub(super) fn reset_sequence(&self) -> Vec<u8> {
        let mut out = String::new();
        let (screens, modes): (Vec<u16>, Vec<u16>) =
            self.on.iter().partition(|mode| ALTERNATE_SCREEN.contains(mode));
        for (needed, sequence) in [
            (self.colored, "\x1b[m"),
            (self.modify_other_keys, "\x1b[>4m"),
            (self.kitty_keyboard_set, "\x1b[=0u"),
            (self.keypad, "\x1b>"),
            (self.cursor_shape, "\x1b[0 q"),
            // Resetting the scroll region moves the cursor, so its position is saved and restored.
            (self.scroll_region, "\x1b7\x1b[r\x1b8"),
        ] {
            if needed {
                out.push_str(sequence);
            }
        }
        if self.kitty_keyboard_pushes > 0 {
            out.push_str(&format!("\x1b[<{}u", self.kitty_keyboard_pushes));
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
        if self.mid_line && screens.is_empty() {
            out.push_str("\r\n");
        }
        out.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reset_after(bytes: &[u8]) -> String {
        let mut whole = TerminalModes::default();
        whole.observe(bytes);
        // The result does not depend on how the bytes are split.
        let mut split = TerminalModes::default();
        bytes.iter().for_each(|byte| split.observe(&[*byte]));
        assert_eq!(whole.reset_sequence(), split.reset_sequence());
        String::from_utf8(whole.reset_sequence()).unwrap()
    }

    #[test]
    fn program_that_resets_its_modes_needs_no_reset() {
        let balanced = b"\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[>1u\x1b[1;31mhi\x1b[0m\x1b[<u\x1b[?2004l\x1b[?25h\x1b[?1049l";
        assert_eq!(reset_after(balanced), "");
        assert_eq!(reset_after(b"plain text\r\n"), "");
    }

    #[test]
    fn enabled_modes_are_reset_and_the_alternate_screen_is_left_last() {
        let killed =
            b"\x1b[?1049h\x1b[?1000;1006h\x1b[?25l\x1b[>5u\x1b[>4;2m\x1b[5;10r\x1b[2 q\x1b=\x1b[41mhi";
        assert_eq!(
            reset_after(killed),
            "\x1b[m\x1b[>4m\x1b>\x1b[0 q\x1b7\x1b[r\x1b8\x1b[<1u\x1b[?1000l\x1b[?1006l\x1b[?25h\x1b[?1049l"
        );
    }

    #[test]
    fn unfinished_line_is_ended() {
        assert_eq!(reset_after(b"half"), "\r\n");
        assert_eq!(reset_after(b"half\x1b[?1049hfull\x1b[?1049l"), "");
    }

    #[test]
    fn titles_and_queries_do_not_change_modes() {
        assert_eq!(
            reset_after(b"\x1b]0;\x1b[?1000h\x07\x1b[?1049$p\x1b[>0q\x1b[6n\r"),
            "\x1b[?1000l"
        );
        assert_eq!(reset_after(b"\x1b]0;[?1000h\x1b\\\x1bP+q\x1b\\\r"), "");
        assert_eq!(reset_after(b"\x1b[?1000h\x1bc"), "");
        assert_eq!(reset_after(b"\x1b[=1;1u\r"), "\x1b[=0u");
        assert_eq!(reset_after(b"\x1b[=1;1u\x1b[=0u\r"), "");
    }
}
