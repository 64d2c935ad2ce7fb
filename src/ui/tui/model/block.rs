//! The pieces of a transcript: something said, a tool call, a gate, a note. Bounded, each of them.

use std::time::Duration;

use jiff::Timestamp;
use memchr::memchr_iter;

use crate::event::{GateResult, Tag, ToolStatus};
use crate::ui::Tone;
use crate::ui::plain::head;

/// One piece of a transcript. It is shared with whoever draws it; a change is a new version.
#[derive(Debug, Clone)]
pub(in crate::ui::tui) struct Block {
    /// 0, 1, 2 … within one transcript.
    pub(in crate::ui::tui) id: u64,
    pub(in crate::ui::tui) version: u64,
    /// Inside a tool call: a subagent.
    pub(in crate::ui::tui) nested: bool,
    pub(in crate::ui::tui) body: Body,
}

#[derive(Debug, Clone)]
pub(in crate::ui::tui) enum Body {
    Said(Said),
    Tool(Tool),
    Gate(Gate),
    Note(Note),
}

#[derive(Debug, Clone)]
pub(in crate::ui::tui) struct Said {
    pub(in crate::ui::tui) tag: Tag,
    pub(in crate::ui::tui) text: String,
    /// Goes on from the block before, which was full.
    pub(in crate::ui::tui) continued: bool,
}

#[derive(Debug, Clone)]
pub(in crate::ui::tui) struct Tool {
    pub(in crate::ui::tui) name: String,
    pub(in crate::ui::tui) argument: String,
    /// The input as JSON, as far as it is kept.
    pub(in crate::ui::tui) input: String,
    pub(in crate::ui::tui) output: Excerpt,
    pub(in crate::ui::tui) started: Timestamp,
    pub(in crate::ui::tui) state: ToolState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ui::tui) enum ToolState {
    Running,
    Ended {
        status: ToolStatus,
        took: Option<Duration>,
    },
    /// The agent ended before the tool did, as far as it said.
    Lost,
}

#[derive(Debug, Clone)]
pub(in crate::ui::tui) struct Gate {
    pub(in crate::ui::tui) name: String,
    pub(in crate::ui::tui) command: String,
    pub(in crate::ui::tui) started: Timestamp,
    pub(in crate::ui::tui) end: Option<(GateResult, Duration)>,
    pub(in crate::ui::tui) output: Excerpt,
}

/// A line about the run: a mark to find it by, and words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::ui::tui) struct Note {
    pub(in crate::ui::tui) mark: &'static str,
    pub(in crate::ui::tui) tone: Tone,
    pub(in crate::ui::tui) text: String,
}

impl Note {
    pub(in crate::ui::tui) fn new(mark: &'static str, tone: Tone, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { mark, tone, text }
    }
}

impl Body {
    /// About how much memory it takes.
    pub(in crate::ui::tui) fn bytes(&self) -> usize {
        const EACH: usize = 200;
        EACH + match self {
            Self::Said(said) => said.text.len(),
            Self::Tool(tool) => tool.input.len() + tool.output.bytes(),
            Self::Gate(gate) => gate.output.bytes(),
            Self::Note(note) => note.text.len(),
        }
    }
}

/// The beginning and the end of a text of any length.
#[derive(Debug, Clone, Default)]
pub(in crate::ui::tui) struct Excerpt {
    head: String,
    tail: String,
    left_out: u64,
    newlines: u64,
    ends_mid_line: bool,
}

/// How much of each end is kept.
const HEAD: usize = 8 * 1024;
const TAIL: usize = 24 * 1024;

impl Excerpt {
    pub(in crate::ui::tui) fn of(text: &str) -> Self {
        let mut excerpt = Self::default();
        excerpt.add(text);
        excerpt
    }

    pub(in crate::ui::tui) fn add(&mut self, text: &str) {
        let Some(last) = text.as_bytes().last() else {
            return;
        };
        self.newlines += memchr_iter(b'\n', text.as_bytes()).count() as u64;
        self.ends_mid_line = *last != b'\n';
        let mut rest = text;
        if self.tail.is_empty() && self.left_out == 0 {
            let first = head(text, HEAD.saturating_sub(self.head.len()));
            self.head.push_str(first);
            rest = &text[first.len()..];
        }
        if rest.len() > TAIL {
            let from = rest.ceil_char_boundary(rest.len() - TAIL);
            self.left_out += (self.tail.len() + from) as u64;
            self.tail.clear();
            rest = &rest[from..];
        }
        self.tail.push_str(rest);
        if self.tail.len() > 2 * TAIL {
            let gone = self.tail.ceil_char_boundary(self.tail.len() - TAIL);
            self.tail.drain(..gone);
            self.left_out += gone as u64;
        }
    }

    pub(in crate::ui::tui) fn is_empty(&self) -> bool {
        self.head.is_empty()
    }

    pub(in crate::ui::tui) fn lines(&self) -> u64 {
        self.newlines + u64::from(self.ends_mid_line)
    }

    pub(in crate::ui::tui) fn text(&self) -> String {
        match self.left_out {
            0 => format!("{}{}", self.head, self.tail),
            bytes => format!("{}\n[… {bytes} bytes left out …]\n{}", self.head, self.tail),
        }
    }

    fn bytes(&self) -> usize {
        self.head.len() + self.tail.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_keeps_both_ends_of_any_length_in_bounded_memory() {
        let mut excerpt = Excerpt::of("first\n");
        for _ in 0..200 {
            excerpt.add(&"é".repeat(5000));
        }
        excerpt.add("\nlast");
        let text = excerpt.text();
        assert!(text.starts_with("first\n") && text.ends_with("\nlast"));
        assert!(text.contains("bytes left out") && text.len() < HEAD + 3 * TAIL);
        assert_eq!(excerpt.lines(), 3);
        let mut huge = Excerpt::default();
        huge.add(&"x".repeat(10_000_000));
        assert!(huge.text().len() < HEAD + 2 * TAIL);
    }
}
