//! `cursor`: the stream-json of Cursor's agent. Sessions, prompts and results are Claude's; tool calls, reasoning
//! and streamed text are its own, and read here.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::claude::{self, Claude, Dialect, InputTokens, Message, ResultText, block_as_it_came};
use super::common::{Assembler, EventStream, Field, Tools, mark_unknown, object, parse, scan_raw, string};
use super::{Adapter, Capabilities, Format, Opening};
use crate::event::{Json, Meta, Tag, ToolEnd, ToolStart, ToolStatus, TranscriptEvent};

pub(super) const FORMAT: Format = Format {
    name: "cursor",
    capabilities: Capabilities {
        costs: false,
        ..claude::CAPABILITIES
    },
    open,
};

fn open(opening: &Opening<'_>) -> Box<dyn Adapter> {
    let dialect = Dialect {
        input: InputTokens::BesideCache,
        result: ResultText::EveryMessage,
    };
    Box::new(Cursor {
        family: Claude::new(opening, dialect),
        streams: false,
    })
}

struct Cursor {
    family: Claude,
    /// Text comes in pieces, each with its time, and is repeated whole.
    streams: bool,
}

/// What Cursor adds to the family's events.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Own<'a> {
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
    type Event<'a> = Own<'a>;

    fn parse(text: &str) -> Result<Own<'_>, String> {
        parse(text)
    }

    fn read(&mut self, own: &Own<'_>, line: &str, out: &mut Vec<TranscriptEvent>) {
        match own.kind.text() {
            Some("assistant") => self.read_answer(own, out),
            Some("thinking") => self.read_thought(own, out),
            Some("tool_call") => self.read_tool_call(own, out),
            _ => self.family.feed(line, out),
        }
    }

    fn speech(&mut self) -> &mut Assembler {
        &mut self.family.speech
    }

    fn tools(&mut self) -> &mut Tools {
        &mut self.family.tools
    }
}

impl Cursor {
    /// Between two tool calls there is one message. It comes in one event or, streamed, in many with a time each;
    /// then an event that names the model's call, or has no time, repeats what was streamed.
    fn read_answer(&mut self, own: &Own<'_>, out: &mut Vec<TranscriptEvent>) {
        let timed = own.timestamp_ms.count().is_some();
        let repeats = own.model_call_id.words().is_some() || (self.streams && !timed);
        let message: Message<'_> = scan_raw(own.message);
        let mut text = message.content.words().unwrap_or_default().to_owned();
        for (index, block) in message.content.blocks().iter().enumerate() {
            match block.text.text() {
                Some(words) => text.push_str(words),
                None => {
                    let words = block_as_it_came(own.message, index);
                    out.push(TranscriptEvent::message(Tag::Sys, words));
                }
            }
        }
        let speech = &mut self.family.speech;
        if !repeats {
            self.streams |= timed;
            return speech.piece(None, Tag::Ai, &text, out);
        }
        if !(self.streams && speech.has_just_said_the_end_of(&text)) {
            speech.whole(None, Tag::Ai, &text, out);
        }
        // What was repeated is over.
        speech.interrupt(None);
    }

    fn read_thought(&mut self, own: &Own<'_>, out: &mut Vec<TranscriptEvent>) {
        let speech = &mut self.family.speech;
        match own.text.words() {
            Some(text) => speech.piece(None, Tag::Think, text, out),
            None => speech.end_block(None),
        }
    }

    fn read_tool_call(&mut self, own: &Own<'_>, out: &mut Vec<TranscriptEvent>) {
        let Some(call) = Call::read(own.tool_call) else {
            return mark_unknown("tool_call", None, out);
        };
        let id = own.call_id.words().unwrap_or(&call.name).to_owned();
        let tools = &mut self.family.tools;
        if !tools.is_open(&id) {
            self.family.speech.interrupt(None);
            let start = ToolStart {
                id: id.clone(),
                name: call.name.clone().into_owned(),
                input: call.input(),
                parent: None,
            };
            tools.start(start, out);
        }
        if !own.subtype.is("completed") {
            return;
        }
        let ending = call.ending();
        tools.output(&id, ending.output, out);
        if ending.refused {
            let tool = call.name.clone().into_owned();
            out.push(TranscriptEvent::meta(Meta::PermissionDenied { tool }));
        }
        let end = ToolEnd {
            id,
            status: ending.status,
            duration_ms: ending.duration_ms,
        };
        tools.end(end, out);
    }
}

/// `{"readToolCall":{"args":…,"result":{"success":…}}}`, or `{"function":{"name":…,"arguments":…}}`.
struct Call<'a> {
    name: Cow<'a, str>,
    body: Body<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Body<'a> {
    #[serde(borrow)]
    args: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Field<'a>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

struct Ending {
    status: ToolStatus,
    output: String,
    refused: bool,
    duration_ms: Option<u64>,
}

/// What a tool's result may say, by any of these names.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Said<'a> {
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

impl<'a> Call<'a> {
    fn read(raw: Option<&'a RawValue>) -> Option<Self> {
        let fields: Fields<'a> = object(raw);
        let (key, body) = fields
            .into_iter()
            .find(|(key, _)| key.ends_with("ToolCall") || key == "function")?;
        let body: Body<'a> = object(Some(body));
        let name = match (key.strip_suffix("ToolCall"), body.name.words()) {
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

    /// The name of the result's only field says how it went.
    fn ending(&self) -> Ending {
        let outcome: Fields<'a> = object(self.body.result);
        let Some((verdict, raw)) = outcome.into_iter().next() else {
            return Ending {
                status: ToolStatus::Unknown,
                output: string(self.body.result).unwrap_or_default().into_owned(),
                refused: false,
                duration_ms: None,
            };
        };
        let said: Said<'_> = object(Some(raw));
        let good = verdict == "success" && said.exit_code.count().unwrap_or(0) == 0;
        let lower = verdict.to_lowercase();
        Ending {
            status: if good { ToolStatus::Ok } else { ToolStatus::Fail },
            output: said.words().unwrap_or_else(|| raw.get().to_owned()),
            refused: lower.contains("reject") || lower.contains("permission"),
            duration_ms: said.execution_time.count(),
        }
    }
}

impl Said<'_> {
    fn words(&self) -> Option<String> {
        let shell = [&self.stdout, &self.stderr];
        if shell.iter().any(|stream| stream.text().is_some()) {
            return Some(shell.iter().filter_map(|stream| stream.text()).collect());
        }
        [&self.content, &self.message, &self.error, &self.reason]
            .iter()
            .find_map(|field| field.to_text())
    }
}
