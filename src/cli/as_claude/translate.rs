//! Claude's way of speaking: text as it comes, and one result at the end.

use std::time::Duration;

use serde_json::{Value, json};

use crate::event::{Flow, Meta, ProcessEnd, Tag, TranscriptEvent, Usage, UsageScope};
use crate::transcript::{Adapter, Format};
use crate::ui::Terminal;

use super::super::error::CliError;

/// How a session ended.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    /// `None` is success.
    pub(super) failure: Option<String>,
    /// The last message.
    pub(super) text: String,
    pub(super) session: Option<String>,
    pub(super) usage: Usage,
}

/// Lines of an agent in, texts to say out.
pub(super) trait Translate {
    fn line(&mut self, line: &str, texts: &mut Vec<String>);
    fn end(&mut self, end: ProcessEnd, stderr: &str, texts: &mut Vec<String>) -> Verdict;
}

pub(super) struct Speech<'a> {
    terminal: &'a Terminal,
}

impl<'a> Speech<'a> {
    pub(super) fn new(terminal: &'a Terminal) -> Self {
        Self { terminal }
    }

    pub(super) fn say(&self, text: &str) -> Result<(), CliError> {
        self.print(&json!({ "type": "content_block_delta", "delta": { "type": "text_delta", "text": text } }))
    }

    pub(super) fn conclude(&self, verdict: &Verdict, elapsed: Duration) -> Result<(), CliError> {
        let failed = verdict.failure.is_some();
        let mut result = json!({
            "type": "result",
            "subtype": if failed { "error_during_execution" } else { "success" },
            "is_error": failed,
            "result": verdict.failure.as_ref().unwrap_or(&verdict.text),
            "duration_ms": u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
        });
        let mut add = |key: &str, value: Option<Value>| {
            if let (Some(value), Some(members)) = (value, result.as_object_mut()) {
                members.insert(key.to_owned(), value);
            }
        };
        add("session_id", verdict.session.clone().map(Value::from));
        add("total_cost_usd", verdict.usage.cost_usd.map(Value::from));
        if verdict.usage.tokens().is_some() {
            add(
                "usage",
                Some(json!({
                    "input_tokens": verdict.usage.prompt_tokens.unwrap_or(0),
                    "output_tokens": verdict.usage.completion_tokens.unwrap_or(0),
                })),
            );
        }
        self.print(&result)
    }

    pub(super) fn fail(&self, reason: &str, elapsed: Duration) -> Result<(), CliError> {
        let verdict = Verdict {
            failure: Some(reason.to_owned()),
            ..Verdict::default()
        };
        self.conclude(&verdict, elapsed)
    }

    fn print(&self, event: &Value) -> Result<(), CliError> {
        self.terminal
            .print(&format!("{event}\n"))
            .map_err(CliError::Output)
    }
}

/// Why a process that ended so has failed.
pub(super) fn failure_of(end: ProcessEnd, stderr: &str) -> Option<String> {
    match (end.success(), stderr) {
        (true, _) => None,
        (false, "") => Some(end.to_string()),
        (false, stderr) => Some(format!("{end}: {stderr}")),
    }
}

/// Formats in which a line holds whole texts; in the others a text may go on in the next line.
const WHOLE: &[&str] = &["plain", "rtf1", "jq", "codex", "codex-text", "opencode"];

/// Any agent, by the events of its format.
pub(super) struct Events {
    format: &'static Format,
    adapter: Box<dyn Adapter>,
    events: Vec<TranscriptEvent>,
    verdict: Verdict,
    /// The last text that was said ended without a line break.
    open: bool,
    said: bool,
    finished: Option<bool>,
    reason: Option<String>,
}

impl Events {
    pub(super) fn new(format: &'static Format, adapter: Box<dyn Adapter>) -> Self {
        Self {
            format,
            adapter,
            events: Vec::new(),
            verdict: Verdict::default(),
            open: false,
            said: false,
            finished: None,
            reason: None,
        }
    }

    fn take(&mut self, texts: &mut Vec<String>) {
        for event in std::mem::take(&mut self.events) {
            match event {
                TranscriptEvent::Text {
                    tag: Tag::Ai,
                    text,
                    flow,
                    parent: None,
                } => self.hear(&text, flow, texts),
                TranscriptEvent::Usage { usage } => match usage.scope {
                    UsageScope::Step => self.verdict.usage.add(&usage),
                    UsageScope::Iteration | UsageScope::Session => self.verdict.usage = *usage,
                },
                TranscriptEvent::Meta { meta } => self.note(meta),
                TranscriptEvent::Text { .. }
                | TranscriptEvent::ToolStart { .. }
                | TranscriptEvent::ToolOutput { .. }
                | TranscriptEvent::ToolEnd { .. } => {}
            }
        }
    }

    fn hear(&mut self, text: &str, flow: Flow, texts: &mut Vec<String>) {
        match flow {
            Flow::Message => self.verdict.text.clear(),
            Flow::Line if !self.verdict.text.is_empty() => self.verdict.text.push('\n'),
            Flow::Line | Flow::Delta => {}
        }
        self.verdict.text.push_str(text);
        self.said |= !text.trim().is_empty();
        let mut said = String::new();
        if flow != Flow::Delta && self.open {
            said.push('\n');
        }
        said.push_str(text);
        if WHOLE.contains(&self.format.name) {
            said.push('\n');
        }
        self.open = !said.ends_with('\n');
        texts.push(said);
    }

    fn note(&mut self, meta: Meta) {
        match meta {
            Meta::Session { session_id, .. } => self.verdict.session = Some(session_id),
            Meta::Finished {
                success,
                reason,
                text,
                ..
            } => {
                self.finished = Some(success);
                if let Some(text) = text.filter(|text| !text.is_empty()) {
                    self.said = true;
                    self.verdict.text = text;
                }
                self.reason = reason.or(self.reason.take());
            }
            Meta::Error { message, .. } => self.reason = Some(message),
            Meta::Retry { .. }
            | Meta::RateLimit { .. }
            | Meta::Plan { .. }
            | Meta::FileChange { .. }
            | Meta::PermissionDenied { .. }
            | Meta::ParseError { .. }
            | Meta::Cut { .. }
            | Meta::Other(_) => {}
        }
    }
}

impl Translate for Events {
    fn line(&mut self, line: &str, texts: &mut Vec<String>) {
        self.adapter.feed(line, &mut self.events);
        self.take(texts);
    }

    fn end(&mut self, end: ProcessEnd, stderr: &str, texts: &mut Vec<String>) -> Verdict {
        self.adapter.flush(&mut self.events);
        self.take(texts);
        if self.open {
            texts.push("\n".to_owned());
        }
        let reason = || {
            self.reason
                .clone()
                .unwrap_or_else(|| "the agent reported a failure".to_owned())
        };
        let mut verdict = std::mem::take(&mut self.verdict);
        verdict.failure = failure_of(end, stderr).or(match self.finished {
            Some(true) => None,
            Some(false) => Some(reason()),
            None if self.format.capabilities.terminal_event => {
                Some("the agent's output ended before its result".to_owned())
            }
            None => None,
        });
        if verdict.failure.is_none() && !self.said {
            verdict.failure = Some("the agent said nothing".to_owned());
        }
        verdict
    }
}
