//! `jq`: JSON lines that a jq filter of the user or of a driver converts to text. The output of the filter, as `jq -j` prints
//! it, is assistant text.

mod filter;
mod fuel;
mod print;
mod supplement;

pub use filter::{CompileError, Filter, FilterError};
pub use supplement::with_filter;

use super::common::{json_text, push_unreadable};
use super::{Adapter, AdapterContext, Capabilities, Format};
use crate::event::{Tag, TranscriptEvent};

/// Longer lines are split.
const MAX_LINE_LENGTH: usize = 64 * 1024;

pub(super) const FORMAT: Format = Format {
    name: "jq",
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
    // Without a filter, every line is assistant text.
    open: |_| Box::new(Jq::new(None)),
};

/// Opens the adapter of the format. A filter replaces the `jq` format and supplements any other format.
pub fn open_adapter(
    format: &Format,
    filter: Option<&Filter>,
    context: &AdapterContext<'_>,
) -> Box<dyn Adapter> {
    match filter {
        None => (format.open)(context),
        Some(filter) if format.name == FORMAT.name => open(filter.clone()),
        Some(filter) => with_filter((format.open)(context), filter.clone()),
    }
}

/// Opens the `jq` adapter with this filter.
pub fn open(filter: Filter) -> Box<dyn Adapter> {
    Box::new(Jq::new(Some(filter)))
}

struct Jq {
    filter: Option<Filter>,
    /// Output since the last newline.
    unfinished: String,
    errors: FilterErrors,
}

/// Counts the errors of a filter, which are reported once at the end.
#[derive(Default)]
struct FilterErrors {
    lines: u64,
    failed: u64,
    /// The first error.
    first: Option<String>,
}

impl Jq {
    fn new(filter: Option<Filter>) -> Self {
        Self {
            filter,
            unfinished: String::new(),
            errors: FilterErrors::default(),
        }
    }

    fn push_text(&mut self, text: &str, out: &mut Vec<TranscriptEvent>) {
        self.unfinished.push_str(text);
        while let Some(end) = self.unfinished.find('\n') {
            let rest = self.unfinished.split_off(end + 1);
            let mut line = std::mem::replace(&mut self.unfinished, rest);
            line.pop();
            out.push(TranscriptEvent::line(Tag::Ai, line));
        }
        if self.unfinished.len() > MAX_LINE_LENGTH {
            out.push(TranscriptEvent::line(
                Tag::Ai,
                std::mem::take(&mut self.unfinished),
            ));
        }
    }
}

impl FilterErrors {
    fn record(&mut self, reason: String) {
        self.failed += 1;
        self.first.get_or_insert(reason);
    }

    fn report(&self, out: &mut Vec<TranscriptEvent>) {
        if let Some(first) = &self.first {
            let text = format!(
                "the jq filter failed on {} of {} lines; first error: {first}",
                self.failed, self.lines
            );
            out.push(TranscriptEvent::line(Tag::Sys, text));
        }
    }
}

impl Adapter for Jq {
    fn feed(&mut self, line: &str, out: &mut Vec<TranscriptEvent>) {
        let Some(filter) = &self.filter else {
            out.push(TranscriptEvent::line(Tag::Ai, line));
            return;
        };
        let text = json_text(line);
        if text.is_empty() {
            return;
        }
        self.errors.lines += 1;
        match filter.apply(&text) {
            Ok(printed) => self.push_text(&printed, out),
            Err(FilterError::NotJson(message)) => push_unreadable(line, message, out),
            Err(FilterError::Failed { printed, reason }) => {
                self.errors.record(reason);
                self.push_text(&printed, out);
            }
        }
    }

    fn flush(&mut self, out: &mut Vec<TranscriptEvent>) {
        if !self.unfinished.is_empty() {
            out.push(TranscriptEvent::line(
                Tag::Ai,
                std::mem::take(&mut self.unfinished),
            ));
        }
        self.errors.report(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(filter: &str, lines: &[&str]) -> Vec<TranscriptEvent> {
        let mut adapter = open(Filter::compile(filter).unwrap());
        let mut out = Vec::new();
        lines.iter().for_each(|line| adapter.feed(line, &mut out));
        adapter.flush(&mut out);
        out
    }

    fn ai(lines: &[&str]) -> Vec<TranscriptEvent> {
        lines
            .iter()
            .map(|line| TranscriptEvent::line(Tag::Ai, *line))
            .collect()
    }

    #[test]
    fn parts_of_a_line_are_joined_across_events() {
        let filter = r#"select(.type == "delta") | .text"#;
        let lines = [
            r#"{"type":"delta","text":"LOOP_"}"#,
            r#"{"type":"other"}"#,
            r#"{"type":"delta","text":"COMPLETE\nmore"}"#,
        ];
        assert_eq!(read(filter, &lines), ai(&["LOOP_COMPLETE", "more"]));
    }

    #[test]
    fn filter_errors_are_counted_and_reported_at_the_end() {
        let out = read(".a + 1, \"\\n\"", &[r#"{"a":"x"}"#, r#"{"a":1}"#, r#"{"a":[]}"#]);
        assert_eq!(out[..1], ai(&["2"])[..]);
        let TranscriptEvent::Text {
            tag: Tag::Sys, text, ..
        } = &out[1]
        else {
            panic!("{out:?}");
        };
        assert!(text.starts_with("the jq filter failed on 2 of 3 lines"), "{text}");
    }

    #[test]
    fn non_json_line_is_shown_and_the_next_line_is_read() {
        let out = read(".text", &["Error: not logged in", r#"{"text":"hi"}"#]);
        assert_eq!(out.len(), 3, "{out:?}");
        assert_eq!(out[1], TranscriptEvent::line(Tag::Sys, "Error: not logged in"));
        assert_eq!(out[2..], ai(&["hi"])[..]);
    }

    #[test]
    fn empty_output_emits_nothing() {
        assert_eq!(read("empty", &[r#"{"text":"hi"}"#]), []);
    }

    #[test]
    fn text_without_newline_is_split() {
        let long = format!(r#"{{"text":"{}"}}"#, "x".repeat(MAX_LINE_LENGTH / 2 + 1));
        let out = read(".text", &[&long, &long, &long]);
        assert_eq!(out.len(), 2);
    }
}
