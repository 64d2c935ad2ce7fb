//! `copilot`: the JSON events of GitHub Copilot's CLI. What is not ephemeral is the record; of the rest only the
//! pieces of text and the retries are read.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::common::{
    Assembler, EventStream, Field, Tools, class_of_error, hidden_prompt, list, mark_unknown, object, parse,
    say_unreadable,
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
    speech: Assembler,
    tools: Tools,
    /// The last call of a model that failed: its status and its words.
    failed_call: (Option<u16>, String),
    retries: u64,
    error: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Event<'a> {
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
    /// Of the file in which it writes at its end what the whole session used, read as one more line.
    #[serde(borrow, rename = "modelMetrics")]
    model_metrics: Option<&'a RawValue>,
}

/// What one model used.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Metrics<'a> {
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Tokens<'a> {
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
struct Data<'a> {
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

/// Fields of several small objects inside an event.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Small<'a> {
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
    type Event<'a> = Event<'a>;

    fn parse(text: &str) -> Result<Event<'_>, String> {
        parse(text)
    }

    fn read(&mut self, event: &Event<'_>, line: &str, out: &mut Vec<TranscriptEvent>) {
        match event.kind.text() {
            Some("result") => self.read_result(event, out),
            Some(kind) => self.read_record(kind, event, out),
            None if event.model_metrics.is_some() => out.extend(usage_of(event.model_metrics)),
            None => say_unreadable(line, "the object has no `type`".to_owned(), out),
        }
    }

    fn speech(&mut self) -> &mut Assembler {
        &mut self.speech
    }

    fn tools(&mut self) -> &mut Tools {
        &mut self.tools
    }
}

impl Copilot {
    fn read_record(&mut self, kind: &str, event: &Event<'_>, out: &mut Vec<TranscriptEvent>) {
        let data: Data<'_> = object(event.data);
        match kind {
            "user.message" => out.push(hidden_prompt(data.content.text().unwrap_or_default())),
            "assistant.message_start" => self.begin(&data),
            "assistant.message_delta" => {
                self.begin(&data);
                let text = data.delta_content.text().unwrap_or_default();
                self.speech.piece(None, Tag::Ai, text, out);
            }
            "assistant.reasoning_delta" => {
                let text = data.delta_content.text().unwrap_or_default();
                self.speech.piece(None, Tag::Think, text, out);
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
                let words = data.message.words().or(data.reason.words());
                mark_unknown(kind, words, out);
            }
            "assistant.turn_start" | "assistant.turn_end" => {}
            // Whatever passes, unless it has something to say: the record has it, or nobody needs it.
            _ if event.ephemeral.flag() == Some(true) => {}
            unknown => mark_unknown(unknown, data.message.words().or(data.content.words()), out),
        }
    }

    fn begin(&mut self, data: &Data<'_>) {
        if let Some(id) = data.message_id.words() {
            self.speech.begin_answer(id);
        }
    }

    fn read_message(&mut self, data: &Data<'_>, out: &mut Vec<TranscriptEvent>) {
        self.begin(data);
        self.speech.whole(
            None,
            Tag::Think,
            data.reasoning_text.text().unwrap_or_default(),
            out,
        );
        self.speech
            .whole(None, Tag::Ai, data.content.text().unwrap_or_default(), out);
        self.speech.end_thought();
        self.retries = 0;
    }

    fn start_tool(&mut self, data: &Data<'_>, out: &mut Vec<TranscriptEvent>) {
        let name = data.tool_name.text().unwrap_or("tool");
        let tool = ToolStart {
            id: data.tool_call_id.text().unwrap_or(name).to_owned(),
            name: name.to_owned(),
            input: data.arguments.map(Json::from),
            parent: None,
        };
        self.tools.start(tool, out);
    }

    fn end_tool(&mut self, data: &Data<'_>, out: &mut Vec<TranscriptEvent>) {
        let id = data.tool_call_id.text().unwrap_or_default();
        let (result, error): (Small<'_>, Small<'_>) = (object(data.result), object(data.error));
        let output = result
            .content
            .words()
            .or(error.message.words())
            .unwrap_or_default();
        self.tools.output(id, output, out);
        for raw in list(data.file_edits) {
            out.extend(file_change(&object(Some(raw))));
        }
        if error.code.is("denied") {
            let tool = self.tools.name_of(id).unwrap_or("tool").to_owned();
            out.push(TranscriptEvent::meta(Meta::PermissionDenied { tool }));
        }
        // A command that failed is a success of the tool: its exit code tells.
        let exit = object::<Small<'_>>(data.shell_execution)
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

    fn read_retry(&mut self, data: &Data<'_>, out: &mut Vec<TranscriptEvent>) {
        let (status, words) = std::mem::take(&mut self.failed_call);
        let reason = data.reason.text().unwrap_or_default();
        self.retries += 1;
        out.push(TranscriptEvent::meta(Meta::Retry {
            attempt: self.retries,
            max_attempts: None,
            delay_ms: None,
            class: class_of_error(status, &format!("{reason} {words}")),
            message: match status {
                Some(status) => format!("{reason} ({status})"),
                None => reason.to_owned(),
            },
        }));
    }

    fn read_error(&mut self, data: &Data<'_>, out: &mut Vec<TranscriptEvent>) {
        let message = data.message.text().unwrap_or("session error").to_owned();
        let status = data.status();
        out.push(TranscriptEvent::meta(Meta::Error {
            class: class_of_error(status, &message),
            message: message.clone(),
            status,
        }));
        self.error = Some(message);
    }

    /// Only here is the session named.
    fn read_result(&mut self, event: &Event<'_>, out: &mut Vec<TranscriptEvent>) {
        if let Some(id) = event.session_id.words() {
            out.push(TranscriptEvent::meta(Meta::Session {
                session_id: id.to_owned(),
                model: None,
                version: None,
            }));
        }
        let silent = !self.speech.answered() && !self.tools.used();
        let exit = event.exit_code.real();
        let reason = match (self.error.take(), exit) {
            (Some(message), _) => Some(message),
            (None, Some(code)) if code != 0.0 => Some(format!("exit code {code}")),
            (None, _) if silent => Some("no answer".to_owned()),
            (None, _) => None,
        };
        let usage: Small<'_> = object(event.usage);
        out.push(TranscriptEvent::meta(Meta::Finished {
            success: reason.is_none(),
            reason,
            text: None,
            turns: None,
            duration_ms: usage.session_duration_ms.count(),
        }));
    }
}

impl Data<'_> {
    fn status(&self) -> Option<u16> {
        self.status_code
            .count()
            .and_then(|status| u16::try_from(status).ok())
    }
}

/// What all models of the session used; the model is named if there was only one.
fn usage_of(metrics: Option<&RawValue>) -> Option<TranscriptEvent> {
    let models: BTreeMap<String, Metrics<'_>> = object(metrics);
    let mut used = Usage::default();
    for (name, model) in &models {
        let tokens: Tokens<'_> = object(model.usage);
        used.add(&Usage {
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
        used.model = None;
    }
    used.scope = UsageScope::Session;
    (!used.is_empty()).then_some(TranscriptEvent::usage(used))
}

fn file_change(edit: &Small<'_>) -> Option<TranscriptEvent> {
    let change = match edit.kind.text() {
        Some("create") => FileChangeKind::Added,
        Some("delete") => FileChangeKind::Deleted,
        _ => FileChangeKind::Modified,
    };
    let path = edit.path.words()?.to_owned();
    Some(TranscriptEvent::meta(Meta::FileChange { path, change }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::read_all;

    #[test]
    fn the_file_of_what_was_used_is_one_more_line() {
        let file = r#"{ "totalUserRequests": 1, "modelMetrics": { "m": { "requests": { "count": 2 },
            "usage": { "inputTokens": 2400, "outputTokens": 170, "cacheReadTokens": 600 } } }, "currentModel": "m" }"#;
        let [TranscriptEvent::Usage { usage }] = &read_all("copilot", "", &file.replace('\n', ""))[..] else {
            panic!("one figure")
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
