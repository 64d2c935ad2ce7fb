//! `copilot`: the JSON events of GitHub Copilot CLI. Of the ephemeral events, only text deltas and retries are read.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::common::{
    Assembler, EventStream, Field, Tools, classify_error, hidden_prompt, list, object, parse, push_other,
    push_unknown, push_unreadable,
};
use super::{Capabilities, Format};
use crate::event::{
    FileChangeKind, Json, Meta, Tag, ToolEnd, ToolStart, ToolStatus, TranscriptEvent, Usage, UsageScope,
};

pub(super) const FORMAT: Format = Format {
    name: "copilot",
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
    open: |_| Box::<Copilot>::default(),
};

#[derive(Default)]
struct Copilot {
    assembler: Assembler,
    tools: Tools,
    /// Status and message of the last failed model call.
    failed_call: (Option<u16>, String),
    retries: u64,
    error: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CopilotEvent<'a> {
    #[serde(borrow, rename = "type")]
    kind: Field<'a>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    #[serde(borrow)]
    ephemeral: Field<'a>,
    #[serde(borrow, rename = "sessionId")]
    session_id: Field<'a>,
    #[serde(borrow, rename = "exitCode")]
    exit_code: Field<'a>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    /// A field of the usage file that copilot writes at the end of a session; the file is read as an additional line.
    #[serde(borrow, rename = "modelMetrics")]
    model_metrics: Option<&'a RawValue>,
}

/// The usage of one model.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ModelMetrics<'a> {
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct CopilotTokens<'a> {
    #[serde(borrow)]
    input_tokens: Field<'a>,
    #[serde(borrow)]
    output_tokens: Field<'a>,
    #[serde(borrow)]
    cache_read_tokens: Field<'a>,
    #[serde(borrow)]
    cache_write_tokens: Field<'a>,
    #[serde(borrow)]
    reasoning_tokens: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct CopilotData<'a> {
    #[serde(borrow)]
    content: Field<'a>,
    #[serde(borrow)]
    delta_content: Field<'a>,
    #[serde(borrow)]
    message_id: Field<'a>,
    #[serde(borrow)]
    reasoning_text: Field<'a>,
    #[serde(borrow)]
    tool_call_id: Field<'a>,
    #[serde(borrow)]
    tool_name: Field<'a>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    success: Field<'a>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    shell_execution: Option<&'a RawValue>,
    #[serde(borrow)]
    file_edits: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Field<'a>,
    #[serde(borrow)]
    error_message: Field<'a>,
    #[serde(borrow)]
    status_code: Field<'a>,
    #[serde(borrow)]
    info_type: Field<'a>,
    #[serde(borrow)]
    reason: Field<'a>,
}

/// The fields of several small objects inside an event.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct CopilotDetail<'a> {
    #[serde(borrow)]
    content: Field<'a>,
    #[serde(borrow)]
    message: Field<'a>,
    #[serde(borrow)]
    code: Field<'a>,
    #[serde(borrow)]
    exit_code: Field<'a>,
    #[serde(borrow)]
    path: Field<'a>,
    #[serde(borrow)]
    kind: Field<'a>,
    #[serde(borrow)]
    session_duration_ms: Field<'a>,
}

impl EventStream for Copilot {
    type Event<'a> = CopilotEvent<'a>;

    fn parse(text: &str) -> Result<CopilotEvent<'_>, String> {
        parse(text)
    }

    fn read(&mut self, event: &CopilotEvent<'_>, line: &str, out: &mut Vec<TranscriptEvent>) {
        match event.kind.text() {
            Some("result") => self.read_result(event, out),
            Some(kind) => self.read_record(kind, event, out),
            None if event.model_metrics.is_some() => out.extend(session_usage(event.model_metrics)),
            None => push_unreadable(line, "`type` is missing".to_owned(), out),
        }
    }

    fn tools(&mut self) -> &mut Tools {
        &mut self.tools
    }
}

impl Copilot {
    fn read_record(&mut self, kind: &str, event: &CopilotEvent<'_>, out: &mut Vec<TranscriptEvent>) {
        let data: CopilotData<'_> = object(event.data);
        match kind {
            "user.message" => out.push(hidden_prompt(data.content.text().unwrap_or_default())),
            "assistant.message_start" => self.begin(&data),
            "assistant.message_delta" => {
                self.begin(&data);
                let text = data.delta_content.text().unwrap_or_default();
                self.assembler.push_delta(None, Tag::Ai, text, out);
            }
            "assistant.reasoning_delta" => {
                let text = data.delta_content.text().unwrap_or_default();
                self.assembler.push_delta(None, Tag::Think, text, out);
            }
            "assistant.message" => self.read_message(&data, out),
            "tool.execution_start" => self.start_tool(&data, out),
            "tool.execution_complete" => self.end_tool(&data, out),
            "session.error" => self.read_error(&data, out),
            "model.call_failure" => {
                self.failed_call = (data.status(), data.error_message.to_text().unwrap_or_default());
            }
            "assistant.turn_retry" => self.read_retry(&data, out),
            "session.info" if data.info_type.is("model_retry") || data.info_type.is("file_created") => {}
            "session.info" | "session.warning" | "abort" => {
                let text = data.message.non_empty().or(data.reason.non_empty());
                push_other(kind, text, out);
            }
            "assistant.turn_start" | "assistant.turn_end" => {}
            // Other ephemeral events are repeated in persistent events or have no content for the transcript.
            _ if event.ephemeral.flag() == Some(true) => {}
            unknown => push_unknown(
                unknown,
                data.message.non_empty().or(data.content.non_empty()),
                out,
            ),
        }
    }

    fn begin(&mut self, data: &CopilotData<'_>) {
        if let Some(id) = data.message_id.non_empty() {
            self.assembler.begin_answer(id);
        }
    }

    fn read_message(&mut self, data: &CopilotData<'_>, out: &mut Vec<TranscriptEvent>) {
        self.begin(data);
        self.assembler.push_whole(
            None,
            Tag::Think,
            data.reasoning_text.text().unwrap_or_default(),
            out,
        );
        self.assembler
            .push_whole(None, Tag::Ai, data.content.text().unwrap_or_default(), out);
        self.assembler.end_reasoning();
        self.retries = 0;
    }

    fn start_tool(&mut self, data: &CopilotData<'_>, out: &mut Vec<TranscriptEvent>) {
        let name = data.tool_name.text().unwrap_or("tool");
        let tool = ToolStart {
            id: data.tool_call_id.text().unwrap_or(name).to_owned(),
            name: name.to_owned(),
            input: data.arguments.map(Json::from),
            parent: None,
        };
        self.tools.start(tool, out);
    }

    fn end_tool(&mut self, data: &CopilotData<'_>, out: &mut Vec<TranscriptEvent>) {
        let id = data.tool_call_id.text().unwrap_or_default();
        let (result, error): (CopilotDetail<'_>, CopilotDetail<'_>) =
            (object(data.result), object(data.error));
        let output = result
            .content
            .non_empty()
            .or(error.message.non_empty())
            .unwrap_or_default();
        self.tools.output(id, output, out);
        for raw in list(data.file_edits) {
            out.extend(file_change(&object(Some(raw))));
        }
        if error.code.is("denied") {
            let tool = self.tools.name_of(id).unwrap_or("tool").to_owned();
            out.push(TranscriptEvent::meta(Meta::PermissionDenied { tool }));
        }
        // The tool succeeds even if its command failed; only the exit code shows the failure.
        let exit = object::<CopilotDetail<'_>>(data.shell_execution)
            .exit_code
            .real()
            .unwrap_or(0.0);
        let status = match data.success.flag() {
            Some(true) if exit == 0.0 => ToolStatus::Ok,
            Some(_) => ToolStatus::Fail,
            None => ToolStatus::Unknown,
        };
        let end = ToolEnd {
            id: id.to_owned(),
            status,
            duration_ms: None,
        };
        self.tools.end(end, out);
    }

    fn read_retry(&mut self, data: &CopilotData<'_>, out: &mut Vec<TranscriptEvent>) {
        let (status, message) = std::mem::take(&mut self.failed_call);
        let reason = data.reason.text().unwrap_or_default();
        self.retries += 1;
        out.push(TranscriptEvent::meta(Meta::Retry {
            attempt: self.retries,
            max_attempts: None,
            delay_ms: None,
            class: classify_error(status, &format!("{reason} {message}")),
            message: match status {
                Some(status) => format!("{reason} ({status})"),
                None => reason.to_owned(),
            },
        }));
    }

    fn read_error(&mut self, data: &CopilotData<'_>, out: &mut Vec<TranscriptEvent>) {
        let message = data.message.text().unwrap_or("session error").to_owned();
        let status = data.status();
        out.push(TranscriptEvent::meta(Meta::Error {
            class: classify_error(status, &message),
            message: message.clone(),
            status,
        }));
        self.error = Some(message);
    }

    /// Reads the result, which is the only event with the session id.
    fn read_result(&mut self, event: &CopilotEvent<'_>, out: &mut Vec<TranscriptEvent>) {
        if let Some(id) = event.session_id.non_empty() {
            out.push(TranscriptEvent::meta(Meta::Session {
                session_id: id.to_owned(),
                model: None,
                version: None,
            }));
        }
        let silent = !self.assembler.answered() && !self.tools.used();
        let exit = event.exit_code.real();
        let reason = match (self.error.take(), exit) {
            (Some(message), _) => Some(message),
            (None, Some(code)) if code != 0.0 => Some(format!("exit code {code}")),
            (None, _) if silent => Some("no answer".to_owned()),
            (None, _) => None,
        };
        let usage: CopilotDetail<'_> = object(event.usage);
        out.push(TranscriptEvent::meta(Meta::Finished {
            success: reason.is_none(),
            reason,
            text: None,
            turns: None,
            duration_ms: usage.session_duration_ms.count(),
        }));
    }
}

impl CopilotData<'_> {
    fn status(&self) -> Option<u16> {
        self.status_code
            .count()
            .and_then(|status| u16::try_from(status).ok())
    }
}

/// The usage of all models of the session. It has a model name if there was only one model.
fn session_usage(metrics: Option<&RawValue>) -> Option<TranscriptEvent> {
    let models: BTreeMap<String, ModelMetrics<'_>> = object(metrics);
    let mut usage = Usage::default();
    for (name, model) in &models {
        let tokens: CopilotTokens<'_> = object(model.usage);
        usage.add(&Usage {
            prompt_tokens: tokens.input_tokens.count(),
            completion_tokens: tokens.output_tokens.count(),
            cached_tokens: tokens.cache_read_tokens.count(),
            cache_write_tokens: tokens.cache_write_tokens.count(),
            reasoning_tokens: tokens.reasoning_tokens.count(),
            model: Some(name.clone()),
            ..Usage::default()
        });
    }
    if models.len() > 1 {
        usage.model = None;
    }
    usage.scope = UsageScope::Session;
    (!usage.is_empty()).then_some(TranscriptEvent::usage(usage))
}

fn file_change(edit: &CopilotDetail<'_>) -> Option<TranscriptEvent> {
    let change = match edit.kind.text() {
        Some("create") => FileChangeKind::Added,
        Some("delete") => FileChangeKind::Deleted,
        _ => FileChangeKind::Modified,
    };
    let path = edit.path.non_empty()?.to_owned();
    Some(TranscriptEvent::meta(Meta::FileChange { path, change }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::read_all;

    #[test]
    fn usage_file_is_read_as_a_line() {
        let file = r#"{ "totalUserRequests": 1, "modelMetrics": { "m": { "requests": { "count": 2 },
            "usage": { "inputTokens": 2400, "outputTokens": 170, "cacheReadTokens": 600 } } }, "currentModel": "m" }"#;
        let [TranscriptEvent::Usage { usage }] = &read_all("copilot", "", &file.replace('\n', ""))[..] else {
            panic!("expected one usage event")
        };
        assert_eq!(
            (usage.prompt_tokens, usage.completion_tokens),
            (Some(2400), Some(170))
        );
        assert_eq!(
            (usage.cached_tokens, usage.model.as_deref()),
            (Some(600), Some("m"))
        );
        assert_eq!(usage.scope, UsageScope::Session);
        assert_eq!(read_all("copilot", "", r#"{"modelMetrics":{}}"#), []);
    }
}
