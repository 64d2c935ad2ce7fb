//! `qwen`: the stream-json format of Qwen Code, which is Claude's format with other counts and with errors as texts.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::claude::{
    self, Claude, ClaudeMessage, Dialect, InputTokens, OutputTokens, ResultText, ResultUsage,
};
use super::common::{EventStream, Field, Tools, object, parse, scan_raw};
use super::{Adapter, AdapterContext, Capabilities, Format};
use crate::event::{ErrorClass, Meta, Tag, TranscriptEvent};

pub(super) const FORMAT: Format = Format {
    name: "qwen",
    capabilities: Capabilities {
        costs: false,
        ..claude::CAPABILITIES
    },
    open,
};

fn open(context: &AdapterContext<'_>) -> Box<dyn Adapter> {
    let dialect = Dialect {
        input: InputTokens::All,
        output: OutputTokens::OfAllMessages,
        result: ResultText::LastMessage,
        total: ResultUsage::OfSession,
    };
    Box::new(Qwen {
        claude: Claude::new(context, dialect),
        retries: 0,
    })
}

struct Qwen {
    claude: Claude,
    retries: u64,
}

/// The fields in which Qwen Code differs from Claude Code.
#[derive(Default, Deserialize)]
#[serde(default)]
struct QwenEvent<'a> {
    #[serde(borrow, rename = "type")]
    kind: Field<'a>,
    #[serde(borrow)]
    subtype: Field<'a>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    event: Option<&'a RawValue>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

/// The fields of a stream event and of the data of a retry.
#[derive(Default, Deserialize)]
#[serde(default)]
struct QwenDetail<'a> {
    #[serde(borrow, rename = "type")]
    kind: Field<'a>,
    #[serde(borrow)]
    reason: Field<'a>,
}

impl EventStream for Qwen {
    type Event<'a> = QwenEvent<'a>;

    fn parse(text: &str) -> Result<QwenEvent<'_>, String> {
        parse(text)
    }

    fn read(&mut self, event: &QwenEvent<'_>, line: &str, out: &mut Vec<TranscriptEvent>) {
        match (event.kind.text(), event.subtype.text()) {
            (Some("assistant"), _) => match api_error(event.message) {
                // The result repeats the error.
                Some(error) => out.push(TranscriptEvent::message(Tag::Sys, error)),
                None => self.claude.feed(line, out),
            },
            (Some("stream_event"), _) if object::<QwenDetail<'_>>(event.event).kind.is("goal_state") => {}
            (Some("system"), Some("retry")) => self.read_retry(event, out),
            _ => self.claude.feed(line, out),
        }
    }

    fn tools(&mut self) -> &mut Tools {
        &mut self.claude.tools
    }
}

impl Qwen {
    fn read_retry(&mut self, event: &QwenEvent<'_>, out: &mut Vec<TranscriptEvent>) {
        self.retries += 1;
        let data: QwenDetail<'_> = object(event.data);
        out.push(TranscriptEvent::meta(Meta::Retry {
            attempt: self.retries,
            max_attempts: None,
            delay_ms: None,
            class: ErrorClass::Other,
            message: data
                .reason
                .non_empty()
                .filter(|reason| *reason != "retry")
                .unwrap_or_default()
                .to_owned(),
        }));
    }
}

/// The text of a message that is an error of the program: `[API Error: …]`.
fn api_error(message: Option<&RawValue>) -> Option<String> {
    let message: ClaudeMessage<'_> = scan_raw(message);
    match message.content.blocks() {
        [block] => block
            .text
            .text()
            .filter(|text| text.starts_with("[API Error: ") && text.ends_with(']'))
            .map(str::to_owned),
        _ => None,
    }
}
