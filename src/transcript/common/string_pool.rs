//! Texts that were told and seen, whose room the next ones take: an agent that floods us would otherwise have us ask for memory,
//! and give it back, for every word.

use std::borrow::Cow;

/// StringPool for texts.
#[derive(Debug, Default)]
pub(super) struct StringPool {
    empty: Vec<String>,
    /// What they take.
    bytes: usize,
}

/// More than is told at once.
const MOST: usize = 2 << 20;

impl StringPool {
    /// The text as one to keep. One that has room of its own keeps that.
    #[inline]
    pub(super) fn for_text<'a>(&mut self, text: impl Into<Cow<'a, str>>) -> String {
        match text.into() {
            Cow::Borrowed(text) => self.copy_of(text),
            Cow::Owned(text) => text,
        }
    }

    fn copy_of(&mut self, text: &str) -> String {
        let Some(mut room) = self.empty.pop() else {
            return text.to_owned();
        };
        self.bytes -= size(&room);
        room.push_str(text);
        room
    }

    pub(super) fn take_back(&mut self, mut text: String) {
        if self.bytes + size(&text) <= MOST {
            text.clear();
            self.bytes += size(&text);
            self.empty.push(text);
        }
    }
}

fn size(text: &String) -> usize {
    text.capacity() + size_of::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_text_takes_the_room_of_one_that_was_seen() {
        let mut room = StringPool::default();
        let first = room.for_text("a longer text");
        let place = first.as_ptr();
        room.take_back(first);
        let second = room.for_text("short");
        assert_eq!((second.as_ptr(), second.as_str()), (place, "short"));
    }

    #[test]
    fn a_text_with_room_of_its_own_is_not_copied() {
        let text = "long".repeat(1000);
        let place = text.as_ptr();
        let kept = StringPool::default().for_text(text);
        assert_eq!(kept.as_ptr(), place);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut room = StringPool::default();
        for _ in 0..1000 {
            room.take_back("x".repeat(MOST / 100));
        }
        assert!(room.bytes <= MOST && room.empty.len() <= 100);
        while !room.empty.is_empty() {
            let _ = room.for_text("");
        }
        assert_eq!(room.bytes, 0);
    }
}
