//! The end of a growing text, in bounded memory, to detect repeated texts.

/// The maximum size of the stored tail.
const MAX_TAIL: usize = 1 << 20;

/// A text that grows in deltas. Beyond `MAX_TAIL` only its end and its total length are stored.
#[derive(Debug, Default)]
pub(in crate::transcript) struct Tail {
    tail: String,
    length: usize,
}

impl Tail {
    pub(in crate::transcript) fn push(&mut self, text: &str) {
        self.length += text.len();
        if text.len() > MAX_TAIL {
            self.tail.clear();
        }
        // Only the end of a huge text is copied.
        self.tail
            .push_str(&text[text.ceil_char_boundary(text.len().saturating_sub(MAX_TAIL))..]);
        // Truncate only at twice the size, so that a long stream does not move memory with every delta.
        if self.tail.len() > 2 * MAX_TAIL {
            let from = self.tail.ceil_char_boundary(self.tail.len() - MAX_TAIL);
            self.tail.drain(..from);
        }
    }

    pub(in crate::transcript) fn len(&self) -> usize {
        self.length
    }

    pub(in crate::transcript) fn clear(&mut self) {
        self.length = 0;
        self.tail.clear();
        self.tail.shrink_to(MAX_TAIL / 16);
    }

    /// True if the accumulated text equals `text` (ignoring trailing whitespace).
    pub(in crate::transcript) fn equals(&self, text: &str) -> bool {
        let ignored = self.tail.len() - self.tail.trim_end().len();
        let text = text.trim_end();
        self.length - ignored == text.len() && text.ends_with(self.tail.trim_end())
    }

    /// True if the accumulated text ends with `text` (ignoring surrounding whitespace).
    pub(in crate::transcript) fn ends_with(&self, text: &str) -> bool {
        let (tail, text) = (self.tail.trim_end(), text.trim());
        if text.len() <= tail.len() {
            tail.ends_with(text)
        } else {
            self.length > self.tail.len() && self.length >= text.len() && text.ends_with(tail)
        }
    }

    /// True if `text` ends with the accumulated text (ignoring whitespace).
    pub(in crate::transcript) fn is_suffix_of(&self, text: &str) -> bool {
        let tail = self.tail.trim();
        self.length <= text.len() && !tail.is_empty() && text.trim_end().ends_with(tail)
    }

    /// The rest of `text` after the accumulated text, if `text` starts with it.
    pub(in crate::transcript) fn remainder_of<'a>(&self, text: &'a str) -> Option<&'a str> {
        let complete = self.length == self.tail.len() && !self.tail.is_empty();
        complete.then(|| text.strip_prefix(self.tail.as_str())).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail_of(deltas: &[&str]) -> Tail {
        let mut tail = Tail::default();
        deltas.iter().for_each(|delta| tail.push(delta));
        tail
    }

    #[test]
    fn deltas_equal_the_whole_text() {
        assert!(tail_of(&["LOOP_", "COMPLETE\n"]).equals("LOOP_COMPLETE"));
        assert!(!tail_of(&["LOOP_", "COMPLETE"]).equals("COMPLETE"));
    }

    #[test]
    fn ends_with_compares_the_end() {
        assert!(tail_of(&["first\n", "second\n"]).ends_with("second"));
        assert!(!tail_of(&["first\n"]).ends_with("second"));
        assert!(tail_of(&["x"]).ends_with(""));
    }

    #[test]
    fn remainder_of_a_truncated_text_is_returned() {
        assert_eq!(
            tail_of(&["LOOP_"]).remainder_of("LOOP_COMPLETE"),
            Some("COMPLETE")
        );
        assert_eq!(tail_of(&[]).remainder_of("LOOP_COMPLETE"), None);
    }

    #[test]
    fn text_longer_than_the_tail_is_recognized() {
        let delta = "é".repeat(MAX_TAIL / 3);
        let tail = tail_of(&[&delta, &delta, &delta, &delta, &delta, "end"]);
        let whole = delta.repeat(5) + "end";
        assert!(tail.tail.len() <= 2 * MAX_TAIL);
        assert!(tail.equals(&whole) && tail.ends_with(&whole));
        assert!(!tail.equals(&whole[2..]));
        assert_eq!(tail.remainder_of(&whole), None);
    }
}
