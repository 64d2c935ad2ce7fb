//! Who is speaking, and how each text joins the one before. Agents give a text whole, in pieces, or in pieces and
//! then whole; here it is shown once, with the `Flow` that a reader can join it by.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::{StringPool, Tail};
use crate::event::{Flow, Tag, TranscriptEvent};

/// All that speak in one iteration: the agent itself, and each subagent under the tool call that runs it.
#[derive(Debug, Default)]
pub(in crate::transcript) struct Assembler {
    voices: Vec<Voice>,
    answered: bool,
    room: StringPool,
}

#[derive(Debug, Default)]
struct Voice {
    parent: Option<String>,
    /// The message being spoken, where the agent names its messages.
    message: Option<String>,
    answer: Strand,
    thought: Strand,
}

/// The texts of one tag in the current message of one voice.
#[derive(Debug, Default)]
struct Strand {
    /// The message has had text already: what follows is no new message.
    spoken: bool,
    /// Mid-block: the next piece goes on in the same line.
    open: bool,
    /// Blocks that were streamed and may be repeated whole.
    streamed: VecDeque<Tail>,
    /// One that is over, for its room.
    spare: Option<Tail>,
    /// The text of the whole message so far.
    message: Tail,
}

/// Where something is told, and the room for it.
struct Telling<'a> {
    room: &'a mut StringPool,
    out: &'a mut Vec<TranscriptEvent>,
}

/// Whether a message was seen for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(in crate::transcript) enum Begun {
    New,
    Same,
}

impl Assembler {
    /// The message with this id begins or goes on. Without an id nothing is known: see `begin_unnamed`.
    pub(in crate::transcript) fn begin(&mut self, parent: Option<&str>, id: &str) -> Begun {
        let voice = self.voice(parent);
        if voice.message.as_deref() == Some(id) {
            return Begun::Same;
        }
        voice.restart();
        voice.name(id);
        Begun::New
    }

    /// A message without an id comes whole. It is a new one, unless it repeats what was just streamed.
    pub(in crate::transcript) fn begin_unnamed(&mut self, parent: Option<&str>) -> Begun {
        let voice = self.voice(parent);
        if voice.answer.streamed.is_empty() && voice.thought.streamed.is_empty() {
            voice.restart();
            voice.message = None;
            return Begun::New;
        }
        Begun::Same
    }

    /// As `begin`, where the thought that goes before an answer comes before the answer's id.
    pub(in crate::transcript) fn begin_answer(&mut self, id: &str) {
        let voice = self.voice(None);
        if voice.message.as_deref() != Some(id) {
            voice.answer.restart();
            voice.name(id);
        }
    }

    /// The thought is over: the next one is another.
    pub(in crate::transcript) fn end_thought(&mut self) {
        self.voice(None).thought.restart();
    }

    /// A piece of a text that is being streamed. An empty one says nothing.
    pub(in crate::transcript) fn piece(
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
        let (voice, room) = self.voice_and_room(parent);
        let strand = voice.strand(tag);
        if !strand.open {
            strand.begin_block();
        }
        if let Some(block) = strand.streamed.back_mut() {
            block.push(text);
        }
        let flow = if strand.open {
            Flow::Delta
        } else {
            strand.next_block()
        };
        strand.open = true;
        voice.say(tag, flow, text.into(), Telling { room, out });
    }

    /// A whole text; not shown when it was streamed before, and only its rest when a part of it was.
    pub(in crate::transcript) fn whole<'a>(
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
        let (voice, room) = self.voice_and_room(parent);
        let strand = voice.strand(tag);
        if let Some(block) = strand.streamed.pop_front() {
            if block.equals(&text) {
                strand.open = strand.open && !strand.streamed.is_empty();
                return;
            }
            if let Some(rest) = block.rest_of(&text).filter(|_| strand.streamed.is_empty()) {
                strand.open = false;
                return voice.say(tag, Flow::Delta, rest.into(), Telling { room, out });
            }
        }
        strand.open = false;
        let flow = strand.next_block();
        voice.say(tag, flow, text, Telling { room, out });
    }

    /// A block has ended: the next piece begins another one.
    pub(in crate::transcript) fn end_block(&mut self, parent: Option<&str>) {
        let voice = self.voice(parent);
        voice.answer.open = false;
        voice.thought.open = false;
    }

    /// A tool was called: what a nameless message said is over.
    pub(in crate::transcript) fn interrupt(&mut self, parent: Option<&str>) {
        let voice = self.voice(parent);
        if voice.message.is_none() {
            voice.restart();
        }
    }

    /// The subagent under this tool call has ended.
    pub(in crate::transcript) fn dismiss(&mut self, parent: &str) {
        self.voices
            .retain(|voice| voice.parent.as_deref() != Some(parent));
    }

    /// The agent's last message ended with these words already.
    pub(in crate::transcript) fn has_said(&mut self, text: &str) -> bool {
        self.voice(None).answer.message.ends_with(text)
    }

    /// All that the agent's last message said stands at the end of this text.
    pub(in crate::transcript) fn has_just_said_the_end_of(&mut self, text: &str) -> bool {
        self.voice(None).answer.message.is_the_end_of(text)
    }

    /// The agent's next words begin a new message.
    pub(in crate::transcript) fn is_between_messages(&mut self) -> bool {
        !self.voice(None).answer.spoken
    }

    /// Anyone answered anything.
    pub(in crate::transcript) fn answered(&self) -> bool {
        self.answered
    }

    /// A text has been seen by everybody.
    pub(in crate::transcript) fn take_back(&mut self, text: String) {
        self.room.take_back(text);
    }

    fn voice(&mut self, parent: Option<&str>) -> &mut Voice {
        self.voice_and_room(parent).0
    }

    fn voice_and_room(&mut self, parent: Option<&str>) -> (&mut Voice, &mut StringPool) {
        let known = self
            .voices
            .iter()
            .position(|voice| voice.parent.as_deref() == parent);
        let at = known.unwrap_or_else(|| {
            self.voices.push(Voice {
                parent: parent.map(str::to_owned),
                ..Voice::default()
            });
            self.voices.len() - 1
        });
        (&mut self.voices[at], &mut self.room)
    }
}

impl Voice {
    fn say(&mut self, tag: Tag, flow: Flow, text: Cow<'_, str>, Telling { room, out }: Telling<'_>) {
        let strand = self.strand(tag);
        match flow {
            Flow::Message => strand.message.clear(),
            Flow::Line => strand.message.push("\n"),
            Flow::Delta => {}
        }
        strand.message.push(&text);
        strand.spoken = true;
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
            text: room.for_text(text),
            flow,
            parent: self.parent.clone(),
        });
    }

    fn strand(&mut self, tag: Tag) -> &mut Strand {
        match tag {
            Tag::Think => &mut self.thought,
            Tag::Ai | Tag::Sys | Tag::Tool | Tag::Prompt | Tag::User => &mut self.answer,
        }
    }

    /// In the room that the last name took.
    fn name(&mut self, id: &str) {
        let name = self.message.get_or_insert_default();
        name.clear();
        name.push_str(id);
    }

    /// The text of the last message stays known: a terminal event may repeat it.
    fn restart(&mut self) {
        self.answer.restart();
        self.thought.restart();
    }
}

impl Strand {
    fn restart(&mut self) {
        self.spoken = false;
        self.open = false;
        self.spare = self.streamed.pop_back().or_else(|| self.spare.take());
        self.streamed.clear();
    }

    fn begin_block(&mut self) {
        let mut block = self.spare.take().unwrap_or_default();
        block.clear();
        self.streamed.push_back(block);
    }

    fn next_block(&self) -> Flow {
        if self.spoken { Flow::Line } else { Flow::Message }
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
    fn what_was_streamed_is_not_shown_again_whole() {
        let (mut speech, mut out) = (Assembler::default(), Vec::new());
        assert_eq!(speech.begin(None, "m1"), Begun::New);
        speech.piece(None, Tag::Ai, "LOOP_", &mut out);
        speech.piece(None, Tag::Ai, "", &mut out);
        speech.piece(None, Tag::Ai, "COMPLETE", &mut out);
        assert_eq!(speech.begin(None, "m1"), Begun::Same);
        speech.whole(None, Tag::Ai, "LOOP_COMPLETE", &mut out);
        assert_eq!(shown(&out), [(Flow::Message, "LOOP_COMPLETE")]);
    }

    #[test]
    fn pieces_that_come_one_by_one_are_told_one_by_one() {
        let mut speech = Assembler::default();
        let mut told = |text: &str, before: Vec<TranscriptEvent>| {
            let mut out = before;
            speech.piece(None, Tag::Ai, text, &mut out);
            out
        };
        assert_eq!(shown(&told("LOOP_", Vec::new())), [(Flow::Message, "LOOP_")]);
        assert_eq!(shown(&told("COM", Vec::new())), [(Flow::Delta, "COM")]);
        let thought = vec![TranscriptEvent::message(Tag::Think, "hm")];
        assert_eq!(
            shown(&told("PLETE", thought)),
            [(Flow::Message, "hm"), (Flow::Delta, "PLETE")]
        );
    }

    #[test]
    fn pieces_that_went_missing_are_made_up_for() {
        let (mut speech, mut out) = (Assembler::default(), Vec::new());
        speech.piece(None, Tag::Ai, "LOOP_", &mut out);
        assert_eq!(speech.begin_unnamed(None), Begun::Same);
        speech.whole(None, Tag::Ai, "LOOP_COMPLETE", &mut out);
        assert_eq!(shown(&out), [(Flow::Message, "LOOP_COMPLETE")]);
        assert!(speech.has_said("LOOP_COMPLETE"));
    }

    #[test]
    fn later_blocks_of_one_message_are_lines_of_it() {
        let (mut speech, mut out) = (Assembler::default(), Vec::new());
        let _ = speech.begin(None, "m1");
        speech.whole(None, Tag::Ai, "one", &mut out);
        speech.whole(None, Tag::Ai, "two", &mut out);
        let _ = speech.begin(None, "m2");
        speech.whole(None, Tag::Ai, "three", &mut out);
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
    fn streamed_blocks_may_all_be_repeated_at_the_end() {
        let (mut speech, mut out) = (Assembler::default(), Vec::new());
        let _ = speech.begin(None, "m1");
        for block in ["one", "two"] {
            speech.piece(None, Tag::Ai, block, &mut out);
            speech.end_block(None);
        }
        speech.whole(None, Tag::Ai, "one", &mut out);
        speech.whole(None, Tag::Ai, "two", &mut out);
        assert_eq!(shown(&out), [(Flow::Message, "one"), (Flow::Line, "two")]);
    }

    #[test]
    fn subagents_do_not_disturb_each_other() {
        let (mut speech, mut out) = (Assembler::default(), Vec::new());
        speech.piece(Some("t1"), Tag::Ai, "a", &mut out);
        speech.piece(Some("t2"), Tag::Ai, "x", &mut out);
        speech.piece(Some("t1"), Tag::Ai, "b", &mut out);
        assert_eq!(
            shown(&out),
            [(Flow::Message, "a"), (Flow::Message, "x"), (Flow::Delta, "b")]
        );
        assert!(!speech.has_said("ab") && speech.answered());
    }
}
