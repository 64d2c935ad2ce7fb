//! Tracks the terminal modes that a program enables, and builds the sequence that resets those it left enabled.

use std::collections::BTreeSet;

use vte::{Params, Parser, Perform};

/// Private modes that are on by default: line wrapping and the cursor.
const DEFAULT_ON: [u16; 2] = [7, 25];
/// The alternate screen; left last, because some modes belong to a screen.
const ALTERNATE_SCREEN: [u16; 3] = [47, 1047, 1049];

/// The modes that differ from the terminal's defaults.
#[derive(Default)]
pub(super) struct TerminalModes {
    parser: Parser,
    modes: Modes,
}

#[derive(Default)]
struct Modes {
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
        self.parser.advance(&mut self.modes, bytes);
    }

    /// The bytes that restore the defaults and move the cursor to the start of a line.
    pub(super) fn reset_sequence(&self) -> Vec<u8> {
        self.modes.reset_sequence()
    }
}

impl Perform for Modes {
    fn print(&mut self, _: char) {
        self.mid_line = true;
    }

    fn execute(&mut self, control: u8) {
        if let b'\n' | b'\r' = control {
            self.mid_line = false;
        }
    }

    fn esc_dispatch(&mut self, intermediates: &[u8], _ignored: bool, last: u8) {
        match (intermediates, last) {
            ([], b'=') => self.keypad = true,
            ([], b'>') => self.keypad = false,
            ([], b'c') => *self = Self::default(),
            _ => {}
        }
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], _ignored: bool, last: char) {
        // An absent parameter is 0.
        let numbers: Vec<u16> = params
            .iter()
            .filter_map(|values| values.first().copied())
            .collect();
        match (intermediates, last) {
            (b"?", 'h') => numbers.into_iter().for_each(|mode| self.enable(mode)),
            (b"?", 'l') => numbers.into_iter().for_each(|mode| self.disable(mode)),
            (b">", 'u') => self.kitty_keyboard_pushes += 1,
            (b"<", 'u') => {
                let count = numbers.first().copied().unwrap_or_default().max(1);
                self.kitty_keyboard_pushes = self.kitty_keyboard_pushes.saturating_sub(count.into());
            }
            (b"=", 'u') => self.kitty_keyboard_set = numbers.first() != Some(&0),
            (b">", 'm') => self.modify_other_keys = matches!(numbers[..], [4, level] if level > 0),
            (b"", 'm') => self.colored = numbers.last() != Some(&0),
            (b"", 'r') => self.scroll_region = numbers != [0],
            (b" ", 'q') => self.cursor_shape = numbers.first() != Some(&0),
            _ => {}
        }
    }
}

impl Modes {
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

    fn reset_sequence(&self) -> Vec<u8> {
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
