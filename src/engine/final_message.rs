//! Determines the assistant's final message of an iteration, finds markers in it and extracts published topics.
//!
//! Memory is bounded regardless of the length of the output.

use std::borrow::Cow;

use crate::event::{Flow, Tag, TopicEvent, TranscriptEvent};

use super::marker::{self, Claim, EARLIER_MESSAGE, Markers, OutputTail, UnclosedFence};
use super::topic;

/// Longer messages lose their beginning; markers are searched at the end.
const MAX_MESSAGE_BYTES: usize = 4 << 20;

#[derive(Debug)]
pub(crate) struct FinalMessage {
    /// Whether the format delimits messages.
    has_messages: bool,
    message: String,
    tail: OutputTail,
    /// A claim from a message that another message or a tool call has followed.
    earlier: Claim,
}

impl FinalMessage {
    pub(crate) fn new(has_messages: bool) -> Self {
        Self {
            has_messages,
            message: String::new(),
            tail: OutputTail::default(),
            earlier: Claim::None,
        }
    }

    /// Processes one event; returns the topics of the message that it ended, if any.
    pub(crate) fn apply_event(&mut self, event: &TranscriptEvent, markers: &Markers) -> Vec<TopicEvent> {
        match event {
            TranscriptEvent::Text {
                tag: Tag::Ai,
                text,
                flow,
                parent: None,
            } => {
                if !self.has_messages {
                    text.lines().for_each(|line| self.tail.push(line, markers));
                }
                let topics = match flow {
                    Flow::Message => self.end_message(markers),
                    Flow::Delta => Vec::new(),
                    Flow::Line => {
                        if !self.message.is_empty() {
                            self.message.push('\n');
                        }
                        Vec::new()
                    }
                };
                self.append(text);
                topics
            }
            // Only a tool start ends the message: a tool end may be synthesized for a tool that never answered.
            TranscriptEvent::ToolStart { tool } if tool.parent.is_none() => self.end_message(markers),
            TranscriptEvent::Text { .. }
            | TranscriptEvent::ToolStart { .. }
            | TranscriptEvent::ToolOutput { .. }
            | TranscriptEvent::ToolEnd { .. }
            | TranscriptEvent::Usage { .. }
            | TranscriptEvent::Meta { .. } => Vec::new(),
        }
    }

    /// The current message.
    pub(crate) fn text(&self, prompt: &str) -> Cow<'_, str> {
        match self.has_messages {
            true => Cow::Borrowed(&self.message),
            false => without_echo(&self.message, prompt),
        }
    }

    /// Returns the agent's claim and the topics of its last message.
    pub(crate) fn finish(&mut self, markers: &Markers, prompt: &str) -> (Claim, Vec<TopicEvent>) {
        let message = std::mem::take(&mut self.message);
        let topics = if self.has_messages {
            topic::events_in(&message, UnclosedFence::ExtendsToEnd)
        } else {
            topic::events_in(&without_echo(&message, prompt), UnclosedFence::Ignored)
        };
        let last = if !self.has_messages {
            markers.claim_in_tail(&self.tail, prompt)
        } else {
            markers.claim_in_message(&message)
        };
        let last = match last {
            Claim::None | Claim::Ignored { .. } => match self.status_block_claim(&message, markers, prompt) {
                Claim::None => last,
                claim => claim,
            },
            Claim::Done { .. } | Claim::Failed { .. } => last,
        };
        let earlier = std::mem::replace(&mut self.earlier, Claim::None);
        let claim = match (last, earlier) {
            (Claim::None, earlier) => earlier,
            (Claim::Ignored { .. }, earlier @ (Claim::Done { .. } | Claim::Failed { .. })) => earlier,
            (last, _) => last,
        };
        (claim, topics)
    }

    fn status_block_claim(&self, message: &str, markers: &Markers, prompt: &str) -> Claim {
        if self.has_messages {
            markers.claim_in_status_block(message)
        } else {
            markers.claim_in_status_block(&without_echo(message, prompt))
        }
    }

    /// Ends the current message and returns its topics.
    fn end_message(&mut self, markers: &Markers) -> Vec<TopicEvent> {
        if self.message.is_empty() {
            return Vec::new();
        }
        let claim = markers.claim_in_message(&self.message);
        let topics = topic::events_in(&self.message, UnclosedFence::ExtendsToEnd);
        self.message.clear();
        self.message.shrink_to(MAX_MESSAGE_BYTES / 16);
        self.earlier = match claim {
            Claim::None => return topics,
            Claim::Done { marker } | Claim::Failed { marker } if !markers.counts_anywhere() => {
                Claim::Ignored {
                    marker,
                    reason: EARLIER_MESSAGE,
                }
            }
            claim => claim,
        };
        topics
    }

    fn append(&mut self, text: &str) {
        if self.message.is_empty() && text.len() > 2 * MAX_MESSAGE_BYTES {
            self.message = searchable_end(text);
            return;
        }
        self.message.push_str(text);
        if self.message.len() > 2 * MAX_MESSAGE_BYTES {
            self.drop_beginning();
        }
    }

    fn drop_beginning(&mut self) {
        let (fence, end) = end_with_open_fence(&self.message);
        let cut = self.message.len() - end.len();
        self.message.replace_range(..cut, &fence);
    }
}

/// The part of a message in which markers are searched: all of it, or its end if it is too long.
fn searchable_end(text: &str) -> String {
    if text.len() <= 2 * MAX_MESSAGE_BYTES {
        return text.to_owned();
    }
    let (fence, end) = end_with_open_fence(text);
    fence + end
}

/// The end of a long text, starting at a line boundary, and the opening line of a code fence that is still open there.
fn end_with_open_fence(text: &str) -> (String, &str) {
    let cut = text.ceil_char_boundary(text.len() - MAX_MESSAGE_BYTES);
    let cut = text[cut..].find('\n').map_or(cut, |newline| cut + newline + 1);
    let fence = marker::fence_left_open(&text[..cut]).map(|line| format!("{line}\n"));
    (fence.unwrap_or_default(), &text[cut..])
}

/// Removes the prompt that some agents print first: an example in the prompt must not count as an event.
fn without_echo<'a>(output: &'a str, prompt: &str) -> Cow<'a, str> {
    let prompt = prompt.trim();
    match output.find(prompt) {
        Some(_) if !prompt.is_empty() => Cow::Owned(output.replacen(prompt, "", 1)),
        Some(_) | None => Cow::Borrowed(output),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{ToolStart, ToolStatus};
    use crate::policy::MarkerPlacement;

    fn text(text: &str, flow: Flow) -> TranscriptEvent {
        TranscriptEvent::Text {
            tag: Tag::Ai,
            text: text.into(),
            flow,
            parent: None,
        }
    }

    fn tool() -> TranscriptEvent {
        let tool = ToolStart {
            id: "t".into(),
            name: "shell".into(),
            input: None,
            parent: None,
        };
        TranscriptEvent::ToolStart { tool }
    }

    fn verdict(events: &[TranscriptEvent]) -> Claim {
        let markers = Markers::new(Vec::new(), MarkerPlacement::Line);
        let mut message = FinalMessage::new(true);
        for event in events {
            let _ = message.apply_event(event, &markers);
        }
        message.finish(&markers, "").0
    }

    fn done() -> Claim {
        Claim::Done {
            marker: "LOOP_COMPLETE".into(),
        }
    }

    fn earlier() -> Claim {
        Claim::Ignored {
            marker: "LOOP_COMPLETE".into(),
            reason: EARLIER_MESSAGE,
        }
    }

    #[test]
    fn marker_split_over_deltas_is_found() {
        let events = [
            text("done\nLOOP_", Flow::Message),
            text("COM", Flow::Delta),
            text("PLETE", Flow::Delta),
        ];
        assert_eq!(verdict(&events), done());
    }

    #[test]
    fn marker_followed_by_work_or_another_message_is_ignored() {
        let work = [
            text("LOOP_COMPLETE", Flow::Message),
            tool(),
            text("One more thing.", Flow::Message),
        ];
        assert_eq!(verdict(&work), earlier());
        let other = [text("LOOP_COMPLETE", Flow::Message), text("Wait.", Flow::Message)];
        assert_eq!(verdict(&other), earlier());
        assert_eq!(
            verdict(&[text("LOOP_COMPLETE", Flow::Message), tool()]),
            earlier()
        );
    }

    #[test]
    fn tool_end_after_final_message_is_ignored() {
        let tool = crate::event::ToolEnd {
            id: "t".into(),
            status: ToolStatus::Unknown,
            duration_ms: None,
        };
        let events = [tool_then_done(), vec![TranscriptEvent::ToolEnd { tool }]].concat();
        assert_eq!(verdict(&events), done());
    }

    fn tool_then_done() -> Vec<TranscriptEvent> {
        vec![tool(), text("LOOP_COMPLETE", Flow::Message)]
    }

    #[test]
    fn thinking_subagents_and_tool_output_are_ignored() {
        let think = TranscriptEvent::message(Tag::Think, "LOOP_COMPLETE");
        let user = TranscriptEvent::message(Tag::Prompt, "LOOP_COMPLETE");
        let nested = TranscriptEvent::Text {
            tag: Tag::Ai,
            text: "LOOP_COMPLETE".into(),
            flow: Flow::Message,
            parent: Some("task".into()),
        };
        let output = TranscriptEvent::ToolOutput {
            tool: crate::event::ToolRef { id: "t".into() },
            text: "LOOP_COMPLETE".into(),
        };
        assert_eq!(verdict(&[think, user, nested, output]), Claim::None);
    }

    #[test]
    fn lines_form_one_message_until_a_tool_starts() {
        let events = [
            text("all good", Flow::Line),
            text("LOOP_COMPLETE", Flow::Line),
            text("bye", Flow::Line),
        ];
        assert_eq!(verdict(&events), done());
    }

    #[test]
    fn truncated_message_keeps_its_open_fence() {
        let filler = "x".repeat(1 << 20) + "\n";
        let mut events = vec![text("```\n", Flow::Message)];
        events.extend(std::iter::repeat_n(text(&filler, Flow::Delta), 20));
        events.push(text("LOOP_COMPLETE\n", Flow::Delta));
        assert!(matches!(verdict(&events), Claim::Ignored { .. }));
        events.push(text("```\nLOOP_COMPLETE", Flow::Delta));
        assert_eq!(verdict(&events), done());
    }

    #[test]
    fn huge_single_message_is_truncated_to_its_end() {
        let filler = "x".repeat(3 * MAX_MESSAGE_BYTES) + "\n";
        let verdict_on = |message: &str| verdict(&[text(message, Flow::Message)]);
        assert_eq!(verdict_on(&format!("{filler}LOOP_COMPLETE")), done());
        assert!(searchable_end(&filler).len() <= MAX_MESSAGE_BYTES);
        let fenced = format!("```\n{filler}LOOP_COMPLETE\n");
        assert!(matches!(verdict_on(&fenced), Claim::Ignored { .. }));
        assert_eq!(verdict_on(&format!("{fenced}```\nLOOP_COMPLETE")), done());
    }

    #[test]
    fn echoed_prompt_publishes_no_topics() {
        let markers = Markers::new(Vec::new(), MarkerPlacement::Line);
        let prompt = "Build it, then say:\n<event topic=\"built\">ok</event>\n";
        let topics_of = |lines: &str| {
            let mut message = FinalMessage::new(false);
            for line in lines.lines() {
                let _ = message.apply_event(&text(line, Flow::Line), &markers);
            }
            message.finish(&markers, prompt).1.len()
        };
        assert_eq!(topics_of(&format!("> thinking\n{prompt}\nworking")), 0);
        assert_eq!(
            topics_of(&format!("{prompt}\n<event topic=\"built\">ok</event>")),
            1
        );
        assert_eq!(topics_of("<event topic=\"built\">ok</event>"), 1);
    }

    #[test]
    fn topics_are_returned_once_per_message() {
        let markers = Markers::new(Vec::new(), MarkerPlacement::Line);
        let mut message = FinalMessage::new(true);
        let first = "<event topic=\"a\">1</event>";
        let second = "<event topic=\"b\">2</event>";
        let topics = |found: Vec<TopicEvent>| found.into_iter().map(|event| event.topic).collect::<Vec<_>>();
        assert_eq!(
            topics(message.apply_event(&text(first, Flow::Message), &markers)),
            [""; 0]
        );
        assert_eq!(topics(message.apply_event(&tool(), &markers)), ["a"]);
        assert_eq!(
            topics(message.apply_event(&text(second, Flow::Message), &markers)),
            [""; 0]
        );
        assert_eq!(topics(message.finish(&markers, "").1), ["b"]);
    }
}
