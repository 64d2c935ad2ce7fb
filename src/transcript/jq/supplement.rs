//! Combines the native adapter of an agent with the filter of a driver. The native adapter reads text, tools, usage and
//! sessions; the filter adds only output that the native adapter does not emit.

use super::{Filter, FilterError, FilterErrors};
use crate::event::{Tag, TranscriptEvent};
use crate::transcript::Adapter;
use crate::transcript::common::json_text;

/// Adds a filter to a native adapter.
pub fn with_filter(native: Box<dyn Adapter>, filter: Filter) -> Box<dyn Adapter> {
    Box::new(Supplement {
        native,
        filter,
        seen_text: String::new(),
        errors: FilterErrors::default(),
    })
}

struct Supplement {
    native: Box<dyn Adapter>,
    filter: Filter,
    /// The end of the text that the native adapter emitted, to detect filter output that repeats it.
    seen_text: String,
    errors: FilterErrors,
}

/// The maximum size of the stored text.
const MAX_SEEN_TEXT: usize = 256 * 1024;

impl Supplement {
    fn record_text(&mut self, text: &str) {
        self.seen_text.push_str(text);
        if self.seen_text.len() > 2 * MAX_SEEN_TEXT {
            let from = self
                .seen_text
                .ceil_char_boundary(self.seen_text.len() - MAX_SEEN_TEXT);
            self.seen_text.drain(..from);
        }
    }
}

impl Adapter for Supplement {
    fn feed(&mut self, line: &str, out: &mut Vec<TranscriptEvent>) {
        // A separate list: in `out`, a delta would be appended to a text that was already recorded.
        let mut events = Vec::new();
        self.native.feed(line, &mut events);
        let mut has_tool_event = false;
        for event in &events {
            match event {
                TranscriptEvent::Text { text, .. } => self.record_text(text),
                TranscriptEvent::ToolStart { .. }
                | TranscriptEvent::ToolOutput { .. }
                | TranscriptEvent::ToolEnd { .. } => has_tool_event = true,
                TranscriptEvent::Usage { .. } | TranscriptEvent::Meta { .. } => {}
            }
        }
        out.append(&mut events);
        let text = json_text(line);
        if text.is_empty() {
            return;
        }
        self.errors.lines += 1;
        let printed = match self.filter.apply(&text) {
            Ok(printed) => printed,
            // The native adapter has already reported it.
            Err(FilterError::NotJson(_)) => return,
            Err(FilterError::Failed { printed, reason }) => {
                self.errors.record(reason);
                printed
            }
        };
        let new_text = printed.trim();
        if !new_text.is_empty() && !has_tool_event && !self.seen_text.contains(new_text) {
            out.extend(new_text.lines().map(|line| TranscriptEvent::line(Tag::Sys, line)));
        }
    }

    fn flush(&mut self, out: &mut Vec<TranscriptEvent>) {
        self.native.flush(out);
        self.errors.report(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::{AdapterContext, find};

    fn read(filter: &str, lines: &[&str]) -> Vec<String> {
        let native = (find("claude").unwrap().open)(&AdapterContext::new(""));
        let mut adapter = with_filter(native, Filter::compile(filter).unwrap());
        let mut out = Vec::new();
        lines.iter().for_each(|line| adapter.feed(line, &mut out));
        adapter.flush(&mut out);
        out.iter()
            .filter_map(|event| match event {
                TranscriptEvent::Text { tag, text, .. } => Some(format!("{tag:?} {text}")),
                _ => None,
            })
            .collect()
    }

    const ANSWER: &str =
        r#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"LOOP_COMPLETE"}]}}"#;

    #[test]
    fn repeated_filter_output_is_ignored() {
        assert_eq!(read(".message.content[0].text", &[ANSWER]), ["Ai LOOP_COMPLETE"]);
        assert_eq!(read("empty", &[ANSWER]), ["Ai LOOP_COMPLETE"]);
    }

    #[test]
    fn repeated_filter_output_of_deltas_is_ignored() {
        let delta = |text: &str| {
            format!(
                r#"{{"type":"stream_event","event":{{"type":"content_block_delta","delta":{{"type":"text_delta","text":"{text}"}}}}}}"#
            )
        };
        let lines = [delta("one "), delta("two "), delta("three")];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let texts = read(".event.delta.text", &lines);
        assert_eq!(texts.concat().replace("Ai ", ""), "one two three");
    }

    #[test]
    fn additional_filter_output_is_system_text() {
        let lines = [r#"{"type":"weather","is":"fine"}"#, ANSWER];
        let filter = r#"if .type == "weather" then "the weather is \(.is)\n" else empty end"#;
        assert_eq!(
            read(filter, &lines),
            ["Sys the weather is fine", "Ai LOOP_COMPLETE"]
        );
    }
}
