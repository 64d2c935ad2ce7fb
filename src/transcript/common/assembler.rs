//! Assembles texts from deltas and whole texts. An agent may send a text whole, in deltas, or in deltas and then whole;
//! the assembler emits it once, with the `Flow` that joins it to the previous text.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::Tail;
use crate::event::{Flow, Tag, TranscriptEvent};

/// The texts of one iteration: those of the agent, and those of each subagent.
#[derive(Debug, Default)]
pub(in crate::transcript) struct Assembler {
    agent: Author,
    /// In the order of their first text.
    subagents: VecDeque<Author>,
    answered: bool,
}

/// Subagents whose end is not reported are dropped beyond this number, oldest first.
const MAX_SUBAGENTS: usize = 64;
/// A terminal event may repeat one of this many messages, for example if sub-agents continue in the background.
const MAX_EARLIER_MESSAGES: usize = 16;
/// Longer messages are recognized only while they are the last one.
const MAX_EARLIER_MESSAGE_BYTES: usize = 64 << 10;
/// How many streamed blocks of one message may be repeated as a whole.
const MAX_STREAMED_BLOCKS: usize = 64;

/// The current message of the agent or of one subagent.
#[derive(Debug, Default)]
struct Author {
    /// The tool call that runs the subagent; `None` for the agent.
    parent: Option<String>,
    /// The id of the current message, if the agent reports ids.
    message_id: Option<String>,
    answer: TagText,
    reasoning: TagText,
    /// The agent's last messages before the current one. Not used for subagents.
    earlier_answers: VecDeque<Tail>,
}

/// The text of one tag in the current message of one author.
#[derive(Debug, Default)]
struct TagText {
    /// The message already has text, so the next text does not start a new message.
    started: bool,
    /// A block is open, so the next delta continues the same line.
    in_block: bool,
    /// Blocks that were streamed and may be repeated as a whole.
    streamed_blocks: VecDeque<Tail>,
    /// A completed block whose memory is reused.
    spare_block: Option<Tail>,
    /// The text of the message so far.
    message_tail: Tail,
}

/// Whether a message is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(in crate::transcript) enum MessageStatus {
    New,
    Continued,
}

impl Assembler {
    /// Begins or continues the message with this id. For messages without an id, see `begin_unnamed_message`.
    pub(in crate::transcript) fn begin_message(&mut self, parent: Option<&str>, id: &str) -> MessageStatus {
        let author = self.author(parent);
        if author.message_id.as_deref() == Some(id) {
            return MessageStatus::Continued;
        }
        author.reset_message();
        author.set_message_id(id);
        MessageStatus::New
    }

    /// Begins a whole message without an id. It is new, unless it repeats the blocks that were just streamed.
    pub(in crate::transcript) fn begin_unnamed_message(&mut self, parent: Option<&str>) -> MessageStatus {
        let author = self.author(parent);
        if author.answer.streamed_blocks.is_empty() && author.reasoning.streamed_blocks.is_empty() {
            author.reset_message();
            author.message_id = None;
            return MessageStatus::New;
        }
        MessageStatus::Continued
    }

    /// Like `begin_message`, for formats in which the reasoning precedes the id of the answer.
    pub(in crate::transcript) fn begin_answer(&mut self, id: &str) {
        let author = self.author(None);
        if author.message_id.as_deref() != Some(id) {
            author.answer.reset_message();
            author.set_message_id(id);
        }
    }

    /// Ends the reasoning, so that the next reasoning text starts a new message.
    pub(in crate::transcript) fn end_reasoning(&mut self) {
        self.author(None).reasoning.reset_message();
    }

    /// Adds a delta of a streamed text. Empty deltas are ignored.
    pub(in crate::transcript) fn push_delta(
        &mut self,
        parent: Option<&str>,
        tag: Tag,
        text: &str,
        out: &mut Vec<TranscriptEvent>,
    ) {
        if text.is_empty() {
            return;
        }
        self.answered |= tag == Tag::Ai;
        let author = self.author(parent);
        let tag_text = author.tag_text(tag);
        if !tag_text.in_block {
            tag_text.begin_block();
        }
        if let Some(block) = tag_text.streamed_blocks.back_mut() {
            block.push(text);
        }
        let flow = if tag_text.in_block {
            Flow::Delta
        } else {
            tag_text.next_block_flow()
        };
        tag_text.in_block = true;
        author.push(tag, flow, text.into(), out);
    }

    /// Adds a whole text. If the text was streamed before, only the part that was not streamed is emitted.
    pub(in crate::transcript) fn push_whole<'a>(
        &mut self,
        parent: Option<&str>,
        tag: Tag,
        text: impl Into<Cow<'a, str>>,
        out: &mut Vec<TranscriptEvent>,
    ) {
        let text = text.into();
        if text.is_empty() {
            return;
        }
        self.answered |= tag == Tag::Ai;
        let author = self.author(parent);
        let tag_text = author.tag_text(tag);
        if let Some(block) = tag_text.streamed_blocks.pop_front() {
            if block.equals(&text) {
                tag_text.in_block = tag_text.in_block && !tag_text.streamed_blocks.is_empty();
                return;
            }
            if let Some(rest) = block
                .remainder_of(&text)
                .filter(|_| tag_text.streamed_blocks.is_empty())
            {
                tag_text.in_block = false;
                return author.push(tag, Flow::Delta, rest.into(), out);
            }
        }
        tag_text.in_block = false;
        let flow = tag_text.next_block_flow();
        author.push(tag, flow, text, out);
    }

    /// Ends the current block, so that the next delta starts a new one.
    pub(in crate::transcript) fn end_block(&mut self, parent: Option<&str>) {
        let author = self.author(parent);
        author.answer.in_block = false;
        author.reasoning.in_block = false;
    }

    /// Ends a message without an id, for example because a tool was called.
    pub(in crate::transcript) fn end_unnamed_message(&mut self, parent: Option<&str>) {
        let author = self.author(parent);
        if author.message_id.is_none() {
            author.reset_message();
        }
    }

    /// Removes the subagent of this tool call.
    pub(in crate::transcript) fn remove_subagent(&mut self, parent: &str) {
        self.subagents
            .retain(|author| author.parent.as_deref() != Some(parent));
    }

    /// True if `text`, the final message of a terminal event, was already emitted: as the end of the last message or as
    /// one of the messages before it. The terminal event is the only place that decides this; consumers of the events
    /// never compare texts.
    pub(in crate::transcript) fn has_emitted(&self, text: &str) -> bool {
        self.agent.answer.message_tail.ends_with(text)
            || self
                .agent
                .earlier_answers
                .iter()
                .any(|message| message.equals(text))
    }

    /// True if `text` ends with the agent's last message.
    pub(in crate::transcript) fn last_message_is_suffix_of(&mut self, text: &str) -> bool {
        self.author(None).answer.message_tail.is_suffix_of(text)
    }

    /// True if the agent's next text starts a new message.
    pub(in crate::transcript) fn is_between_messages(&mut self) -> bool {
        !self.author(None).answer.started
    }

    /// True if the agent or a subagent has answered.
    pub(in crate::transcript) fn answered(&self) -> bool {
        self.answered
    }

    fn author(&mut self, parent: Option<&str>) -> &mut Author {
        let Some(parent) = parent else {
            return &mut self.agent;
        };
        let existing = self
            .subagents
            .iter()
            .position(|author| author.parent.as_deref() == Some(parent));
        let at = existing.unwrap_or_else(|| {
            if self.subagents.len() >= MAX_SUBAGENTS {
                self.subagents.pop_front();
            }
            self.subagents.push_back(Author {
                parent: Some(parent.to_owned()),
                ..Author::default()
            });
            self.subagents.len() - 1
        });
        &mut self.subagents[at]
    }
}

impl Author {
    fn push(&mut self, tag: Tag, flow: Flow, text: Cow<'_, str>, out: &mut Vec<TranscriptEvent>) {
        if flow == Flow::Message && tag == Tag::Ai && self.parent.is_none() {
            self.keep_answer();
        }
        let tag_text = self.tag_text(tag);
        match flow {
            Flow::Message => tag_text.message_tail.clear(),
            Flow::Line => tag_text.message_tail.push("\n"),
            Flow::Delta => {}
        }
        tag_text.message_tail.push(&text);
        tag_text.started = true;
        if flow == Flow::Delta
            && let Some(TranscriptEvent::Text {
                tag: last,
                text: before,
                parent,
                ..
            }) = out.last_mut()
            && (*last, &*parent) == (tag, &self.parent)
        {
            return before.push_str(&text);
        }
        out.push(TranscriptEvent::Text {
            tag,
            text: text.into_owned(),
            flow,
            parent: self.parent.clone(),
        });
    }

    /// Keeps the message that ends, because a terminal event may repeat it.
    fn keep_answer(&mut self) {
        if !(1..=MAX_EARLIER_MESSAGE_BYTES).contains(&self.answer.message_tail.len()) {
            return;
        }
        let mut oldest = Tail::default();
        if self.earlier_answers.len() >= MAX_EARLIER_MESSAGES {
            oldest = self.earlier_answers.pop_front().unwrap_or_default();
        }
        std::mem::swap(&mut oldest, &mut self.answer.message_tail);
        self.earlier_answers.push_back(oldest);
    }

    fn tag_text(&mut self, tag: Tag) -> &mut TagText {
        match tag {
            Tag::Think => &mut self.reasoning,
            Tag::Ai | Tag::Sys | Tag::Tool | Tag::Prompt | Tag::User => &mut self.answer,
        }
    }

    /// Reuses the memory of the previous id.
    fn set_message_id(&mut self, id: &str) {
        let message_id = self.message_id.get_or_insert_default();
        message_id.clear();
        message_id.push_str(id);
    }

    /// Keeps the text of the last message, because a terminal event may repeat it.
    fn reset_message(&mut self) {
        self.answer.reset_message();
        self.reasoning.reset_message();
    }
}

impl TagText {
    fn reset_message(&mut self) {
        self.started = false;
        self.in_block = false;
        self.spare_block = self
            .streamed_blocks
            .pop_back()
            .or_else(|| self.spare_block.take());
        self.streamed_blocks.clear();
    }

    fn begin_block(&mut self) {
        if self.streamed_blocks.len() >= MAX_STREAMED_BLOCKS {
            self.spare_block = self.streamed_blocks.pop_front();
        }
        let mut block = self.spare_block.take().unwrap_or_default();
        block.clear();
        self.streamed_blocks.push_back(block);
    }

    fn next_block_flow(&self) -> Flow {
        if self.started { Flow::Line } else { Flow::Message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(out: &[TranscriptEvent]) -> Vec<(Flow, &str)> {
        out.iter()
            .filter_map(|event| match event {
                TranscriptEvent::Text { flow, text, .. } => Some((*flow, text.as_str())),
                TranscriptEvent::ToolStart { .. }
                | TranscriptEvent::ToolOutput { .. }
                | TranscriptEvent::ToolEnd { .. }
                | TranscriptEvent::Usage { .. }
                | TranscriptEvent::Meta { .. } => None,
            })
            .collect()
    }

    #[test]
    fn streamed_text_is_not_repeated() {
        let (mut assembler, mut out) = (Assembler::default(), Vec::new());
        assert_eq!(assembler.begin_message(None, "m1"), MessageStatus::New);
        assembler.push_delta(None, Tag::Ai, "LOOP_", &mut out);
        assembler.push_delta(None, Tag::Ai, "", &mut out);
        assembler.push_delta(None, Tag::Ai, "COMPLETE", &mut out);
        assert_eq!(assembler.begin_message(None, "m1"), MessageStatus::Continued);
        assembler.push_whole(None, Tag::Ai, "LOOP_COMPLETE", &mut out);
        assert_eq!(shown(&out), [(Flow::Message, "LOOP_COMPLETE")]);
    }

    #[test]
    fn deltas_in_separate_batches_are_separate_events() {
        let mut assembler = Assembler::default();
        let mut push = |text: &str, before: Vec<TranscriptEvent>| {
            let mut out = before;
            assembler.push_delta(None, Tag::Ai, text, &mut out);
            out
        };
        assert_eq!(shown(&push("LOOP_", Vec::new())), [(Flow::Message, "LOOP_")]);
        assert_eq!(shown(&push("COM", Vec::new())), [(Flow::Delta, "COM")]);
        let reasoning = vec![TranscriptEvent::message(Tag::Think, "hm")];
        assert_eq!(
            shown(&push("PLETE", reasoning)),
            [(Flow::Message, "hm"), (Flow::Delta, "PLETE")]
        );
    }

    #[test]
    fn missing_deltas_are_taken_from_the_whole_text() {
        let (mut assembler, mut out) = (Assembler::default(), Vec::new());
        assembler.push_delta(None, Tag::Ai, "LOOP_", &mut out);
        assert_eq!(assembler.begin_unnamed_message(None), MessageStatus::Continued);
        assembler.push_whole(None, Tag::Ai, "LOOP_COMPLETE", &mut out);
        assert_eq!(shown(&out), [(Flow::Message, "LOOP_COMPLETE")]);
        assert!(assembler.has_emitted("LOOP_COMPLETE"));
    }

    #[test]
    fn final_message_may_repeat_an_earlier_message_but_not_its_end() {
        let (mut assembler, mut out) = (Assembler::default(), Vec::new());
        for (id, text) in [
            ("m1", "Delegating."),
            ("m2", "Done early.\nOK"),
            ("m3", "It broke."),
        ] {
            let _ = assembler.begin_message(None, id);
            assembler.push_whole(None, Tag::Ai, text, &mut out);
        }
        assert!(assembler.has_emitted("Done early.\nOK") && assembler.has_emitted("It broke."));
        assert!(!assembler.has_emitted("OK") && !assembler.has_emitted("Something else."));
        for id in 0..10_000 {
            let _ = assembler.begin_message(None, &id.to_string());
            assembler.push_whole(None, Tag::Ai, "more", &mut out);
        }
        assert!(assembler.agent.earlier_answers.len() <= MAX_EARLIER_MESSAGES);
        assert!(!assembler.has_emitted("Delegating."));
    }

    #[test]
    fn later_blocks_of_a_message_are_lines() {
        let (mut assembler, mut out) = (Assembler::default(), Vec::new());
        let _ = assembler.begin_message(None, "m1");
        assembler.push_whole(None, Tag::Ai, "one", &mut out);
        assembler.push_whole(None, Tag::Ai, "two", &mut out);
        let _ = assembler.begin_message(None, "m2");
        assembler.push_whole(None, Tag::Ai, "three", &mut out);
        assert_eq!(
            shown(&out),
            [
                (Flow::Message, "one"),
                (Flow::Line, "two"),
                (Flow::Message, "three")
            ]
        );
    }

    #[test]
    fn repeated_streamed_blocks_are_ignored() {
        let (mut assembler, mut out) = (Assembler::default(), Vec::new());
        let _ = assembler.begin_message(None, "m1");
        for block in ["one", "two"] {
            assembler.push_delta(None, Tag::Ai, block, &mut out);
            assembler.end_block(None);
        }
        assembler.push_whole(None, Tag::Ai, "one", &mut out);
        assembler.push_whole(None, Tag::Ai, "two", &mut out);
        assert_eq!(shown(&out), [(Flow::Message, "one"), (Flow::Line, "two")]);
    }

    #[test]
    fn subagents_without_an_end_and_unrepeated_blocks_are_limited() {
        let (mut assembler, mut out) = (Assembler::default(), Vec::new());
        for id in 0..10_000 {
            assembler.push_delta(Some(&id.to_string()), Tag::Ai, "a", &mut out);
            assembler.push_delta(None, Tag::Ai, "b", &mut out);
            assembler.end_block(None);
        }
        assert!(assembler.subagents.len() <= MAX_SUBAGENTS);
        assert!(assembler.agent.answer.streamed_blocks.len() <= MAX_STREAMED_BLOCKS);
        assert_eq!(out.len(), 20_000);
    }

    #[test]
    fn texts_of_subagents_are_separate() {
        let (mut assembler, mut out) = (Assembler::default(), Vec::new());
        assembler.push_delta(Some("t1"), Tag::Ai, "a", &mut out);
        assembler.push_delta(Some("t2"), Tag::Ai, "x", &mut out);
        assembler.push_delta(Some("t1"), Tag::Ai, "b", &mut out);
        assert_eq!(
            shown(&out),
            [(Flow::Message, "a"), (Flow::Message, "x"), (Flow::Delta, "b")]
        );
        assert!(!assembler.has_emitted("ab") && assembler.answered());
    }
}
