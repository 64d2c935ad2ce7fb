//! Extracts the text of a screen: the lines that a program drew, without the control sequences. A recently reported line
//! is not reported again, because such programs redraw the same lines many times. The raw bytes are stored elsewhere.

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::ui::{EscapeParser, EscapeToken};

/// How many reported lines are remembered.
const REMEMBERED: usize = 2000;
/// A longer line is split.
const LONGEST_LINE: usize = 64 * 1024;

#[derive(Debug, Default)]
pub(super) struct ScreenText {
    escapes: EscapeParser,
    line: Vec<u8>,
    /// Hashes of the reported lines.
    reported: HashSet<u64>,
    /// The same hashes, oldest first.
    order: VecDeque<u64>,
}

impl ScreenText {
    pub(super) fn feed(&mut self, bytes: &[u8], mut on_line: impl FnMut(&str)) {
        for byte in bytes {
            match self.escapes.step(*byte) {
                EscapeToken::Text(b'\n' | b'\r') | EscapeToken::Escape(b'D' | b'E' | b'M' | b'c') => {
                    self.end_line(&mut on_line)
                }
                EscapeToken::Text(b'\t') => self.line.push(b' '),
                EscapeToken::Text(byte @ (b' '..=b'~' | 0x80..)) => {
                    self.line.push(byte);
                    if self.line.len() >= LONGEST_LINE {
                        self.end_line(&mut on_line);
                    }
                }
                // Moves to another line, or erases.
                EscapeToken::Csi(b'A' | b'B' | b'E' | b'F' | b'H' | b'f' | b'd' | b'J' | b'S' | b'T') => {
                    self.end_line(&mut on_line);
                }
                // Moves within the line.
                EscapeToken::Csi(b'C' | b'G' | b'`') if !self.line.ends_with(b" ") => self.line.push(b' '),
                EscapeToken::Incomplete
                | EscapeToken::Text(_)
                | EscapeToken::Escape(_)
                | EscapeToken::Csi(_) => {}
            }
        }
    }

    pub(super) fn finish(&mut self, mut on_line: impl FnMut(&str)) {
        self.end_line(&mut on_line);
    }

    fn end_line(&mut self, on_line: &mut dyn FnMut(&str)) {
        let text = String::from_utf8_lossy(&self.line).trim().to_owned();
        self.line.clear();
        if !text.chars().any(char::is_alphanumeric) {
            // A frame or empty space.
            return;
        }
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        if self.reported.insert(hasher.finish()) {
            self.order.push_back(hasher.finish());
            if self.order.len() > REMEMBERED
                && let Some(oldest) = self.order.pop_front()
            {
                self.reported.remove(&oldest);
            }
            on_line(&text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8]) -> Vec<String> {
        let mut text = ScreenText::default();
        let mut lines = Vec::new();
        bytes
            .iter()
            .for_each(|byte| text.feed(&[*byte], |line| lines.push(line.to_owned())));
        text.finish(|line| lines.push(line.to_owned()));
        lines
    }

    #[test]
    fn control_sequences_are_removed() {
        let drawn = "\x1b]0;title\x07\x1b[?1049h\x1b[2J\x1b[3;5H\x1b[1mHello\x1b[0m,\x1b[Cworld\x1b[4;1H╭──╮\x1b[5;1H│ héllo │\r\nlast";
        assert_eq!(lines(drawn.as_bytes()), ["Hello, world", "│ héllo │", "last"]);
    }

    #[test]
    fn a_line_that_is_drawn_repeatedly_is_reported_once() {
        let frame = "\x1b[H> ask me\r\nworking\x1b[A";
        assert_eq!(lines(frame.repeat(50).as_bytes()), ["> ask me", "working"]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut text = ScreenText::default();
        let mut count = 0;
        for number in 0..10_000 {
            text.feed(format!("line {number}\n").as_bytes(), |_| count += 1);
        }
        text.feed(&vec![b'x'; 10 * LONGEST_LINE], |line| {
            assert!(line.len() <= LONGEST_LINE)
        });
        assert_eq!(
            (count, text.reported.len(), text.order.len()),
            (10_000, REMEMBERED, REMEMBERED)
        );
    }
}
