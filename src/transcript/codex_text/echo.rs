//! The prompt, printed again before the answer. It is known, so it can be told from what follows line by line,
//! even where it contains words that look like marks.

use super::marks;

/// The lines of the prompt that are still to come, and those that came.
pub(super) struct Echo {
    expected: Vec<String>,
    heard: Vec<String>,
    /// The prompt came otherwise than it was sent: it ends where the next thing begins.
    astray: bool,
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
        let expected: Vec<String> = prompt.trim().lines().map(str::to_owned).collect();
        Self {
            astray: expected.is_empty(),
            expected,
            heard: Vec::new(),
        }
    }

    pub(super) fn hear(&mut self, line: &str) -> Heard {
        let next = self.expected.get(self.heard.len());
        self.astray |= next.is_none_or(|next| next.trim_end() != line.trim_end());
        if self.astray {
            let (words, stamped) = marks::without_time(line);
            let ends = if stamped {
                marks::stamped_mark(words)
            } else {
                marks::mark(words)
            };
            if ends.is_some() || words.starts_with("ERROR: ") {
                return Heard::Other;
            }
        }
        self.heard.push(line.to_owned());
        if !self.astray && self.heard.len() == self.expected.len() {
            Heard::Whole
        } else {
            Heard::Part
        }
    }

    pub(super) fn into_text(self) -> String {
        self.heard.join("\n")
    }
}
