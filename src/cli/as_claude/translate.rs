//! Translates agent output to claude's stream-json: text as it arrives, and one result at the end.

use std::time::Duration;

use serde_json::{Value, json};

use crate::event::{Flow, Meta, ProcessEnd, Tag, TranscriptEvent, Usage, UsageScope};
use crate::transcript::{Adapter, Format};
use crate::ui::Terminal;

use crate::cli::error::CliError;

/// The result of a session.
#[derive(Debug, Default)]
pub(super) struct SessionResult {
    /// `None` means success.
    pub(super) failure: Option<String>,
    /// The last message.
    pub(super) text: String,
    pub(super) session: Option<String>,
    pub(super) usage: Usage,
}

/// Turns lines of agent output into text deltas.
pub(super) trait Translator {
    fn line(&mut self, line: &str, texts: &mut Vec<String>);
    fn end(&mut self, end: ProcessEnd, stderr: &str, texts: &mut Vec<String>) -> SessionResult;
}

/// Prints claude's stream-json.
pub(super) struct ClaudeWriter<'a> {
    terminal: &'a Terminal,
}

impl<'a> ClaudeWriter<'a> {
    pub(super) fn new(terminal: &'a Terminal) -> Self {
        Self { terminal }
    }

    pub(super) fn write_text(&self, text: &str) -> Result<(), CliError> {
        self.print(&json!({ "type": "content_block_delta", "delta": { "type": "text_delta", "text": text } }))
    }

    pub(super) fn write_result(&self, session: &SessionResult, elapsed: Duration) -> Result<(), CliError> {
        let failed = session.failure.is_some();
        let mut result = json!({
            "type": "result",
            "subtype": if failed { "error_during_execution" } else { "success" },
            "is_error": failed,
            "result": session.failure.as_ref().unwrap_or(&session.text),
            "duration_ms": u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
        });
        let mut add = |key: &str, value: Option<Value>| {
            if let (Some(value), Some(members)) = (value, result.as_object_mut()) {
                members.insert(key.to_owned(), value);
            }
        };
        add("session_id", session.session.clone().map(Value::from));
        add(
            "total_cost_usd",
            session.usage.cost_usd.map(|cost| Value::from(cost.get())),
        );
        if session.usage.tokens().is_some() {
            add(
                "usage",
                Some(json!({
                    "input_tokens": session.usage.prompt_tokens.unwrap_or(0),
                    "output_tokens": session.usage.completion_tokens.unwrap_or(0),
                })),
            );
        }
        self.print(&result)
    }

    pub(super) fn write_failure(&self, reason: &str, elapsed: Duration) -> Result<(), CliError> {
        let session = SessionResult {
            failure: Some(reason.to_owned()),
            ..SessionResult::default()
        };
        self.write_result(&session, elapsed)
    }

    fn print(&self, event: &Value) -> Result<(), CliError> {
        self.terminal
            .print(&format!("{event}\n"))
            .map_err(CliError::Output)
    }
}

/// Returns the failure of a process, with its stderr; `None` on success.
pub(super) fn failure_of(end: ProcessEnd, stderr: &str) -> Option<String> {
    match (end.success(), stderr) {
        (true, _) => None,
        (false, "") => Some(end.to_string()),
        (false, stderr) => Some(format!("{end}: {stderr}")),
    }
}

/// Formats whose lines contain complete texts; in others a text may continue on the next line.
const COMPLETE_TEXT_FORMATS: &[&str] = &["plain", "rtf1", "jq", "codex", "codex-text", "opencode"];

/// Translates any agent, using the events of its transcript format.
pub(super) struct EventTranslator {
    format: &'static Format,
    adapter: Box<dyn Adapter>,
    events: Vec<TranscriptEvent>,
    result: SessionResult,
    /// The last text did not end with a line break.
    line_open: bool,
    has_text: bool,
    finished: Option<bool>,
    reason: Option<String>,
}

impl EventTranslator {
    pub(super) fn new(format: &'static Format, adapter: Box<dyn Adapter>) -> Self {
        Self {
            format,
            adapter,
            events: Vec::new(),
            result: SessionResult::default(),
            line_open: false,
            has_text: false,
            finished: None,
            reason: None,
        }
    }

    fn process_events(&mut self, texts: &mut Vec<String>) {
        for event in std::mem::take(&mut self.events) {
            match event {
                TranscriptEvent::Text {
                    tag: Tag::Ai,
                    text,
                    flow,
                    parent: None,
                } => self.on_text(&text, flow, texts),
                TranscriptEvent::Usage { usage } => match usage.scope {
                    UsageScope::Step => self.result.usage.add(&usage),
                    UsageScope::Iteration | UsageScope::Session => self.result.usage = *usage,
                },
                TranscriptEvent::Meta { meta } => self.on_meta(meta),
                TranscriptEvent::Text { .. }
                | TranscriptEvent::ToolStart { .. }
                | TranscriptEvent::ToolOutput { .. }
                | TranscriptEvent::ToolEnd { .. } => {}
            }
        }
    }

    fn on_text(&mut self, text: &str, flow: Flow, texts: &mut Vec<String>) {
        match flow {
            Flow::Message => self.result.text.clear(),
            Flow::Line if !self.result.text.is_empty() => self.result.text.push('\n'),
            Flow::Line | Flow::Delta => {}
        }
        self.result.text.push_str(text);
        self.has_text |= !text.trim().is_empty();
        let mut output = String::new();
        if flow != Flow::Delta && self.line_open {
            output.push('\n');
        }
        output.push_str(text);
        if COMPLETE_TEXT_FORMATS.contains(&self.format.name) {
            output.push('\n');
        }
        self.line_open = !output.ends_with('\n');
        texts.push(output);
    }

    fn on_meta(&mut self, meta: Meta) {
        match meta {
            Meta::Session { session_id, .. } => self.result.session = Some(session_id),
            Meta::Finished { success, reason, .. } => {
                self.finished = Some(success);
                self.reason = reason.or(self.reason.take());
            }
            Meta::Error { message, .. } => self.reason = Some(message),
            Meta::Retry { .. }
            | Meta::RateLimit { .. }
            | Meta::Plan { .. }
            | Meta::FileChange { .. }
            | Meta::PermissionDenied { .. }
            | Meta::BackgroundTasks { .. }
            | Meta::ParseError { .. }
            | Meta::Cut { .. }
            | Meta::Unknown { .. }
            | Meta::Other(_) => {}
        }
    }
}

impl Translator for EventTranslator {
    fn line(&mut self, line: &str, texts: &mut Vec<String>) {
        self.adapter.feed(line, &mut self.events);
        self.process_events(texts);
    }

    fn end(&mut self, end: ProcessEnd, stderr: &str, texts: &mut Vec<String>) -> SessionResult {
        self.adapter.flush(&mut self.events);
        self.process_events(texts);
        if self.line_open {
            texts.push("\n".to_owned());
        }
        let reason = || {
            self.reason
                .clone()
                .unwrap_or_else(|| "the agent reported a failure".to_owned())
        };
        let mut result = std::mem::take(&mut self.result);
        result.failure = failure_of(end, stderr).or(match self.finished {
            Some(true) => None,
            Some(false) => Some(reason()),
            None if self.format.capabilities.terminal_event => {
                Some("the agent's output ended before its result".to_owned())
            }
            None => None,
        });
        if result.failure.is_none() && !self.has_text {
            result.failure = Some("the agent printed no message".to_owned());
        }
        result
    }
}
