//! `gemini`: the stream-json format of Gemini CLI. It streams text only in deltas and reports no reasoning or retries.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::common::{
    Assembler, EventStream, Field, Tools, classify_error, find_status, hidden_prompt, object, parse,
    push_unknown, push_unreadable,
};
use super::{Capabilities, Format};
use crate::event::{Json, Meta, Tag, ToolEnd, ToolStart, ToolStatus, TranscriptEvent, Usage, UsageScope};

pub(super) const FORMAT: Format = Format {
    name: "gemini",
    capabilities: Capabilities {
        roles: true,
        messages: true,
        tools: true,
        usage: true,
        costs: false,
        sessions: true,
        prompt_hiding: true,
        terminal_event: true,
    },
    open: |_| Box::<Gemini>::default(),
};

#[derive(Default)]
struct Gemini {
    assembler: Assembler,
    tools: Tools,
    /// The first delta of the current message.
    first_delta: String,
    /// The reason why the session failed, even if the result reports success.
    failure_reason: Option<String>,
    /// A result has reported the usage.
    usage_reported: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct GeminiEvent<'a> {
    #[serde(borrow, rename = "type")]
    kind: Field<'a>,
    #[serde(borrow)]
    session_id: Field<'a>,
    #[serde(borrow)]
    model: Field<'a>,
    #[serde(borrow)]
    role: Field<'a>,
    #[serde(borrow)]
    content: Field<'a>,
    #[serde(borrow)]
    delta: Field<'a>,
    #[serde(borrow)]
    tool_name: Field<'a>,
    #[serde(borrow)]
    tool_id: Field<'a>,
    #[serde(borrow)]
    parameters: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Field<'a>,
    #[serde(borrow)]
    output: Field<'a>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    severity: Field<'a>,
    #[serde(borrow)]
    message: Field<'a>,
    #[serde(borrow)]
    stats: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct GeminiError<'a> {
    #[serde(borrow)]
    message: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct GeminiStats<'a> {
    #[serde(borrow)]
    total_tokens: Field<'a>,
    #[serde(borrow)]
    input_tokens: Field<'a>,
    #[serde(borrow)]
    output_tokens: Field<'a>,
    #[serde(borrow)]
    cached: Field<'a>,
    #[serde(borrow)]
    duration_ms: Field<'a>,
    /// The same figures for each model.
    #[serde(borrow)]
    models: Option<&'a RawValue>,
}

impl GeminiStats<'_> {
    fn usage(&self) -> Usage {
        Usage {
            prompt_tokens: self.input_tokens.count(),
            completion_tokens: self.output_tokens.count(),
            total_tokens: self.total_tokens.count(),
            cached_tokens: self.cached.count(),
            ..Usage::default()
        }
    }

    fn total(&self) -> Usage {
        Usage {
            scope: UsageScope::Iteration,
            ..self.usage()
        }
    }

    /// The usage of each model if their sum equals the total, otherwise the total.
    fn usages(&self) -> Vec<Usage> {
        let models: BTreeMap<Cow<'_, str>, &RawValue> = object(self.models);
        let by_model: Vec<Usage> = models
            .into_iter()
            .map(|(model, stats)| Usage {
                model: Some(model.into_owned()),
                ..object::<GeminiStats<'_>>(Some(stats)).usage()
            })
            .filter(|usage| usage.tokens() != Some(0))
            .collect();
        let mut sum = Usage::default();
        by_model.iter().for_each(|usage| sum.add(usage));
        let total = self.total();
        if sum.tokens().is_some() && sum.tokens() == total.tokens() {
            by_model
        } else {
            vec![total]
        }
    }
}

impl EventStream for Gemini {
    type Event<'a> = GeminiEvent<'a>;

    fn parse(text: &str) -> Result<GeminiEvent<'_>, String> {
        parse(text)
    }

    fn read(&mut self, event: &GeminiEvent<'_>, line: &str, out: &mut Vec<TranscriptEvent>) {
        match event.kind.text() {
            Some("init") => {
                if let Some(id) = event.session_id.non_empty() {
                    out.push(TranscriptEvent::meta(Meta::Session {
                        session_id: id.to_owned(),
                        model: event.model.to_text(),
                        version: None,
                    }));
                }
            }
            Some("message") => self.read_message(event, out),
            Some("tool_use") => self.read_tool_use(event, out),
            Some("tool_result") => self.read_tool_result(event, out),
            Some("error") => self.read_error(event, out),
            Some("result") => self.read_result(event, out),
            Some(unknown) => push_unknown(
                unknown,
                event.message.non_empty().or(event.content.non_empty()),
                out,
            ),
            None => push_unreadable(line, "`type` is missing".to_owned(), out),
        }
    }

    fn tools(&mut self) -> &mut Tools {
        &mut self.tools
    }
}

impl Gemini {
    fn read_message(&mut self, event: &GeminiEvent<'_>, out: &mut Vec<TranscriptEvent>) {
        let text = event.content.text().unwrap_or_default();
        match event.role.text() {
            Some("user") => out.push(hidden_prompt(text)),
            Some("assistant") | None => {
                // After a broken connection the answer starts again without any sign.
                if self.first_delta == text && text.len() >= MIN_RESTART_LENGTH {
                    self.assembler.end_unnamed_message(None);
                }
                if self.assembler.is_between_messages() {
                    self.first_delta = text.to_owned();
                }
                if event.delta.flag() == Some(true) {
                    self.assembler.push_delta(None, Tag::Ai, text, out);
                } else {
                    let _ = self.assembler.begin_unnamed_message(None);
                    self.assembler.push_whole(None, Tag::Ai, text, out);
                }
            }
            Some(_) => out.push(TranscriptEvent::message(Tag::Sys, text)),
        }
    }

    fn read_tool_use(&mut self, event: &GeminiEvent<'_>, out: &mut Vec<TranscriptEvent>) {
        self.assembler.end_unnamed_message(None);
        let name = event.tool_name.text().unwrap_or("tool");
        let tool = ToolStart {
            id: event.tool_id.text().unwrap_or(name).to_owned(),
            name: name.to_owned(),
            input: event.parameters.map(Json::from),
            parent: None,
        };
        self.tools.start(tool, out);
    }

    fn read_tool_result(&mut self, event: &GeminiEvent<'_>, out: &mut Vec<TranscriptEvent>) {
        let id = event.tool_id.text().unwrap_or_default();
        let error: GeminiError<'_> = object(event.error);
        let output = event
            .output
            .non_empty()
            .or(error.message.non_empty())
            .unwrap_or_default();
        self.tools.output(id, output, out);
        let status = match event.status.text() {
            Some("success") => ToolStatus::Ok,
            Some("error") => ToolStatus::Fail,
            _ => ToolStatus::Unknown,
        };
        let end = ToolEnd {
            id: id.to_owned(),
            status,
            duration_ms: None,
        };
        self.tools.end(end, out);
    }

    /// Reads an error or a warning. A "Loop detected" warning fails the session, although its result reports success.
    fn read_error(&mut self, event: &GeminiEvent<'_>, out: &mut Vec<TranscriptEvent>) {
        let message = event.message.text().unwrap_or_default();
        if event.severity.is("warning") {
            out.push(TranscriptEvent::message(Tag::Sys, message));
            if message.starts_with("Loop detected") {
                self.failure_reason = Some(message.to_owned());
            }
            return;
        }
        out.push(error_event(message));
        self.failure_reason = Some(message.to_owned());
    }

    fn read_result(&mut self, event: &GeminiEvent<'_>, out: &mut Vec<TranscriptEvent>) {
        let stats: GeminiStats<'_> = object(event.stats);
        let error: GeminiError<'_> = object(event.error);
        if let Some(message) = error.message.non_empty() {
            out.push(error_event(message));
        }
        let silent = !self.assembler.answered() && !self.tools.used();
        let reason = match (&self.failure_reason, event.status.text()) {
            (Some(message), _) => message.clone(),
            (None, Some("success")) if silent => "no answer".to_owned(),
            (None, status) => status.unwrap_or("no status").to_owned(),
        };
        out.push(TranscriptEvent::meta(Meta::Finished {
            success: reason == "success",
            reason: Some(reason),
            text: None,
            turns: None,
            duration_ms: stats.duration_ms.count(),
        }));
        // The figures of a second result include those of the first.
        let usages = match std::mem::replace(&mut self.usage_reported, true) {
            true => vec![stats.total()],
            false => stats.usages(),
        };
        let used = usages.into_iter().filter(|usage| !usage.is_empty());
        out.extend(used.map(TranscriptEvent::usage));
        self.failure_reason = None;
        self.assembler.end_unnamed_message(None);
    }
}

/// A repeated first delta of at least this length means that the answer restarted; a shorter one may be a coincidence.
const MIN_RESTART_LENGTH: usize = 16;

/// Converts an error message. Gemini reports every error with the type `unknown`; the message may contain a status.
fn error_event(message: &str) -> TranscriptEvent {
    let status = find_status(message, &["\"code\":", "\"code\": "]);
    TranscriptEvent::meta(Meta::Error {
        class: classify_error(status, message),
        message: message.to_owned(),
        status,
    })
}
