//! `claude`: the stream-json format of Claude Code and of compatible programs (ralphex's wrappers print four of its events
//! without an envelope). `result` handles results and errors, `wire` defines the JSON types.

mod result;
#[cfg(test)]
mod tests;
mod wire;

use super::common::{
    Assembler, EventStream, JsonScanner, MessageStatus, Tools, hidden_prompt, json_text, push_unknown,
    push_unreadable, read_plan, scan, scan_raw,
};
use super::{Adapter, AdapterContext, Capabilities, Format};
use crate::event::{Flow, Json, Meta, Tag, ToolEnd, ToolStart, ToolStatus, TranscriptEvent, Usage};
use result::ResultState;
use wire::{ClaudeBlock, ClaudeLine, ClaudeStreamEvent, FullClaudeLine};
pub(super) use wire::{ClaudeMessage, raw_block};

pub(super) const FORMAT: Format = Format {
    name: "claude",
    capabilities: CAPABILITIES,
    open,
};

/// The capabilities of all Claude-compatible formats.
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

fn open(context: &AdapterContext<'_>) -> Box<dyn Adapter> {
    Box::new(Claude::new(context, DIALECT))
}

/// The differences between Claude-compatible formats.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dialect {
    pub(super) input: InputTokens,
    pub(super) output: OutputTokens,
    pub(super) result: ResultText,
    pub(super) total: ResultUsage,
}

const DIALECT: Dialect = Dialect {
    input: InputTokens::ExcludingCache,
    output: OutputTokens::OfCompleteMessages,
    result: ResultText::LastMessage,
    total: ResultUsage::OfTurn,
};

/// The meaning of `input_tokens`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InputTokens {
    /// Input tokens without cache reads and writes.
    ExcludingCache,
    /// All input tokens.
    All,
}

/// The messages whose `output_tokens` are final.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputTokens {
    /// Messages with a `stop_reason`. Before that, the figure is the one at the start of the message.
    OfCompleteMessages,
    OfAllMessages,
}

/// What the `usage` of a `result` event covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResultUsage {
    OfTurn,
    /// All turns of the session, including those of earlier processes.
    OfSession,
}

/// The text that the `result` event repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResultText {
    LastMessage,
    /// All messages, joined without a separator.
    AllMessages,
}

/// The model name in messages that Claude Code generates.
const SYNTHETIC: &str = "<synthetic>";

pub(super) struct Claude {
    dialect: Dialect,
    prompt: String,
    session: Option<String>,
    pub(super) assembler: Assembler,
    pub(super) tools: Tools,
    /// The output tokens counted for the current message, and its parent tool call.
    counted_output: (Option<String>, u64),
    result_state: ResultState,
}

impl EventStream for Claude {
    type Event<'a> = ClaudeLine<'a>;

    fn parse(text: &str) -> Result<ClaudeLine<'_>, String> {
        scan(text)
    }

    fn read(&mut self, parsed: &ClaudeLine<'_>, line: &str, out: &mut Vec<TranscriptEvent>) {
        let Some(kind) = parsed.kind.text() else {
            return push_unreadable(line, "`type` is missing".to_owned(), out);
        };
        self.report_session(parsed, line, out);
        match kind {
            "stream_event" => {
                let parent = parsed.parent_tool_use_id.text();
                if self.read_stream(&parsed.event, parent, out) == Recognized::No {
                    with_full_line(line, |event| read_other_stream_event(&scan_raw(event.event), out));
                }
            }
            "assistant" | "message_stop" => self.read_message(parsed, line, out),
            "user" => self.read_user(parsed, line, out),
            "system" if is_ignored_subtype(parsed.subtype.text().unwrap_or_default()) => {}
            "system" => with_full_line(line, |event| self.read_system(event, out)),
            "result" => with_full_line(line, |event| self.read_result(event, out)),
            "message_start"
            | "content_block_start"
            | "content_block_delta"
            | "content_block_stop"
            | "message_delta" => {
                let text = json_text(line);
                let bare: ClaudeStreamEvent<'_> = JsonScanner::object(&text).unwrap_or_default();
                let recognized = self.read_stream(&bare, parsed.parent_tool_use_id.text(), out);
                debug_assert_eq!(recognized, Recognized::Yes);
            }
            "rate_limit_event" => with_full_line(line, |event| result::read_rate_limit(event, out)),
            "error" => with_full_line(line, |event| result::read_error(event, out)),
            // Messages between programs, without content for the transcript.
            "control_request"
            | "control_response"
            | "control_cancel_request"
            | "keep_alive"
            | "ping"
            | "tool_progress" => {}
            "tool_use_summary" => with_full_line(line, |event| push_text(event, out)),
            unknown => with_full_line(line, |event| {
                push_unknown(unknown, event.display_text().as_deref(), out)
            }),
        }
    }

    fn tools(&mut self) -> &mut Tools {
        &mut self.tools
    }
}

impl Claude {
    pub(super) fn new(context: &AdapterContext<'_>, dialect: Dialect) -> Self {
        Self {
            dialect,
            prompt: context.prompt.trim().to_owned(),
            session: None,
            assembler: Assembler::default(),
            tools: Tools::default(),
            counted_output: (None, 0),
            result_state: ResultState::default(),
        }
    }

    /// Reports the session once, and again for `init`, which has more details. Every line contains the session id.
    fn report_session(&mut self, parsed: &ClaudeLine<'_>, line: &str, out: &mut Vec<TranscriptEvent>) {
        let is_init = parsed.subtype.is("init");
        // An error may contain the id of a session that was not found and cannot be resumed.
        let failed = parsed.is_error.flag() == Some(true);
        let Some(id) = parsed.session_id.non_empty().filter(|_| !failed) else {
            return;
        };
        if is_init || self.session.as_deref() != Some(id) {
            self.session = Some(id.to_owned());
            with_full_line(line, |event| {
                out.push(TranscriptEvent::meta(Meta::Session {
                    session_id: id.to_owned(),
                    model: event.model.to_text(),
                    version: event.claude_code_version.to_text(),
                }));
            });
        }
    }

    /// Reads a whole message or one block of it.
    fn read_message(&mut self, parsed: &ClaudeLine<'_>, line: &str, out: &mut Vec<TranscriptEvent>) {
        let parent = parsed.parent_tool_use_id.text();
        let message = &parsed.message;
        if message.model.is(SYNTHETIC) {
            return with_full_line(line, |event| self.result_state.read_synthetic(event, out));
        }
        self.begin(message, parent, out);
        if let Some(text) = message.content.text() {
            self.assembler.push_whole(parent, Tag::Ai, text, out);
        }
        for (index, block) in message.content.blocks().iter().enumerate() {
            if self.read_block(block, parent, out) == Recognized::No {
                with_full_line(line, |event| {
                    out.push(TranscriptEvent::Text {
                        tag: Tag::Sys,
                        text: wire::raw_block(event.message, index),
                        flow: Flow::Message,
                        parent: parent.map(str::to_owned),
                    });
                });
            }
        }
    }

    /// Begins a message and reports its usage once: each block repeats the same figures.
    fn begin(&mut self, message: &ClaudeMessage<'_>, parent: Option<&str>, out: &mut Vec<TranscriptEvent>) {
        let status = match message.id.non_empty() {
            Some(id) => self.assembler.begin_message(parent, id),
            None => self.assembler.begin_unnamed_message(parent),
        };
        if status == MessageStatus::Continued {
            return;
        }
        let mut usage = Usage {
            model: message.model.text().map(str::to_owned),
            ..wire::usage(&message.usage, self.dialect.input)
        };
        let is_complete = message.stop_reason.non_empty().is_some();
        if self.dialect.output == OutputTokens::OfCompleteMessages && !is_complete {
            usage.completion_tokens = None;
        }
        self.counted_output = (parent.map(str::to_owned), usage.completion_tokens.unwrap_or(0));
        self.count(usage, out);
    }

    fn count(&mut self, usage: Usage, out: &mut Vec<TranscriptEvent>) {
        if !usage.is_empty() {
            self.result_state.steps.add(&usage);
            out.push(TranscriptEvent::usage(usage));
        }
    }

    fn read_block(
        &mut self,
        block: &ClaudeBlock<'_>,
        parent: Option<&str>,
        out: &mut Vec<TranscriptEvent>,
    ) -> Recognized {
        match (block.kind.text(), block.text.text(), block.thinking.text()) {
            // ralphex's wrappers omit `type` in text blocks.
            (Some("text") | None, Some(text), _) => self.assembler.push_whole(parent, Tag::Ai, text, out),
            (Some("thinking"), _, Some(text)) => self.assembler.push_whole(parent, Tag::Think, text, out),
            (Some("redacted_thinking"), _, _) => {}
            (Some("tool_use"), _, _) if block.id.text().is_some() => self.start_tool(block, parent, out),
            (Some("tool_result"), _, _) => self.end_tool(block, out),
            _ => return Recognized::No,
        }
        Recognized::Yes
    }

    fn start_tool(&mut self, block: &ClaudeBlock<'_>, parent: Option<&str>, out: &mut Vec<TranscriptEvent>) {
        let name = block.name.text().unwrap_or("tool");
        self.assembler.end_unnamed_message(parent);
        let tool = ToolStart {
            id: block.id.text().unwrap_or_default().to_owned(),
            name: name.to_owned(),
            input: block.input.map(Json::from),
            parent: parent.map(str::to_owned),
        };
        self.tools.start(tool, out);
        if name == "TodoWrite" {
            out.extend(read_plan(block.input));
        }
    }

    fn end_tool(&mut self, block: &ClaudeBlock<'_>, out: &mut Vec<TranscriptEvent>) {
        let id = block.tool_use_id.text().unwrap_or_default();
        self.tools.output(id, block.content.text(), out);
        let status = match block.is_error.flag() {
            Some(true) => ToolStatus::Fail,
            Some(false) | None => ToolStatus::Ok,
        };
        let end = ToolEnd {
            id: id.to_owned(),
            status,
            duration_ms: None,
        };
        self.tools.end(end, out);
        self.assembler.remove_subagent(id);
    }

    fn read_user(&mut self, parsed: &ClaudeLine<'_>, line: &str, out: &mut Vec<TranscriptEvent>) {
        let content = &parsed.message.content;
        if let Some(text) = content.text() {
            self.read_user_text(text, parsed, out);
        }
        for (index, block) in content.blocks().iter().enumerate() {
            match block.kind.text() {
                Some("tool_result") => self.end_tool(block, out),
                Some("text") => self.read_user_text(block.text.text().unwrap_or_default(), parsed, out),
                Some(kind) => self.read_user_text(&format!("[{kind}]"), parsed, out),
                None => with_full_line(line, |event| {
                    let text = wire::raw_block(event.message, index);
                    self.read_user_text(&text, parsed, out);
                }),
            }
        }
    }

    /// Reads input of the model other than tool results: the prompt or a message of the program.
    fn read_user_text(&self, text: &str, parsed: &ClaudeLine<'_>, out: &mut Vec<TranscriptEvent>) {
        let parent = parsed.parent_tool_use_id.text();
        if parent.is_none() && !self.prompt.is_empty() && text.trim() == self.prompt {
            out.push(hidden_prompt(text));
            return;
        }
        let tag = match (parsed.is_synthetic.flag(), parsed.is_replay.flag()) {
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

    /// Reads an event of the model's stream, with or without an envelope.
    fn read_stream(
        &mut self,
        event: &ClaudeStreamEvent<'_>,
        parent: Option<&str>,
        out: &mut Vec<TranscriptEvent>,
    ) -> Recognized {
        match event.kind.text().unwrap_or_default() {
            "message_start" => self.begin(&scan_raw(event.message), parent, out),
            "content_block_start" | "content_block_stop" => self.assembler.end_block(parent),
            "content_block_delta" => {
                if let Some((tag, text)) = event.text_delta() {
                    self.assembler.push_delta(parent, tag, text, out);
                }
            }
            "message_delta" => {
                let total = wire::usage(&event.usage, self.dialect.input)
                    .completion_tokens
                    .unwrap_or(0);
                let (counted_parent, counted) = &mut self.counted_output;
                if counted_parent.as_deref() == parent && total > *counted {
                    let usage = Usage {
                        completion_tokens: Some(total - *counted),
                        ..Usage::default()
                    };
                    *counted = total;
                    self.count(usage, out);
                }
            }
            "message_stop" | "ping" => {}
            _ => return Recognized::No,
        }
        Recognized::Yes
    }
}

/// Whether the type of an event is recognized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
enum Recognized {
    Yes,
    No,
}

/// Parses a line of a rare type again, with all of its fields.
fn with_full_line(line: &str, read: impl FnOnce(&FullClaudeLine<'_>)) {
    match JsonScanner::object(line) {
        Some(event) => read(&event),
        None => read(&JsonScanner::object(&json_text(line)).unwrap_or_default()),
    }
}

/// True if a `system` event has no content for the transcript. The session of `init` has already been reported.
fn is_ignored_subtype(subtype: &str) -> bool {
    matches!(
        subtype,
        "init"
            | "thinking_tokens"
            | "task_started"
            | "task_updated"
            | "hook_started"
            | "hook_progress"
            | "hook_response"
            | "task_progress"
            | "session_state_changed"
            | "files_persisted"
    )
}

impl Claude {
    fn read_system(&mut self, event: &FullClaudeLine<'_>, out: &mut Vec<TranscriptEvent>) {
        match event.subtype.text().unwrap_or_default() {
            "api_retry" => result::read_retry(event, out),
            "background_tasks_changed" => {
                let tasks = wire::task_descriptions(event.tasks);
                out.push(TranscriptEvent::meta(Meta::BackgroundTasks { tasks }));
            }
            // A report repeats the answer of a subagent.
            "task_notification" if event.summary_is_report.flag() == Some(true) => {}
            "model_refusal_no_fallback" => self.result_state.note_refusal(),
            "compact_boundary" => {
                let text = event.content.non_empty().unwrap_or("conversation compacted");
                out.push(TranscriptEvent::message(Tag::Sys, text));
            }
            "status" => {
                if let Some(status) = event.status.non_empty().filter(|status| *status != "requesting") {
                    out.push(TranscriptEvent::message(Tag::Sys, status));
                }
            }
            "task_started"
            | "task_updated"
            | "task_progress"
            | "task_notification"
            | "model_fallback"
            | "informational"
            | "local_command_output" => push_text(event, out),
            unknown => push_unknown(&format!("system/{unknown}"), event.display_text().as_deref(), out),
        }
    }
}

/// Shows the text of an event that has nothing else.
fn push_text(event: &FullClaudeLine<'_>, out: &mut Vec<TranscriptEvent>) {
    let text = event.display_text();
    out.extend(text.map(|text| TranscriptEvent::message(Tag::Sys, text)));
}

/// Reads an event of the model's stream that is an error or has an unknown type.
fn read_other_stream_event(event: &FullClaudeLine<'_>, out: &mut Vec<TranscriptEvent>) {
    match event.kind.text().unwrap_or_default() {
        "error" => result::read_error(event, out),
        unknown => push_unknown(
            &format!("stream_event/{unknown}"),
            event.display_text().as_deref(),
            out,
        ),
    }
}
