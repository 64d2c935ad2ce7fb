//! Remembering what was said, in bounded memory, to know it again when it is repeated.

/// How much of a long text is kept; its length is known in full.
const KEPT: usize = 1 << 20;

/// A text that grew piece by piece. Beyond `KEPT` only its end is remembered.
#[derive(Debug, Default)]
pub(in crate::transcript) struct Tail {
    tail: String,
    length: usize,
}

impl Tail {
    pub(in crate::transcript) fn push(&mut self, text: &str) {
        self.length += text.len();
        if text.len() > KEPT {
            self.tail.clear();
        }
        // Of a huge text not even a copy is made.
        self.tail
            .push_str(&text[text.ceil_char_boundary(text.len().saturating_sub(KEPT))..]);
        // Only at twice the size, so that a long stream does not move memory with every piece.
        if self.tail.len() > 2 * KEPT {
            let from = self.tail.ceil_char_boundary(self.tail.len() - KEPT);
            self.tail.drain(..from);
        }
    }

    pub(in crate::transcript) fn clear(&mut self) {
        self.length = 0;
        self.tail.clear();
        self.tail.shrink_to(KEPT / 16);
    }

    /// The same text, white space at the end aside.
    pub(in crate::transcript) fn equals(&self, text: &str) -> bool {
        let ignored = self.tail.len() - self.tail.trim_end().len();
        let text = text.trim_end();
        self.length - ignored == text.len() && text.ends_with(self.tail.trim_end())
    }

    /// What this was says all of `text` at its end, white space around it aside.
    pub(in crate::transcript) fn ends_with(&self, text: &str) -> bool {
        let (tail, text) = (self.tail.trim_end(), text.trim());
        if text.len() <= tail.len() {
            tail.ends_with(text)
        } else {
            self.length > self.tail.len() && self.length >= text.len() && text.ends_with(tail)
        }
    }

    /// `text` says all of this at its end, white space aside.
    pub(in crate::transcript) fn is_the_end_of(&self, text: &str) -> bool {
        let tail = self.tail.trim();
        self.length <= text.len() && !tail.is_empty() && text.trim_end().ends_with(tail)
    }

    /// What `text` says beyond this, when it begins with all of this.
    pub(in crate::transcript) fn rest_of<'a>(&self, text: &'a str) -> Option<&'a str> {
        let whole = self.length == self.tail.len() && !self.tail.is_empty();
        whole.then(|| text.strip_prefix(self.tail.as_str())).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(pieces: &[&str]) -> Tail {
        let mut said = Tail::default();
        pieces.iter().for_each(|piece| said.push(piece));
        said
    }

    #[test]
    fn pieces_equal_the_whole() {
        assert!(said(&["LOOP_", "COMPLETE\n"]).equals("LOOP_COMPLETE"));
        assert!(!said(&["LOOP_", "COMPLETE"]).equals("COMPLETE"));
    }

    #[test]
    fn the_end_of_what_was_said_is_known_again() {
        assert!(said(&["first\n", "second\n"]).ends_with("second"));
        assert!(!said(&["first\n"]).ends_with("second"));
        assert!(said(&["x"]).ends_with(""));
    }

    #[test]
    fn the_rest_of_a_text_that_was_cut_is_known() {
        assert_eq!(said(&["LOOP_"]).rest_of("LOOP_COMPLETE"), Some("COMPLETE"));
        assert_eq!(said(&[]).rest_of("LOOP_COMPLETE"), None);
    }

    #[test]
    fn a_text_longer_than_memory_is_still_known_again() {
        let piece = "é".repeat(KEPT / 3);
        let said = said(&[&piece, &piece, &piece, &piece, &piece, "end"]);
        let whole = piece.repeat(5) + "end";
        assert!(said.tail.len() <= 2 * KEPT);
        assert!(said.equals(&whole) && said.ends_with(&whole));
        assert!(!said.equals(&whole[2..]));
        assert_eq!(said.rest_of(&whole), None);
    }
}
