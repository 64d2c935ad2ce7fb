//! `kimi`: the stream-json format of Kimi Code. Each line is a message as in OpenAI's chat API, or a notice of the program.
//! The last line names the session; it is the terminal event.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::common::{
    Assembler, EventStream, Field, Tools, classify_error, find_status, list, object, parse, push_unknown,
    push_unreadable,
};
use super::{Capabilities, Format};
use crate::event::{Json, Meta, Tag, ToolEnd, ToolStart, ToolStatus, TranscriptEvent};

pub(super) const FORMAT: Format = Format {
    name: "kimi",
    capabilities: Capabilities {
        roles: true,
        messages: true,
        tools: true,
        usage: false,
        costs: false,
        sessions: true,
        prompt_hiding: true,
        terminal_event: true,
    },
    open: |_| Box::<Kimi>::default(),
};

#[derive(Default)]
struct Kimi {
    assembler: Assembler,
    tools: Tools,
    version: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct KimiLine<'a> {
    #[serde(borrow)]
    role: Field<'a>,
    #[serde(borrow, rename = "type")]
    kind: Field<'a>,
    #[serde(borrow)]
    content: Field<'a>,
    #[serde(borrow)]
    tool_calls: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_call_id: Field<'a>,
    #[serde(borrow)]
    version: Field<'a>,
    #[serde(borrow)]
    session_id: Field<'a>,
    #[serde(borrow)]
    failed_attempt: Field<'a>,
    #[serde(borrow)]
    max_attempts: Field<'a>,
    #[serde(borrow)]
    delay_ms: Field<'a>,
    #[serde(borrow)]
    status_code: Field<'a>,
    #[serde(borrow)]
    error_message: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct KimiToolCall<'a> {
    #[serde(borrow)]
    id: Field<'a>,
    #[serde(borrow)]
    function: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct KimiFunction<'a> {
    #[serde(borrow)]
    name: Field<'a>,
    #[serde(borrow)]
    arguments: Field<'a>,
}

impl EventStream for Kimi {
    type Event<'a> = KimiLine<'a>;

    fn parse(text: &str) -> Result<KimiLine<'_>, String> {
        parse(text)
    }

    fn read(&mut self, line: &KimiLine<'_>, source: &str, out: &mut Vec<TranscriptEvent>) {
        match (line.role.text(), line.kind.text()) {
            (Some("assistant"), _) => self.read_message(line, out),
            (Some("tool"), _) => self.read_tool_result(line, out),
            (Some("meta"), Some("system.version")) => self.version = line.version.to_text(),
            (Some("meta"), Some("turn.step.retrying")) => out.push(retry(line)),
            (Some("meta"), Some("session.resume_hint")) => self.read_end(line, out),
            (Some(role), kind) => {
                let kind = format!("{role}/{}", kind.unwrap_or_default());
                push_unknown(kind.trim_end_matches('/'), line.content.non_empty(), out);
            }
            (None, _) => push_unreadable(source, "`role` is missing".to_owned(), out),
        }
    }

    fn tools(&mut self) -> &mut Tools {
        &mut self.tools
    }
}

impl Kimi {
    fn read_message(&mut self, line: &KimiLine<'_>, out: &mut Vec<TranscriptEvent>) {
        let _ = self.assembler.begin_unnamed_message(None);
        if let Some(text) = line.content.text() {
            self.assembler.push_whole(None, Tag::Ai, text, out);
        }
        for raw in list(line.tool_calls) {
            let call: KimiToolCall<'_> = object(Some(raw));
            let function: KimiFunction<'_> = object(call.function);
            let name = function.name.text().unwrap_or("tool");
            self.assembler.end_unnamed_message(None);
            let tool = ToolStart {
                id: call.id.text().unwrap_or(name).to_owned(),
                name: name.to_owned(),
                input: input(&function),
                parent: None,
            };
            self.tools.start(tool, out);
        }
    }

    /// Reads the output of a call. The line does not report whether the call succeeded, so only its text can.
    fn read_tool_result(&mut self, line: &KimiLine<'_>, out: &mut Vec<TranscriptEvent>) {
        let id = line.tool_call_id.text().unwrap_or_default();
        let output = line.content.text().unwrap_or_default();
        let failed = output.starts_with("Invalid args for tool ")
            || (output.starts_with("Tool \"") && output.ends_with("\" not found"))
            || output
                .trim_end()
                .rsplit('\n')
                .next()
                .is_some_and(|last| last.starts_with("Command failed with exit code: "));
        self.tools.output(id, output, out);
        let end = ToolEnd {
            id: id.to_owned(),
            status: if failed { ToolStatus::Fail } else { ToolStatus::Ok },
            duration_ms: None,
        };
        self.tools.end(end, out);
    }

    /// Reads the last line of a session that ended without an error.
    fn read_end(&mut self, line: &KimiLine<'_>, out: &mut Vec<TranscriptEvent>) {
        if let Some(id) = line.session_id.non_empty() {
            out.push(TranscriptEvent::meta(Meta::Session {
                session_id: id.to_owned(),
                model: None,
                version: self.version.clone(),
            }));
        }
        let success = self.assembler.answered() || self.tools.used();
        out.push(TranscriptEvent::meta(Meta::Finished {
            success,
            reason: (!success).then(|| "no answer".to_owned()),
            text: None,
            turns: None,
            duration_ms: None,
        }));
    }
}

/// The input of a call, which is JSON within a text.
fn input(function: &KimiFunction<'_>) -> Option<Json> {
    let text = function.arguments.non_empty()?;
    let raw: &RawValue = serde_json::from_str(text).ok()?;
    Some(Json::from(raw))
}

fn retry(line: &KimiLine<'_>) -> TranscriptEvent {
    let message = line.error_message.text().unwrap_or_default();
    let status = line
        .status_code
        .count()
        .and_then(|status| u16::try_from(status).ok());
    TranscriptEvent::meta(Meta::Retry {
        attempt: line.failed_attempt.count().unwrap_or(1),
        max_attempts: line.max_attempts.count(),
        delay_ms: line.delay_ms.count(),
        class: classify_error(status.or_else(|| find_status(message, &["status "])), message),
        message: message.to_owned(),
    })
}
