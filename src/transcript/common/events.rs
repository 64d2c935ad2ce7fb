//! The `Adapter` for formats in which every line is one JSON object.

use super::{Tools, json_text, push_unreadable};
use crate::event::TranscriptEvent;
use crate::transcript::Adapter;

/// A format whose lines are JSON objects.
pub(in crate::transcript) trait EventStream: Send {
    /// A parsed line.
    type Event<'a>;

    /// Parses a line. The error is a message for the user; a lone surrogate is an error, too.
    fn parse(text: &str) -> Result<Self::Event<'_>, String>;

    /// Converts one event. `line` is its source, for events that are not recognized.
    fn read(&mut self, event: &Self::Event<'_>, line: &str, out: &mut Vec<TranscriptEvent>);

    fn tools(&mut self) -> &mut Tools;
}

impl<T: EventStream> Adapter for T {
    fn feed(&mut self, line: &str, out: &mut Vec<TranscriptEvent>) {
        // Only the rare line that fails to parse is cleaned and parsed again.
        if let Ok(event) = T::parse(line) {
            return self.read(&event, line, out);
        }
        let text = json_text(line);
        if text.is_empty() {
            return;
        }
        match T::parse(&text) {
            Ok(event) => self.read(&event, line, out),
            Err(message) => push_unreadable(line, message, out),
        }
    }

    fn flush(&mut self, out: &mut Vec<TranscriptEvent>) {
        self.tools().close_all(out);
    }
}
