//! Recognizes the prompt that codex repeats before the answer. The comparison with the known prompt works even if the
//! prompt contains lines that look like separators.

use super::separators;

/// The expected prompt and the lines received so far.
pub(super) struct Echo {
    expected: Vec<String>,
    /// The number of expected lines that have been matched.
    matched: usize,
    received: Vec<String>,
}

/// The result of comparing a line with the prompt.
pub(super) enum EchoMatch {
    /// The line belongs to the prompt, and more lines are expected.
    Partial,
    /// The line is the last line of the prompt.
    Complete,
    /// The line does not belong to the prompt.
    NotPrompt,
}

/// How many lines codex may add to a short prompt.
const MAX_INSERTED_LINES: usize = 64;

impl Echo {
    pub(super) fn new(prompt: &str) -> Self {
        Self {
            expected: prompt.trim().lines().map(|line| line.trim().to_owned()).collect(),
            matched: 0,
            received: Vec::new(),
        }
    }

    pub(super) fn match_line(&mut self, line: &str) -> EchoMatch {
        let Some(found) = self.find(line.trim()) else {
            // Codex inserted a line or changed the prompt: only a separator or an error ends it.
            let (text, has_timestamp) = separators::strip_timestamp(line);
            let separator = if has_timestamp {
                separators::timestamped_separator(text)
            } else {
                separators::separator(text)
            };
            let ended = separator.is_some() || text.starts_with("ERROR: ");
            // Without an end, the whole output would be taken for the prompt.
            if ended || self.received.len() > 2 * self.expected.len() + MAX_INSERTED_LINES {
                return EchoMatch::NotPrompt;
            }
            self.received.push(line.to_owned());
            return EchoMatch::Partial;
        };
        self.matched = found + 1;
        self.received.push(line.to_owned());
        if self.matched == self.expected.len() {
            EchoMatch::Complete
        } else {
            EchoMatch::Partial
        }
    }

    /// The index of the line among the expected lines: the next one, or a later one if lines were omitted.
    fn find(&self, line: &str) -> Option<usize> {
        let left = self.expected.get(self.matched..)?;
        if left.first().is_some_and(|next| next == line) {
            return Some(self.matched);
        }
        if line.is_empty() {
            return None;
        }
        let ahead = left.iter().position(|expected| expected == line)?;
        Some(self.matched + ahead)
    }

    pub(super) fn into_text(self) -> String {
        self.received.join("\n")
    }
}
