//! `plain`: unstructured output. Every line is a line of the assistant's answer.

use super::{Adapter, Capabilities, Format};
use crate::event::{Tag, TranscriptEvent};

pub(super) const FORMAT: Format = Format {
    name: "plain",
    capabilities: Capabilities {
        roles: false,
        messages: false,
        tools: false,
        usage: false,
        costs: false,
        sessions: false,
        prompt_hiding: false,
        terminal_event: false,
    },
    open: |_| Box::new(Plain),
};

struct Plain;

impl Adapter for Plain {
    fn feed(&mut self, line: &str, out: &mut Vec<TranscriptEvent>) {
        out.push(TranscriptEvent::line(Tag::Ai, line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::read_all;

    #[test]
    fn every_line_is_assistant_text() {
        let expected = ["a", "", "@@RALPH@@ {}"].map(|line| TranscriptEvent::line(Tag::Ai, line));
        assert_eq!(read_all("plain", "", "a\n\n@@RALPH@@ {}"), expected);
    }
}
