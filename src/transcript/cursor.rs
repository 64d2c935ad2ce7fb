//! `cursor`: the stream-json format of Cursor's agent. The Claude adapter reads sessions, prompts and results; tool calls,
//! reasoning and streamed text are specific to Cursor.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::claude::{
    self, Claude, ClaudeMessage, Dialect, InputTokens, OutputTokens, ResultText, ResultUsage, raw_block,
};
use super::common::{EventStream, Field, Tools, object, parse, push_unknown, scan_raw, string};
use super::{Adapter, AdapterContext, Capabilities, Format};
use crate::event::{Json, Meta, Tag, ToolEnd, ToolStart, ToolStatus, TranscriptEvent};

pub(super) const FORMAT: Format = Format {
    name: "cursor",
    capabilities: Capabilities {
        costs: false,
        ..claude::CAPABILITIES
    },
    open,
};

fn open(context: &AdapterContext<'_>) -> Box<dyn Adapter> {
    let dialect = Dialect {
        input: InputTokens::ExcludingCache,
        output: OutputTokens::OfAllMessages,
        result: ResultText::AllMessages,
        total: ResultUsage::OfTurn,
    };
    Box::new(Cursor {
        claude: Claude::new(context, dialect),
        streams: false,
    })
}

struct Cursor {
    claude: Claude,
    /// Text is streamed in events with a timestamp and then repeated as a whole.
    streams: bool,
}

/// The fields that are specific to Cursor.
#[derive(Default, Deserialize)]
#[serde(default)]
struct CursorEvent<'a> {
    #[serde(borrow, rename = "type")]
    kind: Field<'a>,
    #[serde(borrow)]
    subtype: Field<'a>,
    #[serde(borrow)]
    text: Field<'a>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    call_id: Field<'a>,
    #[serde(borrow)]
    tool_call: Option<&'a RawValue>,
    #[serde(borrow)]
    model_call_id: Field<'a>,
    #[serde(borrow)]
    timestamp_ms: Field<'a>,
}

impl EventStream for Cursor {
    type Event<'a> = CursorEvent<'a>;

    fn parse(text: &str) -> Result<CursorEvent<'_>, String> {
        parse(text)
    }

    fn read(&mut self, event: &CursorEvent<'_>, line: &str, out: &mut Vec<TranscriptEvent>) {
        match event.kind.text() {
            Some("assistant") => self.read_answer(event, out),
            Some("thinking") => self.read_reasoning(event, out),
            Some("tool_call") => self.read_tool_call(event, out),
            _ => self.claude.feed(line, out),
        }
    }

    fn tools(&mut self) -> &mut Tools {
        &mut self.claude.tools
    }
}

impl Cursor {
    /// Reads an answer. There is one message between two tool calls. It is sent in one event, or streamed in events with a
    /// timestamp and then repeated in an event with a model call id or without a timestamp.
    fn read_answer(&mut self, event: &CursorEvent<'_>, out: &mut Vec<TranscriptEvent>) {
        let has_timestamp = event.timestamp_ms.count().is_some();
        let repeats = event.model_call_id.non_empty().is_some() || (self.streams && !has_timestamp);
        let message: ClaudeMessage<'_> = scan_raw(event.message);
        let mut text = message.content.text().unwrap_or_default().to_owned();
        for (index, block) in message.content.blocks().iter().enumerate() {
            match block.text.text() {
                Some(block_text) => text.push_str(block_text),
                None => {
                    let raw = raw_block(event.message, index);
                    out.push(TranscriptEvent::message(Tag::Sys, raw));
                }
            }
        }
        let assembler = &mut self.claude.assembler;
        if !repeats {
            self.streams |= has_timestamp;
            return assembler.push_delta(None, Tag::Ai, &text, out);
        }
        if !(self.streams && assembler.last_message_is_suffix_of(&text)) {
            assembler.push_whole(None, Tag::Ai, &text, out);
        }
        // The repeated message has ended.
        assembler.end_unnamed_message(None);
    }

    fn read_reasoning(&mut self, event: &CursorEvent<'_>, out: &mut Vec<TranscriptEvent>) {
        let assembler = &mut self.claude.assembler;
        match event.text.non_empty() {
            Some(text) => assembler.push_delta(None, Tag::Think, text, out),
            None => assembler.end_block(None),
        }
    }

    fn read_tool_call(&mut self, event: &CursorEvent<'_>, out: &mut Vec<TranscriptEvent>) {
        let Some(call) = CursorToolCall::read(event.tool_call) else {
            return push_unknown("tool_call", None, out);
        };
        let id = event.call_id.non_empty().unwrap_or(&call.name).to_owned();
        let tools = &mut self.claude.tools;
        if !tools.is_open(&id) {
            self.claude.assembler.end_unnamed_message(None);
            let start = ToolStart {
                id: id.clone(),
                name: call.name.clone().into_owned(),
                input: call.input(),
                parent: None,
            };
            tools.start(start, out);
        }
        if !event.subtype.is("completed") {
            return;
        }
        let result = call.result();
        tools.output(&id, result.output, out);
        if result.denied {
            let tool = call.name.clone().into_owned();
            out.push(TranscriptEvent::meta(Meta::PermissionDenied { tool }));
        }
        let end = ToolEnd {
            id,
            status: result.status,
            duration_ms: result.duration_ms,
        };
        tools.end(end, out);
    }
}

/// `{"readToolCall":{"args":…,"result":{"success":…}}}`, or `{"function":{"name":…,"arguments":…}}`.
struct CursorToolCall<'a> {
    name: Cow<'a, str>,
    body: CursorToolBody<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CursorToolBody<'a> {
    #[serde(borrow)]
    args: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Field<'a>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

struct CursorToolResult {
    status: ToolStatus,
    output: String,
    denied: bool,
    duration_ms: Option<u64>,
}

/// The fields of a tool result that may contain its output.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct CursorResultFields<'a> {
    #[serde(borrow)]
    content: Field<'a>,
    #[serde(borrow)]
    stdout: Field<'a>,
    #[serde(borrow)]
    stderr: Field<'a>,
    #[serde(borrow)]
    message: Field<'a>,
    #[serde(borrow)]
    error: Field<'a>,
    #[serde(borrow)]
    reason: Field<'a>,
    #[serde(borrow)]
    exit_code: Field<'a>,
    #[serde(borrow)]
    execution_time: Field<'a>,
}

type Fields<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

impl<'a> CursorToolCall<'a> {
    fn read(raw: Option<&'a RawValue>) -> Option<Self> {
        let fields: Fields<'a> = object(raw);
        let (key, body) = fields
            .into_iter()
            .find(|(key, _)| key.ends_with("ToolCall") || key == "function")?;
        let body: CursorToolBody<'a> = object(Some(body));
        let name = match (key.strip_suffix("ToolCall"), body.name.non_empty()) {
            (Some(name), _) => Cow::Owned(name.to_owned()),
            (None, Some(name)) => Cow::Owned(name.to_owned()),
            (None, None) => key,
        };
        Some(Self { name, body })
    }

    fn input(&self) -> Option<Json> {
        let arguments = string(self.body.arguments);
        let parsed = arguments
            .as_deref()
            .and_then(|text| serde_json::from_str::<&RawValue>(text).ok());
        parsed.or(self.body.args).or(self.body.arguments).map(Json::from)
    }

    /// The result of the call. The name of its only field is the status.
    fn result(&self) -> CursorToolResult {
        let outcome: Fields<'a> = object(self.body.result);
        let Some((status, raw)) = outcome.into_iter().next() else {
            return CursorToolResult {
                status: ToolStatus::Unknown,
                output: string(self.body.result).unwrap_or_default().into_owned(),
                denied: false,
                duration_ms: None,
            };
        };
        let fields: CursorResultFields<'_> = object(Some(raw));
        let success = status == "success" && fields.exit_code.count().unwrap_or(0) == 0;
        let lower = status.to_lowercase();
        CursorToolResult {
            status: if success { ToolStatus::Ok } else { ToolStatus::Fail },
            output: fields.text().unwrap_or_else(|| raw.get().to_owned()),
            denied: lower.contains("reject") || lower.contains("permission"),
            duration_ms: fields.execution_time.count(),
        }
    }
}

impl CursorResultFields<'_> {
    fn text(&self) -> Option<String> {
        let shell = [&self.stdout, &self.stderr];
        if shell.iter().any(|stream| stream.text().is_some()) {
            return Some(shell.iter().filter_map(|stream| stream.text()).collect());
        }
        [&self.content, &self.message, &self.error, &self.reason]
            .iter()
            .find_map(|field| field.to_text())
    }
}
