//! What the assistant has said, as far as it takes to know whether a final message says it once more.

/// Of a longer text only the end is known, and that is enough: two texts do not end alike for so long by chance.
const KEPT: usize = 16 * 1024;

/// All that was said, and the last message of it.
#[derive(Debug, Clone, Default)]
pub(in crate::ui) struct MessageDedup {
    message: Ending,
    everything: Ending,
}

impl MessageDedup {
    /// What is said next is another message.
    pub(in crate::ui) fn begin_message(&mut self) {
        self.message = Ending::default();
    }

    pub(in crate::ui) fn add(&mut self, text: &str) {
        self.message.add(text);
        self.everything.add(text);
    }

    /// Whether the text was said before: as the last message, or as all of them. White space makes no difference.
    pub(in crate::ui) fn has(&self, text: &str) -> bool {
        self.message.is_of(text) || self.everything.is_of(text)
    }
}

/// The end of a text that grows.
#[derive(Debug, Clone, Default)]
struct Ending {
    kept: Vec<u8>,
    /// Something stood before it.
    is_cut: bool,
}

impl Ending {
    fn add(&mut self, text: &str) {
        let text = text.as_bytes();
        let new = &text[text.len().saturating_sub(KEPT)..];
        let kept = if new.len() < text.len() {
            0
        } else if self.kept.len() + new.len() > 2 * KEPT {
            // Only at twice the size, so that memory does not move with every piece.
            KEPT
        } else {
            self.kept.len()
        };
        let gone = self.kept.len().saturating_sub(kept);
        self.is_cut |= gone > 0 || new.len() < text.len();
        self.kept.drain(..gone);
        self.kept.extend_from_slice(new);
    }

    fn is_of(&self, text: &str) -> bool {
        let mut theirs = letters_from_the_end(text.as_bytes());
        letters_from_the_end(&self.kept).all(|letter| theirs.next() == Some(letter))
            && (self.is_cut || theirs.next().is_none())
    }
}

fn letters_from_the_end(bytes: &[u8]) -> impl Iterator<Item = &u8> {
    bytes.iter().rev().filter(|byte| !byte.is_ascii_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(messages: &[&[&str]]) -> MessageDedup {
        let mut said = MessageDedup::default();
        for message in messages {
            said.begin_message();
            message.iter().for_each(|piece| said.add(piece));
        }
        said
    }

    #[test]
    fn the_last_message_and_all_of_them_are_known_again() {
        let said = said(&[&["one"], &["tw", "o\n", "three"]]);
        assert!(said.has("two three") && said.has("onetwo\nthree\n"));
        assert!(!said.has("three") && !said.has("one") && !said.has("zero two three"));
    }

    #[test]
    fn a_text_longer_than_memory_is_known_by_its_end() {
        let piece = "é".repeat(KEPT / 3);
        let pieces = [&*piece, &piece, &piece, &piece, "end"];
        let said = said(&[&pieces]);
        let whole = pieces.concat();
        assert!(said.has(&whole) && !said.has(&format!("{whole}.")));
        assert!(said.message.kept.len() <= 2 * KEPT);
    }

    #[test]
    fn one_huge_text_leaves_no_more_than_its_end() {
        let huge = "x".repeat(10 * KEPT) + "end";
        let said = said(&[&["before", &huge]]);
        assert!(said.has(&format!("before{huge}")));
        assert!(said.message.kept.len() <= 2 * KEPT);
    }
}
