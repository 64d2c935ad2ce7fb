//! A driver's filter beside the native format of an agent that we know. The native adapter tells text, tools, usage
//! and session; the filter adds what it would have printed and the native adapter did not say.

use super::super::Adapter;
use super::super::common::json_text;
use super::{Filter, FilterError, Trouble};
use crate::event::{Tag, TranscriptEvent};

/// The native adapter, with the filter beside it.
pub fn beside(native: Box<dyn Adapter>, filter: Filter) -> Box<dyn Adapter> {
    Box::new(Supplement {
        native,
        filter,
        said: String::new(),
        trouble: Trouble::default(),
    })
}

struct Supplement {
    native: Box<dyn Adapter>,
    filter: Filter,
    /// The end of what the native adapter said: a terminal event that the filter repeats is not news.
    said: String,
    trouble: Trouble,
}

/// So much of what was said is remembered.
const REMEMBERED: usize = 256 * 1024;

impl Supplement {
    fn remember(&mut self, text: &str) {
        self.said.push_str(text);
        if self.said.len() > 2 * REMEMBERED {
            let from = self.said.ceil_char_boundary(self.said.len() - REMEMBERED);
            self.said.drain(..from);
        }
    }
}

impl Adapter for Supplement {
    fn feed(&mut self, line: &str, out: &mut Vec<TranscriptEvent>) {
        // A list of its own: there a piece does not become a part of what was remembered before.
        let mut told = Vec::new();
        self.native.feed(line, &mut told);
        let mut tells_tools = false;
        for event in &told {
            match event {
                TranscriptEvent::Text { text, .. } => self.remember(text),
                TranscriptEvent::ToolStart { .. }
                | TranscriptEvent::ToolOutput { .. }
                | TranscriptEvent::ToolEnd { .. } => tells_tools = true,
                TranscriptEvent::Usage { .. } | TranscriptEvent::Meta { .. } => {}
            }
        }
        out.append(&mut told);
        let text = json_text(line);
        if text.is_empty() {
            return;
        }
        self.trouble.lines += 1;
        let printed = match self.filter.apply(&text) {
            Ok(printed) => printed,
            // The native adapter has shown it.
            Err(FilterError::NotJson(_)) => return,
            Err(FilterError::Failed { printed, reason }) => {
                self.trouble.count(reason);
                printed
            }
        };
        let news = printed.trim();
        if !news.is_empty() && !tells_tools && !self.said.contains(news) {
            out.extend(news.lines().map(|line| TranscriptEvent::line(Tag::Sys, line)));
        }
    }

    fn take_back(&mut self, event: TranscriptEvent) {
        self.native.take_back(event);
    }

    fn flush(&mut self, out: &mut Vec<TranscriptEvent>) {
        self.native.flush(out);
        self.trouble.tell(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::{Opening, find};

    fn read(filter: &str, lines: &[&str]) -> Vec<String> {
        let native = (find("claude").unwrap().open)(&Opening { prompt: "" });
        let mut adapter = beside(native, Filter::compile(filter).unwrap());
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
    fn a_filter_that_says_the_same_is_not_heard_twice() {
        assert_eq!(read(".message.content[0].text", &[ANSWER]), ["Ai LOOP_COMPLETE"]);
        assert_eq!(read("empty", &[ANSWER]), ["Ai LOOP_COMPLETE"]);
    }

    #[test]
    fn pieces_that_arrive_together_are_not_heard_twice_either() {
        let piece = |text: &str| {
            format!(
                r#"{{"type":"stream_event","event":{{"type":"content_block_delta","delta":{{"type":"text_delta","text":"{text}"}}}}}}"#
            )
        };
        let lines = [piece("one "), piece("two "), piece("three")];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let said = read(".event.delta.text", &lines);
        assert_eq!(said.concat().replace("Ai ", ""), "one two three");
    }

    #[test]
    fn what_only_the_filter_says_is_shown_beside_and_never_judged() {
        let lines = [r#"{"type":"weather","is":"fine"}"#, ANSWER];
        let filter = r#"if .type == "weather" then "the weather is \(.is)\n" else empty end"#;
        assert_eq!(
            read(filter, &lines),
            ["Sys the weather is fine", "Ai LOOP_COMPLETE"]
        );
    }
}
