//! Extracts the text of a screen: the lines that a program drew, without the control sequences. A recently reported line
//! is not reported again, because such programs redraw the same lines many times. The raw bytes are stored elsewhere.

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use vte::{Params, Parser, Perform};

/// How many reported lines are remembered.
const REMEMBERED: usize = 2000;
/// A longer line is split.
const LONGEST_LINE: usize = 64 * 1024;

#[derive(Default)]
pub(super) struct ScreenText {
    parser: Parser,
    lines: Lines,
}

#[derive(Default)]
struct Lines {
    line: String,
    /// Hashes of the reported lines.
    reported: HashSet<u64>,
    /// The same hashes, oldest first.
    order: VecDeque<u64>,
}

/// The lines, and the function that receives those that end.
struct LineReader<'a> {
    lines: &'a mut Lines,
    on_line: &'a mut dyn FnMut(&str),
}

impl ScreenText {
    pub(super) fn feed(&mut self, bytes: &[u8], mut on_line: impl FnMut(&str)) {
        let mut reader = LineReader {
            lines: &mut self.lines,
            on_line: &mut on_line,
        };
        self.parser.advance(&mut reader, bytes);
    }

    pub(super) fn finish(&mut self, mut on_line: impl FnMut(&str)) {
        self.lines.end_line(&mut on_line);
    }
}

impl LineReader<'_> {
    fn end_line(&mut self) {
        self.lines.end_line(self.on_line);
    }
}

impl Perform for LineReader<'_> {
    fn print(&mut self, character: char) {
        if character == '\x7f' {
            return;
        }
        if self.lines.line.len() + character.len_utf8() > LONGEST_LINE {
            self.end_line();
        }
        self.lines.line.push(character);
    }

    fn execute(&mut self, control: u8) {
        match control {
            b'\n' | b'\r' => self.end_line(),
            b'\t' => self.lines.line.push(' '),
            _ => {}
        }
    }

    fn esc_dispatch(&mut self, intermediates: &[u8], _ignored: bool, last: u8) {
        if let ([], b'D' | b'E' | b'M' | b'c') = (intermediates, last) {
            self.end_line();
        }
    }

    fn csi_dispatch(&mut self, _: &Params, _intermediates: &[u8], _ignored: bool, last: char) {
        match last {
            // Moves to another line, or erases.
            'A' | 'B' | 'E' | 'F' | 'H' | 'f' | 'd' | 'J' | 'S' | 'T' => self.end_line(),
            // Moves within the line.
            'C' | 'G' | '`' if !self.lines.line.ends_with(' ') => self.lines.line.push(' '),
            _ => {}
        }
    }
}

impl Lines {
    fn end_line(&mut self, on_line: &mut dyn FnMut(&str)) {
        let text = self.line.trim().to_owned();
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
            (count, text.lines.reported.len(), text.lines.order.len()),
            (10_000, REMEMBERED, REMEMBERED)
        );
    }
}
