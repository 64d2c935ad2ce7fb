//! The text of a screen, for the record: what a program drew, without how it drew it. A line that was drawn a moment
//! ago is not told again, since such programs draw the same things many times over. The raw bytes are kept elsewhere.

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::ui::{Escapes, Seen};

/// How many of the last lines are remembered.
const REMEMBERED: usize = 2000;
/// A line that grows beyond this is told as it is.
const LONGEST_LINE: usize = 64 * 1024;

#[derive(Debug, Default)]
pub(super) struct ScreenText {
    escapes: Escapes,
    line: Vec<u8>,
    told: HashSet<u64>,
    order: VecDeque<u64>,
}

impl ScreenText {
    pub(super) fn feed(&mut self, bytes: &[u8], mut tell: impl FnMut(&str)) {
        for byte in bytes {
            match self.escapes.step(*byte) {
                Seen::Text(b'\n' | b'\r') | Seen::Escape(b'D' | b'E' | b'M' | b'c') => {
                    self.end_line(&mut tell)
                }
                Seen::Text(b'\t') => self.line.push(b' '),
                Seen::Text(byte @ (b' '..=b'~' | 0x80..)) => {
                    self.line.push(byte);
                    if self.line.len() >= LONGEST_LINE {
                        self.end_line(&mut tell);
                    }
                }
                // To another line, or away with what stands there.
                Seen::Sequence(b'A' | b'B' | b'E' | b'F' | b'H' | b'f' | b'd' | b'J' | b'S' | b'T') => {
                    self.end_line(&mut tell);
                }
                // To another place on this line.
                Seen::Sequence(b'C' | b'G' | b'`') if !self.line.ends_with(b" ") => self.line.push(b' '),
                Seen::Nothing | Seen::Text(_) | Seen::Escape(_) | Seen::Sequence(_) => {}
            }
        }
    }

    pub(super) fn finish(&mut self, mut tell: impl FnMut(&str)) {
        self.end_line(&mut tell);
    }

    fn end_line(&mut self, tell: &mut dyn FnMut(&str)) {
        let text = String::from_utf8_lossy(&self.line).trim().to_owned();
        self.line.clear();
        if !text.chars().any(char::is_alphanumeric) {
            // Frames and empty space.
            return;
        }
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        if self.told.insert(hasher.finish()) {
            self.order.push_back(hasher.finish());
            if self.order.len() > REMEMBERED
                && let Some(oldest) = self.order.pop_front()
            {
                self.told.remove(&oldest);
            }
            tell(&text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8]) -> Vec<String> {
        let mut text = ScreenText::default();
        let mut told = Vec::new();
        bytes
            .iter()
            .for_each(|byte| text.feed(&[*byte], |line| told.push(line.to_owned())));
        text.finish(|line| told.push(line.to_owned()));
        told
    }

    #[test]
    fn what_was_drawn_is_told_without_how_it_was_drawn() {
        let drawn = "\x1b]0;title\x07\x1b[?1049h\x1b[2J\x1b[3;5H\x1b[1mHello\x1b[0m,\x1b[Cworld\x1b[4;1H╭──╮\x1b[5;1H│ héllo │\r\nlast";
        assert_eq!(lines(drawn.as_bytes()), ["Hello, world", "│ héllo │", "last"]);
    }

    #[test]
    fn what_is_drawn_again_and_again_is_told_once() {
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
            (count, text.told.len(), text.order.len()),
            (10_000, REMEMBERED, REMEMBERED)
        );
    }
}
