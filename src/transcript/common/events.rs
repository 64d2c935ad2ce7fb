//! A stream in which every line is one JSON object: what to do with each is all that such a format must say.

use super::{Assembler, Tools, json_text, say_unreadable};
use crate::event::TranscriptEvent;
use crate::transcript::Adapter;

/// A format whose lines are JSON objects.
pub(in crate::transcript) trait EventStream: Send {
    type Event<'a>;

    /// Reads a line that differs little from an earlier one, if this is such a line.
    fn read_alike(&mut self, _line: &str, _out: &mut Vec<TranscriptEvent>) -> Alike {
        Alike::No
    }

    /// The event that a text is; the error is a sentence for the user. Half a character is one, too.
    fn parse(text: &str) -> Result<Self::Event<'_>, String>;

    /// One event. `line` is what it was read from, for what cannot be understood after all.
    fn read(&mut self, event: &Self::Event<'_>, line: &str, out: &mut Vec<TranscriptEvent>);

    fn speech(&mut self) -> &mut Assembler;

    fn tools(&mut self) -> &mut Tools;
}

/// Whether a line was like an earlier one, and has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(in crate::transcript) enum Alike {
    Yes,
    No,
}

impl<T: EventStream> Adapter for T {
    fn feed(&mut self, line: &str, out: &mut Vec<TranscriptEvent>) {
        if self.read_alike(line, out) == Alike::Yes {
            return;
        }
        // Hardly any line has to be mended, and one that has cannot be read as it is.
        if let Ok(event) = T::parse(line) {
            return self.read(&event, line, out);
        }
        let text = json_text(line);
        if text.is_empty() {
            return;
        }
        match T::parse(&text) {
            Ok(event) => self.read(&event, line, out),
            Err(message) => say_unreadable(line, message, out),
        }
    }

    fn take_back(&mut self, event: TranscriptEvent) {
        match event {
            TranscriptEvent::Text { text, .. } => self.speech().take_back(text),
            other => self.tools().take_back(other),
        }
    }

    fn flush(&mut self, out: &mut Vec<TranscriptEvent>) {
        self.tools().close_all(out);
    }
}
