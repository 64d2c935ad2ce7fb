//! What the assistant said in one iteration, as far as it matters: its final message, the markers in it, and the
//! topics it published. Memory is bounded however long the agent talks.

use std::borrow::Cow;

use crate::event::{Flow, Tag, TopicEvent, TranscriptEvent};

use super::marker::{self, Claim, EARLIER_MESSAGE, Markers, Tail};
use super::topic;

/// A message that grows beyond this loses its beginning; its end is what is judged.
const LONGEST_MESSAGE: usize = 4 << 20;

#[derive(Debug)]
pub(crate) struct FinalMessage {
    /// Whether the format says where one message ends and the next begins.
    has_messages: bool,
    message: String,
    tail: Tail,
    /// A claim from a message that has since been followed by another, or by work.
    earlier: Claim,
}

impl FinalMessage {
    pub(crate) fn new(has_messages: bool) -> Self {
        Self {
            has_messages,
            message: String::new(),
            tail: Tail::default(),
            earlier: Claim::None,
        }
    }

    /// Takes in one event; returns the topics of a message that it brought to an end.
    pub(crate) fn hear(&mut self, event: &TranscriptEvent, markers: &Markers) -> Vec<TopicEvent> {
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
                    Flow::Message => self.close(markers),
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
            // Only a start is work: an end may also be the tidying up of a tool that never answered.
            TranscriptEvent::ToolStart { tool } if tool.parent.is_none() => self.close(markers),
            TranscriptEvent::Text { .. }
            | TranscriptEvent::ToolStart { .. }
            | TranscriptEvent::ToolOutput { .. }
            | TranscriptEvent::ToolEnd { .. }
            | TranscriptEvent::Usage { .. }
            | TranscriptEvent::Meta { .. } => Vec::new(),
        }
    }

    /// The agent has ended: what did it claim, and which topics did its last message publish? `repeated` is the
    /// final message as the terminal event repeats it.
    pub(crate) fn finish(
        &mut self,
        repeated: Option<&str>,
        markers: &Markers,
        prompt: &str,
    ) -> (Claim, Vec<TopicEvent>) {
        let message = std::mem::take(&mut self.message);
        let topics = if self.has_messages {
            topic::events_in(&message)
        } else {
            topic::events_in(&without_echo(&message, prompt))
        };
        let last = if !self.has_messages {
            markers.in_tail(&self.tail, prompt)
        } else {
            markers.in_message(
                repeated
                    .filter(|text| !text.trim().is_empty())
                    .unwrap_or(&message),
            )
        };
        let earlier = std::mem::replace(&mut self.earlier, Claim::None);
        let claim = match (last, earlier) {
            (Claim::None, earlier) => earlier,
            (Claim::Ignored { .. }, earlier @ (Claim::Done { .. } | Claim::Failed { .. })) => earlier,
            (last, _) => last,
        };
        (claim, topics)
    }

    /// The current message is over.
    fn close(&mut self, markers: &Markers) -> Vec<TopicEvent> {
        if self.message.is_empty() {
            return Vec::new();
        }
        let claim = markers.in_message(&self.message);
        let topics = topic::events_in(&self.message);
        self.message.clear();
        self.message.shrink_to(LONGEST_MESSAGE / 16);
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
        if self.message.is_empty() && text.len() > 2 * LONGEST_MESSAGE {
            self.message = judged(text);
            return;
        }
        self.message.push_str(text);
        if self.message.len() > 2 * LONGEST_MESSAGE {
            self.forget_the_beginning();
        }
    }

    fn forget_the_beginning(&mut self) {
        let (fence, end) = end_of(&self.message);
        let cut = self.message.len() - end.len();
        self.message.replace_range(..cut, &fence);
    }
}

/// What is judged of a whole message: all of it, unless it is too long.
pub(crate) fn judged(text: &str) -> String {
    if text.len() <= 2 * LONGEST_MESSAGE {
        return text.to_owned();
    }
    let (fence, end) = end_of(text);
    fence + end
}

/// What is judged of a text that is too long: its end, from the beginning of a line on, and before it the line of a code
/// fence that was left open.
fn end_of(text: &str) -> (String, &str) {
    let cut = text.ceil_char_boundary(text.len() - LONGEST_MESSAGE);
    let cut = text[cut..].find('\n').map_or(cut, |newline| cut + newline + 1);
    let fence = marker::fence_left_open(&text[..cut]).map(|line| format!("{line}\n"));
    (fence.unwrap_or_default(), &text[cut..])
}

/// An output without the prompt that some agents print before they begin; what it shows as an example is no event.
fn without_echo<'a>(output: &'a str, prompt: &str) -> Cow<'a, str> {
    let prompt = prompt.trim();
    match output.find(prompt) {
        Some(_) if !prompt.is_empty() => Cow::Owned(output.replacen(prompt, "", 1)),
        Some(_) | None => Cow::Borrowed(output),
    }
}

#[cfg(test)]
mod tests {
    use super::super::marker::Placement;
    use super::*;
    use crate::event::{ToolStart, ToolStatus};

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

    fn verdict(events: &[TranscriptEvent], repeated: Option<&str>) -> Claim {
        let markers = Markers::new(Vec::new(), Placement::Line);
        let mut said = FinalMessage::new(true);
        for event in events {
            let _ = said.hear(event, &markers);
        }
        said.finish(repeated, &markers, "").0
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
    fn a_marker_split_over_deltas_is_found() {
        let events = [
            text("done\nLOOP_", Flow::Message),
            text("COM", Flow::Delta),
            text("PLETE", Flow::Delta),
        ];
        assert_eq!(verdict(&events, None), done());
    }

    #[test]
    fn a_marker_before_more_work_or_another_message_does_not_count() {
        let work = [
            text("LOOP_COMPLETE", Flow::Message),
            tool(),
            text("One more thing.", Flow::Message),
        ];
        assert_eq!(verdict(&work, None), earlier());
        let other = [text("LOOP_COMPLETE", Flow::Message), text("Wait.", Flow::Message)];
        assert_eq!(verdict(&other, None), earlier());
        assert_eq!(
            verdict(&[text("LOOP_COMPLETE", Flow::Message), tool()], None),
            earlier()
        );
    }

    #[test]
    fn the_end_of_a_tool_after_the_final_message_takes_nothing_away() {
        let tool = crate::event::ToolEnd {
            id: "t".into(),
            status: ToolStatus::Unknown,
            duration_ms: None,
        };
        let events = [tool_then_done(), vec![TranscriptEvent::ToolEnd { tool }]].concat();
        assert_eq!(verdict(&events, None), done());
    }

    fn tool_then_done() -> Vec<TranscriptEvent> {
        vec![tool(), text("LOOP_COMPLETE", Flow::Message)]
    }

    #[test]
    fn thinking_subagents_and_tool_output_are_not_the_assistant_speaking() {
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
        assert_eq!(verdict(&[think, user, nested, output], None), Claim::None);
    }

    #[test]
    fn the_terminal_events_own_text_is_the_final_message() {
        assert_eq!(
            verdict(&[text("Working.", Flow::Message)], Some("ok\nLOOP_COMPLETE")),
            done()
        );
        assert_eq!(verdict(&[text("LOOP_COMPLETE", Flow::Message)], Some("")), done());
    }

    #[test]
    fn lines_join_to_one_message_until_work_begins() {
        let events = [
            text("all good", Flow::Line),
            text("LOOP_COMPLETE", Flow::Line),
            text("bye", Flow::Line),
        ];
        assert_eq!(verdict(&events, None), done());
    }

    #[test]
    fn an_endless_message_is_judged_by_its_end_with_its_fence_still_open() {
        let filler = "x".repeat(1 << 20) + "\n";
        let mut events = vec![text("```\n", Flow::Message)];
        events.extend(std::iter::repeat_n(text(&filler, Flow::Delta), 20));
        events.push(text("LOOP_COMPLETE\n", Flow::Delta));
        assert!(matches!(verdict(&events, None), Claim::Ignored { .. }));
        events.push(text("```\nLOOP_COMPLETE", Flow::Delta));
        assert_eq!(verdict(&events, None), done());
    }

    #[test]
    fn a_huge_message_in_one_piece_is_judged_by_its_end_too() {
        let filler = "x".repeat(3 * LONGEST_MESSAGE) + "\n";
        let verdict_on = |message: &str| verdict(&[text(message, Flow::Message)], None);
        assert_eq!(verdict_on(&format!("{filler}LOOP_COMPLETE")), done());
        assert!(judged(&filler).len() <= LONGEST_MESSAGE);
        let fenced = format!("```\n{filler}LOOP_COMPLETE\n");
        assert!(matches!(verdict_on(&fenced), Claim::Ignored { .. }));
        assert_eq!(verdict_on(&format!("{fenced}```\nLOOP_COMPLETE")), done());
    }

    #[test]
    fn an_echoed_prompt_publishes_nothing_and_the_same_words_after_it_do() {
        let markers = Markers::new(Vec::new(), Placement::Line);
        let prompt = "Build it, then say:\n<event topic=\"built\">ok</event>\n";
        let topics_of = |lines: &str| {
            let mut said = FinalMessage::new(false);
            for line in lines.lines() {
                let _ = said.hear(&text(line, Flow::Line), &markers);
            }
            said.finish(None, &markers, prompt).1.len()
        };
        assert_eq!(topics_of(&format!("> thinking\n{prompt}\nworking")), 0);
        assert_eq!(
            topics_of(&format!("{prompt}\n<event topic=\"built\">ok</event>")),
            1
        );
        assert_eq!(topics_of("<event topic=\"built\">ok</event>"), 1);
    }

    #[test]
    fn topics_come_from_every_message_once() {
        let markers = Markers::new(Vec::new(), Placement::Line);
        let mut said = FinalMessage::new(true);
        let first = "<event topic=\"a\">1</event>";
        let second = "<event topic=\"b\">2</event>";
        let topics = |found: Vec<TopicEvent>| found.into_iter().map(|event| event.topic).collect::<Vec<_>>();
        assert_eq!(topics(said.hear(&text(first, Flow::Message), &markers)), [""; 0]);
        assert_eq!(topics(said.hear(&tool(), &markers)), ["a"]);
        assert_eq!(topics(said.hear(&text(second, Flow::Message), &markers)), [""; 0]);
        assert_eq!(topics(said.finish(Some(second), &markers, "").1), ["b"]);
    }
}
