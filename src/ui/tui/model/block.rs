//! The blocks of a transcript: text, tool calls, gates and notes. The size of each block is bounded.

use std::time::Duration;

use jiff::Timestamp;
use memchr::memchr_iter;

use crate::event::{GateResult, Tag, ToolStatus};
use crate::ui::Tone;
use crate::ui::plain::head;

/// One block of a transcript. The render thread shares it, so each change creates a new version.
#[derive(Debug, Clone)]
pub(in crate::ui::tui) struct TranscriptBlock {
    /// 0, 1, 2 … within one transcript.
    pub(in crate::ui::tui) id: u64,
    pub(in crate::ui::tui) version: u64,
    /// Whether a subagent produced it, inside a tool call.
    pub(in crate::ui::tui) nested: bool,
    pub(in crate::ui::tui) body: BlockBody,
}

#[derive(Debug, Clone)]
pub(in crate::ui::tui) enum BlockBody {
    Text(TextBlock),
    Tool(ToolCall),
    Gate(GateBlock),
    Note(Note),
}

#[derive(Debug, Clone)]
pub(in crate::ui::tui) struct TextBlock {
    pub(in crate::ui::tui) tag: Tag,
    pub(in crate::ui::tui) text: String,
    /// Continues the previous block, which was full.
    pub(in crate::ui::tui) continued: bool,
}

#[derive(Debug, Clone)]
pub(in crate::ui::tui) struct ToolCall {
    pub(in crate::ui::tui) name: String,
    pub(in crate::ui::tui) argument: String,
    /// The input as JSON, truncated.
    pub(in crate::ui::tui) input: String,
    pub(in crate::ui::tui) output: OutputExcerpt,
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
    /// The agent ended without reporting the end of the tool call.
    Unfinished,
}

#[derive(Debug, Clone)]
pub(in crate::ui::tui) struct GateBlock {
    pub(in crate::ui::tui) name: String,
    pub(in crate::ui::tui) command: String,
    pub(in crate::ui::tui) started: Timestamp,
    pub(in crate::ui::tui) end: Option<(GateResult, Duration)>,
    pub(in crate::ui::tui) output: OutputExcerpt,
}

/// A line about the run, with a mark in front.
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

impl BlockBody {
    /// Approximate memory use.
    pub(in crate::ui::tui) fn bytes(&self) -> usize {
        const OVERHEAD: usize = 200;
        OVERHEAD
            + match self {
                Self::Text(text) => text.text.len(),
                Self::Tool(tool) => tool.input.len() + tool.output.bytes(),
                Self::Gate(gate) => gate.output.bytes(),
                Self::Note(note) => note.text.len(),
            }
    }
}

/// The beginning and the end of an output of any length.
#[derive(Debug, Clone, Default)]
pub(in crate::ui::tui) struct OutputExcerpt {
    head: String,
    tail: String,
    omitted: u64,
    newlines: u64,
    ends_mid_line: bool,
}

/// Bytes of the beginning.
const HEAD: usize = 8 * 1024;
/// Bytes of the end.
const TAIL: usize = 24 * 1024;

impl OutputExcerpt {
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
        if self.tail.is_empty() && self.omitted == 0 {
            let first = head(text, HEAD.saturating_sub(self.head.len()));
            self.head.push_str(first);
            rest = &text[first.len()..];
        }
        if rest.len() > TAIL {
            let from = rest.ceil_char_boundary(rest.len() - TAIL);
            self.omitted += (self.tail.len() + from) as u64;
            self.tail.clear();
            rest = &rest[from..];
        }
        self.tail.push_str(rest);
        if self.tail.len() > 2 * TAIL {
            let excess = self.tail.ceil_char_boundary(self.tail.len() - TAIL);
            self.tail.drain(..excess);
            self.omitted += excess as u64;
        }
    }

    pub(in crate::ui::tui) fn is_empty(&self) -> bool {
        self.head.is_empty()
    }

    pub(in crate::ui::tui) fn lines(&self) -> u64 {
        self.newlines + u64::from(self.ends_mid_line)
    }

    pub(in crate::ui::tui) fn text(&self) -> String {
        match self.omitted {
            0 => format!("{}{}", self.head, self.tail),
            bytes => format!("{}\n[… {bytes} bytes omitted …]\n{}", self.head, self.tail),
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
    fn excerpt_keeps_both_ends_in_bounded_memory() {
        let mut excerpt = OutputExcerpt::of("first\n");
        for _ in 0..200 {
            excerpt.add(&"é".repeat(5000));
        }
        excerpt.add("\nlast");
        let text = excerpt.text();
        assert!(text.starts_with("first\n") && text.ends_with("\nlast"));
        assert!(text.contains("bytes omitted") && text.len() < HEAD + 3 * TAIL);
        assert_eq!(excerpt.lines(), 3);
        let mut huge = OutputExcerpt::default();
        huge.add(&"x".repeat(10_000_000));
        assert!(huge.text().len() < HEAD + 2 * TAIL);
    }
}
