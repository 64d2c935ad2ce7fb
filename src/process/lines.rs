//! Splits chunks of bytes into lines, without decoding them.

use memchr::{memchr, memchr_iter};

/// Capacity that the buffer keeps after a long line.
const KEPT_CAPACITY: usize = 64 * 1024;

/// One line, without its line ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    pub bytes: &'a [u8],
    /// Number of bytes beyond the limit that were omitted; 0 for a complete line.
    pub cut: u64,
}

/// Splits a stream into lines, regardless of chunk boundaries.
///
/// A line ends at `\n`; one `\r` before it belongs to the ending. A line within one chunk is passed on without a copy. Only a
/// line that spans chunks is collected, up to the limit, and no byte is scanned twice.
#[derive(Debug)]
pub struct LineSplitter {
    max_line_bytes: usize,
    /// The start of the current line.
    head: Vec<u8>,
    /// Number of bytes of the line after `head` was full.
    beyond: u64,
    /// Whether the last of these bytes is `\r`, which belongs to the ending if the line ends after it.
    beyond_ends_in_return: bool,
}

impl LineSplitter {
    pub fn new(max_line_bytes: usize) -> Self {
        Self {
            max_line_bytes,
            head: Vec::new(),
            beyond: 0,
            beyond_ends_in_return: false,
        }
    }

    /// Adds bytes and passes on every line that they complete.
    pub fn feed(&mut self, bytes: &[u8], mut line: impl FnMut(Line<'_>)) {
        let mut rest = bytes;
        if self.is_inside_a_line() {
            let Some(end) = memchr(b'\n', rest) else {
                return self.collect(rest);
            };
            self.collect(&rest[..end]);
            self.deliver(&mut line);
            rest = &rest[end + 1..];
        }
        let mut start = 0;
        for end in memchr_iter(b'\n', rest) {
            line(self.whole(&rest[start..end]));
            start = end + 1;
        }
        self.collect(&rest[start..]);
    }

    /// Passes on the last line if it has no newline.
    pub fn finish(&mut self, mut line: impl FnMut(Line<'_>)) {
        if self.is_inside_a_line() {
            self.deliver(&mut line);
        }
    }

    fn is_inside_a_line(&self) -> bool {
        !self.head.is_empty() || self.beyond > 0
    }

    fn whole<'a>(&self, line: &'a [u8]) -> Line<'a> {
        let line = without_return(line);
        let kept = line.len().min(self.max_line_bytes);
        Line {
            bytes: &line[..kept],
            cut: (line.len() - kept) as u64,
        }
    }

    fn collect(&mut self, bytes: &[u8]) {
        let room = self.max_line_bytes - self.head.len();
        let (fitting, beyond) = bytes.split_at(bytes.len().min(room));
        self.grow_for(fitting.len());
        self.head.extend_from_slice(fitting);
        if let Some(last) = beyond.last() {
            self.beyond += beyond.len() as u64;
            self.beyond_ends_in_return = *last == b'\r';
        }
    }

    /// Doubles the capacity like `Vec`, so that a long line takes linear time, but not beyond the limit.
    fn grow_for(&mut self, more: usize) {
        let needed = self.head.len() + more;
        if needed > self.head.capacity() {
            let wanted = (self.head.capacity() * 2).min(self.max_line_bytes).max(needed);
            self.head.reserve_exact(wanted - self.head.len());
        }
    }

    fn deliver(&mut self, line: &mut impl FnMut(Line<'_>)) {
        if self.beyond == 0 {
            line(Line {
                bytes: without_return(&self.head),
                cut: 0,
            });
        } else {
            line(Line {
                bytes: &self.head,
                cut: self.beyond - u64::from(self.beyond_ends_in_return),
            });
        }
        self.head.clear();
        self.head.shrink_to(KEPT_CAPACITY);
        self.beyond = 0;
        self.beyond_ends_in_return = false;
    }
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Splits a stream that arrives in these chunks.
    fn split(max: usize, chunks: &[&[u8]]) -> Vec<(Vec<u8>, u64)> {
        let mut lines = Vec::new();
        let mut splitter = LineSplitter::new(max);
        for chunk in chunks {
            splitter.feed(chunk, |line| lines.push((line.bytes.to_vec(), line.cut)));
        }
        splitter.finish(|line| lines.push((line.bytes.to_vec(), line.cut)));
        lines
    }

    /// The definition, without chunks.
    fn split_at_once(max: usize, bytes: &[u8]) -> Vec<(Vec<u8>, u64)> {
        let mut pieces: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
        if pieces.last().is_some_and(|last| last.is_empty()) {
            pieces.pop();
        }
        let cut = |piece: &[u8]| {
            let line = piece.strip_suffix(b"\r").unwrap_or(piece);
            let kept = line.len().min(max);
            (line[..kept].to_vec(), (line.len() - kept) as u64)
        };
        pieces.into_iter().map(cut).collect()
    }

    fn whole(lines: &[&str]) -> Vec<(Vec<u8>, u64)> {
        lines.iter().map(|line| (line.as_bytes().to_vec(), 0)).collect()
    }

    #[test]
    fn lines_end_at_newline_only() {
        assert_eq!(
            split(99, &["a\u{2028}b\x0bc\rd\n\ne\n".as_bytes()]),
            whole(&["a\u{2028}b\x0bc\rd", "", "e"])
        );
    }

    #[test]
    fn last_line_without_newline_is_delivered() {
        assert_eq!(split(99, &[b"one\ntw", b"o"]), whole(&["one", "two"]));
        assert_eq!(split(99, &[b"one\n"]), whole(&["one"]));
        assert_eq!(split(99, &[]), whole(&[]));
    }

    #[test]
    fn one_return_before_the_newline_is_dropped_even_when_they_are_apart() {
        assert_eq!(split(99, &[b"a\r", b"\nb\r\r\n"]), whole(&["a", "b\r"]));
    }

    #[test]
    fn nul_and_invalid_utf8_pass_untouched() {
        assert_eq!(split(99, &[b"\0\xff", b"\xc3\n"]), [(b"\0\xff\xc3".to_vec(), 0)]);
    }

    #[test]
    fn a_line_at_the_limit_is_whole_and_one_beyond_is_cut() {
        assert_eq!(
            split(3, &[b"abc\nab", b"c\r\nabcd\nab", b"cdef\n"]),
            [
                (b"abc".to_vec(), 0),
                (b"abc".to_vec(), 0),
                (b"abc".to_vec(), 1),
                (b"abc".to_vec(), 3),
            ]
        );
    }

    #[test]
    fn memory_returns_after_a_long_line() {
        let mut splitter = LineSplitter::new(1 << 20);
        for _ in 0..64 {
            splitter.feed(&[b'x'; 64 * 1024], |_| {});
        }
        assert!(splitter.head.capacity() <= 1 << 20);
        splitter.feed(b"\n", |line| assert_eq!(line.cut, 3 << 20));
        assert!(splitter.head.capacity() <= KEPT_CAPACITY);
    }

    #[test]
    fn a_line_inside_a_chunk_is_not_copied() {
        let chunk = b"whole\n";
        LineSplitter::new(99).feed(chunk, |line| assert_eq!(line.bytes.as_ptr(), chunk.as_ptr()));
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_lines(
            chunks in prop::collection::vec(
                prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b'a'), any::<u8>()], 0..12), 0..12),
            max in 0_usize..16,
        ) {
            let slices: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
            prop_assert_eq!(split(max, &slices), split_at_once(max, &chunks.concat()));
        }
    }
}
