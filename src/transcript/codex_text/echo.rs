//! The prompt, printed again before the answer. It is known, so it can be told from what follows line by line,
//! even where it contains words that look like marks.

use super::separators;

/// The prompt as it was sent, and how much of it came.
pub(super) struct Echo {
    expected: Vec<String>,
    /// How many of the expected lines are behind us.
    passed: usize,
    heard: Vec<String>,
}

pub(super) enum Heard {
    /// The line belongs to the prompt, and more is to come.
    Part,
    /// The line was the prompt's last.
    Whole,
    /// The line is no part of the prompt.
    Other,
}

impl Echo {
    pub(super) fn of(prompt: &str) -> Self {
        Self {
            expected: prompt.trim().lines().map(|line| line.trim().to_owned()).collect(),
            passed: 0,
            heard: Vec::new(),
        }
    }

    pub(super) fn hear(&mut self, line: &str) -> Heard {
        let Some(found) = self.find(line.trim()) else {
            // The prompt came with something between its lines, or otherwise than it was sent.
            let (words, stamped) = separators::without_time(line);
            let ends = if stamped {
                separators::stamped_mark(words)
            } else {
                separators::mark(words)
            };
            if ends.is_some() || words.starts_with("ERROR: ") {
                return Heard::Other;
            }
            self.heard.push(line.to_owned());
            return Heard::Part;
        };
        self.passed = found + 1;
        self.heard.push(line.to_owned());
        if self.passed == self.expected.len() {
            Heard::Whole
        } else {
            Heard::Part
        }
    }

    /// Where among the expected lines this one stands: the next, or a later one if lines were left out.
    fn find(&self, line: &str) -> Option<usize> {
        let left = self.expected.get(self.passed..)?;
        if left.first().is_some_and(|next| next == line) {
            return Some(self.passed);
        }
        if line.is_empty() {
            return None;
        }
        let ahead = left.iter().position(|expected| expected == line)?;
        Some(self.passed + ahead)
    }

    pub(super) fn into_text(self) -> String {
        self.heard.join("\n")
    }
}
