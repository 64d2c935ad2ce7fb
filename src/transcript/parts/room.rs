//! Texts that were told and seen, whose room the next ones take: an agent that floods us would otherwise have us ask for memory,
//! and give it back, for every word.

/// Room for texts.
#[derive(Debug, Default)]
pub(in crate::transcript) struct Room {
    empty: Vec<String>,
}

/// As much as is told at once, at most.
const MOST: usize = 4096;

impl Room {
    pub(super) fn for_text(&mut self, text: &str) -> String {
        let mut room = self.empty.pop().unwrap_or_default();
        room.push_str(text);
        room
    }

    pub(super) fn take_back(&mut self, mut text: String) {
        if self.empty.len() < MOST {
            text.clear();
            self.empty.push(text);
        }
    }
}
