//! `jq`: an agent that prints JSON lines, and a jq filter of the user's (or of a driver) that says what of them is to
//! be read. What the filter prints is the assistant's, as `jq -j` would print it; nothing else is known.

mod filter;
mod fuel;
mod print;
mod supplement;

pub use filter::{CompileError, Filter, FilterError};
pub use supplement::beside;

use super::common::{json_text, say_unreadable};
use super::{Adapter, Capabilities, Format, Opening};
use crate::event::{Tag, TranscriptEvent};

/// A text that never ends its line is shown in pieces of this size.
const LONGEST_LINE: usize = 64 * 1024;

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
    // Without a filter, every line stands for itself.
    open: |_| Box::new(Jq::new(None)),
};

/// Reads a session in this format, with this filter or beside it.
pub fn read(format: &Format, filter: Option<&Filter>, opening: &Opening<'_>) -> Box<dyn Adapter> {
    match filter {
        None => (format.open)(opening),
        Some(filter) if format.name == FORMAT.name => open(filter.clone()),
        Some(filter) => beside((format.open)(opening), filter.clone()),
    }
}

/// An adapter with this filter.
pub fn open(filter: Filter) -> Box<dyn Adapter> {
    Box::new(Jq::new(Some(filter)))
}

struct Jq {
    filter: Option<Filter>,
    /// What was printed since the last end of a line.
    unfinished: String,
    trouble: Trouble,
}

/// What went wrong so far; told once, at the end.
#[derive(Default)]
struct Trouble {
    lines: u64,
    failed: u64,
    first: Option<String>,
}

impl Jq {
    fn new(filter: Option<Filter>) -> Self {
        Self {
            filter,
            unfinished: String::new(),
            trouble: Trouble::default(),
        }
    }

    fn say(&mut self, text: &str, out: &mut Vec<TranscriptEvent>) {
        self.unfinished.push_str(text);
        while let Some(end) = self.unfinished.find('\n') {
            let rest = self.unfinished.split_off(end + 1);
            let mut line = std::mem::replace(&mut self.unfinished, rest);
            line.pop();
            out.push(TranscriptEvent::line(Tag::Ai, line));
        }
        if self.unfinished.len() > LONGEST_LINE {
            out.push(TranscriptEvent::line(
                Tag::Ai,
                std::mem::take(&mut self.unfinished),
            ));
        }
    }
}

impl Trouble {
    fn count(&mut self, reason: String) {
        self.failed += 1;
        self.first.get_or_insert(reason);
    }

    fn tell(&self, out: &mut Vec<TranscriptEvent>) {
        if let Some(first) = &self.first {
            let text = format!(
                "the jq filter failed on {} of {} lines; the first time: {first}",
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
        self.trouble.lines += 1;
        match filter.apply(&text) {
            Ok(printed) => self.say(&printed, out),
            Err(FilterError::NotJson(message)) => say_unreadable(line, message, out),
            Err(FilterError::Failed { printed, reason }) => {
                self.trouble.count(reason);
                self.say(&printed, out);
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
        self.trouble.tell(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(filter: &str, lines: &[&str]) -> Vec<TranscriptEvent> {
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
    fn pieces_of_a_line_are_joined_across_events() {
        let filter = r#"select(.type == "delta") | .text"#;
        let lines = [
            r#"{"type":"delta","text":"LOOP_"}"#,
            r#"{"type":"other"}"#,
            r#"{"type":"delta","text":"COMPLETE\nmore"}"#,
        ];
        assert_eq!(heard(filter, &lines), ai(&["LOOP_COMPLETE", "more"]));
    }

    #[test]
    fn an_error_in_one_line_is_swallowed_and_counted() {
        let out = heard(".a + 1, \"\\n\"", &[r#"{"a":"x"}"#, r#"{"a":1}"#, r#"{"a":[]}"#]);
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
    fn a_line_that_is_no_json_is_shown_and_the_next_one_is_heard() {
        let out = heard(".text", &["Error: not logged in", r#"{"text":"hi"}"#]);
        assert_eq!(out.len(), 3, "{out:?}");
        assert_eq!(out[1], TranscriptEvent::line(Tag::Sys, "Error: not logged in"));
        assert_eq!(out[2..], ai(&["hi"])[..]);
    }

    #[test]
    fn empty_says_nothing() {
        assert_eq!(heard("empty", &[r#"{"text":"hi"}"#]), []);
    }

    #[test]
    fn a_text_without_line_endings_does_not_grow_for_ever() {
        let long = format!(r#"{{"text":"{}"}}"#, "x".repeat(LONGEST_LINE / 2 + 1));
        let out = heard(".text", &[&long, &long, &long]);
        assert_eq!(out.len(), 2);
    }
}
