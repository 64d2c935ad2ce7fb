//! `claude`: the stream-json of Claude Code, and of the programs that imitate it (ralphex's wrappers print four of
//! its events bare). What is said and done lives here; how a session ends is in `ending`, the shapes in `wire`.

mod line_template;
mod result;
#[cfg(test)]
mod tests;
mod wire;

use super::common::{
    Alike, Assembler, Begun, EventStream, JsonScan, Tools, hidden_prompt, json_text, mark_unknown, read_plan,
    say_unreadable, scan, scan_raw,
};
use super::{Adapter, Capabilities, Format, Opening};
use crate::event::{Flow, Meta, Tag, ToolEnd, ToolStart, ToolStatus, TranscriptEvent, Usage};
use line_template::{LineTemplate, Piece};
use result::Ending;
use wire::{Block, Event, Line, Streamed};
pub(super) use wire::{Message, block_as_it_came};

pub(super) const FORMAT: Format = Format {
    name: "claude",
    capabilities: CAPABILITIES,
    open,
};

/// What every stream of this family can tell.
pub(super) const CAPABILITIES: Capabilities = Capabilities {
    roles: true,
    messages: true,
    tools: true,
    usage: true,
    costs: true,
    sessions: true,
    prompt_hiding: true,
    terminal_event: true,
};

fn open(opening: &Opening<'_>) -> Box<dyn Adapter> {
    Box::new(Claude::new(opening, DIALECT))
}

/// In what the members of the family differ where they say the same.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dialect {
    pub(super) input: InputTokens,
    pub(super) result: ResultText,
}

const DIALECT: Dialect = Dialect {
    input: InputTokens::BesideCache,
    result: ResultText::LastMessage,
};

/// What `input_tokens` counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InputTokens {
    /// Only what no cache had to do with.
    BesideCache,
    /// All input.
    All,
}

/// What the `result` event repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResultText {
    LastMessage,
    /// All messages, glued together without anything between them.
    EveryMessage,
}

/// The model's name in messages that Claude Code wrote itself.
const SYNTHETIC: &str = "<synthetic>";

pub(super) struct Claude {
    dialect: Dialect,
    prompt: String,
    session: Option<String>,
    pub(super) speech: Assembler,
    pub(super) tools: Tools,
    /// Output tokens that were counted when the current message began, and whose message that is.
    counted: (Option<String>, u64),
    ending: Ending,
    mould: LineTemplate,
}

impl EventStream for Claude {
    type Event<'a> = Line<'a>;

    fn read_alike(&mut self, line: &str, out: &mut Vec<TranscriptEvent>) -> Alike {
        let Some(Piece { parent, tag, text }) = self.mould.piece(line) else {
            return Alike::No;
        };
        self.speech.piece(parent, tag, &text, out);
        Alike::Yes
    }

    fn parse(text: &str) -> Result<Line<'_>, String> {
        scan(text)
    }

    fn read(&mut self, read: &Line<'_>, line: &str, out: &mut Vec<TranscriptEvent>) {
        let Some(kind) = read.kind.text() else {
            return say_unreadable(line, "the object has no `type`".to_owned(), out);
        };
        self.note_session(read, line, out);
        match kind {
            "stream_event" => {
                let parent = read.parent_tool_use_id.text();
                // One that begins a session says so each time.
                if let Some((tag, text)) = read.event.piece()
                    && !read.subtype.is("init")
                {
                    self.mould.cast(line, parent, tag, text);
                }
                if self.read_stream(&read.event, parent, out) == Known::No {
                    with_all_of(line, |event| read_other(&scan_raw(event.event), out));
                }
            }
            "assistant" | "message_stop" => self.read_message(read, line, out),
            "user" => self.read_user(read, line, out),
            "system" if says_nothing(read.subtype.text().unwrap_or_default()) => {}
            "system" => with_all_of(line, |event| read_system(event, out)),
            "result" => with_all_of(line, |event| self.read_result(event, out)),
            "message_start"
            | "content_block_start"
            | "content_block_delta"
            | "content_block_stop"
            | "message_delta" => {
                let text = json_text(line);
                let bare: Streamed<'_> = JsonScan::object(&text).unwrap_or_default();
                let known = self.read_stream(&bare, read.parent_tool_use_id.text(), out);
                debug_assert_eq!(known, Known::Yes);
            }
            "rate_limit_event" => with_all_of(line, |event| result::read_rate_limit(event, out)),
            "error" => with_all_of(line, |event| result::read_error(event, out)),
            // What the program tells a program: nothing in it is for the reader of a transcript.
            "control_request"
            | "control_response"
            | "control_cancel_request"
            | "keep_alive"
            | "ping"
            | "tool_progress" => {}
            unknown => with_all_of(line, |event| mark_unknown(unknown, event.words().as_deref(), out)),
        }
    }

    fn speech(&mut self) -> &mut Assembler {
        &mut self.speech
    }

    fn tools(&mut self) -> &mut Tools {
        &mut self.tools
    }
}

impl Claude {
    pub(super) fn new(opening: &Opening<'_>, dialect: Dialect) -> Self {
        Self {
            dialect,
            prompt: opening.prompt.trim().to_owned(),
            session: None,
            speech: Assembler::default(),
            tools: Tools::default(),
            counted: (None, 0),
            ending: Ending::default(),
            mould: LineTemplate::default(),
        }
    }

    /// Every line names the session; it is told once, and by `init` with more.
    fn note_session(&mut self, read: &Line<'_>, line: &str, out: &mut Vec<TranscriptEvent>) {
        let begins = read.subtype.is("init");
        // A session that could not be found is named in the failure: that is not one to go on with.
        let failed = read.is_error.flag() == Some(true);
        let Some(id) = read.session_id.words().filter(|_| !failed) else {
            return;
        };
        if begins || self.session.as_deref() != Some(id) {
            self.session = Some(id.to_owned());
            self.mould.forget();
            with_all_of(line, |event| {
                out.push(TranscriptEvent::meta(Meta::Session {
                    session_id: id.to_owned(),
                    model: event.model.to_text(),
                    version: event.claude_code_version.to_text(),
                }));
            });
        }
    }

    /// A whole message, or one block of it.
    fn read_message(&mut self, read: &Line<'_>, line: &str, out: &mut Vec<TranscriptEvent>) {
        let parent = read.parent_tool_use_id.text();
        let message = &read.message;
        if message.model.is(SYNTHETIC) {
            return with_all_of(line, |event| self.ending.read_synthetic(event, out));
        }
        self.begin(message, parent, out);
        if let Some(text) = message.content.words() {
            self.speech.whole(parent, Tag::Ai, text, out);
        }
        for (index, block) in message.content.blocks().iter().enumerate() {
            if self.read_block(block, parent, out) == Known::No {
                with_all_of(line, |event| {
                    out.push(TranscriptEvent::Text {
                        tag: Tag::Sys,
                        text: wire::block_as_it_came(event.message, index),
                        flow: Flow::Message,
                        parent: parent.map(str::to_owned),
                    });
                });
            }
        }
    }

    /// Usage is counted when a message begins: each block of it repeats the same figures.
    fn begin(&mut self, message: &Message<'_>, parent: Option<&str>, out: &mut Vec<TranscriptEvent>) {
        let begun = match message.id.words() {
            Some(id) => self.speech.begin(parent, id),
            None => self.speech.begin_unnamed(parent),
        };
        if begun == Begun::Same {
            return;
        }
        let usage = Usage {
            model: message.model.text().map(|model| self.tools.name(model)),
            ..wire::usage(&message.usage, self.dialect.input)
        };
        self.counted = (parent.map(str::to_owned), usage.completion_tokens.unwrap_or(0));
        self.count(usage, out);
    }

    fn count(&mut self, usage: Usage, out: &mut Vec<TranscriptEvent>) {
        if !usage.is_empty() {
            self.ending.steps.add(&usage);
            out.push(self.tools.usage(usage));
        }
    }

    fn read_block(
        &mut self,
        block: &Block<'_>,
        parent: Option<&str>,
        out: &mut Vec<TranscriptEvent>,
    ) -> Known {
        match (block.kind.text(), block.text.text(), block.thinking.text()) {
            // ralphex asks for no `type` where there is a `text`.
            (Some("text") | None, Some(text), _) => self.speech.whole(parent, Tag::Ai, text, out),
            (Some("thinking"), _, Some(text)) => self.speech.whole(parent, Tag::Think, text, out),
            (Some("redacted_thinking"), _, _) => {}
            (Some("tool_use"), _, _) if block.id.text().is_some() => self.start_tool(block, parent, out),
            (Some("tool_result"), _, _) => self.end_tool(block, out),
            _ => return Known::No,
        }
        Known::Yes
    }

    fn start_tool(&mut self, block: &Block<'_>, parent: Option<&str>, out: &mut Vec<TranscriptEvent>) {
        let name = block.name.text().unwrap_or("tool");
        self.speech.interrupt(parent);
        let tool = ToolStart {
            id: self.tools.name(block.id.text().unwrap_or_default()),
            name: self.tools.name(name),
            input: block.input.map(|input| self.tools.input(input)),
            parent: parent.map(str::to_owned),
        };
        self.tools.start(tool, out);
        if name == "TodoWrite" {
            out.extend(read_plan(block.input));
        }
    }

    fn end_tool(&mut self, block: &Block<'_>, out: &mut Vec<TranscriptEvent>) {
        let id = block.tool_use_id.text().unwrap_or_default();
        self.tools.output(id, block.content.text(), out);
        let status = match block.is_error.flag() {
            Some(true) => ToolStatus::Fail,
            Some(false) | None => ToolStatus::Ok,
        };
        let end = ToolEnd {
            id: self.tools.name(id),
            status,
            duration_ms: None,
        };
        self.tools.end(end, out);
        self.speech.dismiss(id);
    }

    fn read_user(&mut self, read: &Line<'_>, line: &str, out: &mut Vec<TranscriptEvent>) {
        let content = &read.message.content;
        if let Some(text) = content.words() {
            self.read_words_of_user(text, read, out);
        }
        for (index, block) in content.blocks().iter().enumerate() {
            match block.kind.text() {
                Some("tool_result") => self.end_tool(block, out),
                Some("text") => self.read_words_of_user(block.text.text().unwrap_or_default(), read, out),
                Some(kind) => self.read_words_of_user(&format!("[{kind}]"), read, out),
                None => with_all_of(line, |event| {
                    let words = wire::block_as_it_came(event.message, index);
                    self.read_words_of_user(&words, read, out);
                }),
            }
        }
    }

    /// What goes to the model without coming from a tool: the prompt, or a word of the program's own.
    fn read_words_of_user(&self, text: &str, read: &Line<'_>, out: &mut Vec<TranscriptEvent>) {
        let parent = read.parent_tool_use_id.text();
        if parent.is_none() && !self.prompt.is_empty() && text.trim() == self.prompt {
            out.push(hidden_prompt(text));
            return;
        }
        let tag = match (read.is_synthetic.flag(), read.is_replay.flag()) {
            (Some(true), _) => Tag::Sys,
            (_, Some(true)) => Tag::Prompt,
            _ => Tag::User,
        };
        out.push(TranscriptEvent::Text {
            tag,
            text: text.to_owned(),
            flow: Flow::Message,
            parent: parent.map(str::to_owned),
        });
    }

    /// An event of the model's own stream, wrapped or bare.
    fn read_stream(
        &mut self,
        event: &Streamed<'_>,
        parent: Option<&str>,
        out: &mut Vec<TranscriptEvent>,
    ) -> Known {
        match event.kind.text().unwrap_or_default() {
            "message_start" => self.begin(&scan_raw(event.message), parent, out),
            "content_block_start" | "content_block_stop" => self.speech.end_block(parent),
            "content_block_delta" => {
                if let Some((tag, text)) = event.piece() {
                    self.speech.piece(parent, tag, text, out);
                }
            }
            "message_delta" => {
                let total = wire::usage(&event.usage, self.dialect.input)
                    .completion_tokens
                    .unwrap_or(0);
                let (whose, counted) = &mut self.counted;
                if whose.as_deref() == parent && total > *counted {
                    let usage = Usage {
                        completion_tokens: Some(total - *counted),
                        ..Usage::default()
                    };
                    *counted = total;
                    self.count(usage, out);
                }
            }
            "message_stop" | "ping" => {}
            _ => return Known::No,
        }
        Known::Yes
    }
}

/// Whether an event was of a kind that is understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
enum Known {
    Yes,
    No,
}

/// Reads a line of one of the rarer kinds once more, for all that it has.
fn with_all_of(line: &str, act: impl FnOnce(&Event<'_>)) {
    match JsonScan::object(line) {
        Some(event) => act(&event),
        None => act(&JsonScan::object(&json_text(line)).unwrap_or_default()),
    }
}

/// Whether there is nothing for the reader of a transcript in what the program tells of itself. The session that `init`
/// names has been told already.
fn says_nothing(subtype: &str) -> bool {
    matches!(
        subtype,
        "init"
            | "thinking_tokens"
            | "hook_started"
            | "hook_progress"
            | "hook_response"
            | "task_progress"
            | "session_state_changed"
            | "files_persisted"
    )
}

fn read_system(event: &Event<'_>, out: &mut Vec<TranscriptEvent>) {
    match event.subtype.text().unwrap_or_default() {
        "api_retry" => result::read_retry(event, out),
        "compact_boundary" => {
            let words = event.content.words().unwrap_or("conversation compacted");
            out.push(TranscriptEvent::message(Tag::Sys, words));
        }
        "status" => {
            if let Some(status) = event.status.words().filter(|status| *status != "requesting") {
                out.push(TranscriptEvent::message(Tag::Sys, status));
            }
        }
        unknown => mark_unknown(&format!("system/{unknown}"), event.words().as_deref(), out),
    }
}

/// What else the model's stream may bring.
fn read_other(event: &Event<'_>, out: &mut Vec<TranscriptEvent>) {
    match event.kind.text().unwrap_or_default() {
        "error" => result::read_error(event, out),
        unknown => mark_unknown(&format!("stream_event/{unknown}"), event.words().as_deref(), out),
    }
}
