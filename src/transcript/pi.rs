//! `pi`: the JSON events of `pi --mode json`. Messages are streamed and then repeated as a whole. The last message of the
//! agent decides about success, because the exit code does not.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::common::{
    Assembler, EventStream, Field, Tools, classify_error, hidden_prompt, list, object, parse, push_unknown,
    push_unreadable,
};
use super::{Adapter, AdapterContext, Capabilities, Format};
use crate::event::{
    CostSource, Flow, Json, Meta, Tag, ToolEnd, ToolStart, ToolStatus, TranscriptEvent, Usage, Usd,
};

pub(super) const FORMAT: Format = Format {
    name: "pi",
    capabilities: Capabilities {
        roles: true,
        messages: true,
        tools: true,
        usage: true,
        costs: true,
        sessions: true,
        prompt_hiding: true,
        terminal_event: true,
    },
    open,
};

fn open(context: &AdapterContext<'_>) -> Box<dyn Adapter> {
    Box::new(Pi {
        prompt: context.prompt.trim().to_owned(),
        assembler: Assembler::default(),
        tools: Tools::default(),
        messages: 0,
        stop_reason: None,
        error: None,
        finished: false,
    })
}

struct Pi {
    prompt: String,
    assembler: Assembler,
    tools: Tools,
    /// The number of messages of the agent.
    messages: u64,
    /// The stop reason and the error of the last message.
    stop_reason: Option<String>,
    error: Option<String>,
    /// The terminal event of this turn was emitted.
    finished: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PiEvent<'a> {
    #[serde(borrow, rename = "type")]
    kind: Field<'a>,
    #[serde(borrow)]
    id: Field<'a>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow, rename = "assistantMessageEvent")]
    delta: Option<&'a RawValue>,
    #[serde(borrow, rename = "toolCallId")]
    tool_call_id: Field<'a>,
    #[serde(borrow, rename = "toolName")]
    tool_name: Field<'a>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow, rename = "isError")]
    is_error: Field<'a>,
    #[serde(borrow)]
    attempt: Field<'a>,
    #[serde(borrow, rename = "maxAttempts")]
    max_attempts: Field<'a>,
    #[serde(borrow, rename = "delayMs")]
    delay_ms: Field<'a>,
    #[serde(borrow, rename = "errorMessage")]
    error_message: Field<'a>,
    #[serde(borrow, rename = "willRetry")]
    will_retry: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PiMessage<'a> {
    #[serde(borrow)]
    role: Field<'a>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    model: Field<'a>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, rename = "stopReason")]
    stop_reason: Field<'a>,
    #[serde(borrow, rename = "errorMessage")]
    error_message: Field<'a>,
}

/// A block of a message, a delta, or the message within an error.
#[derive(Default, Deserialize)]
#[serde(default)]
struct PiBlock<'a> {
    #[serde(borrow, rename = "type")]
    kind: Field<'a>,
    #[serde(borrow)]
    text: Field<'a>,
    #[serde(borrow)]
    thinking: Field<'a>,
    #[serde(borrow)]
    delta: Field<'a>,
    #[serde(borrow)]
    message: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PiUsage<'a> {
    #[serde(borrow)]
    input: Field<'a>,
    #[serde(borrow)]
    output: Field<'a>,
    #[serde(borrow, rename = "cacheRead")]
    cache_read: Field<'a>,
    #[serde(borrow, rename = "cacheWrite")]
    cache_write: Field<'a>,
    #[serde(borrow)]
    reasoning: Field<'a>,
    #[serde(borrow)]
    cost: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PiCost<'a> {
    #[serde(borrow)]
    total: Field<'a>,
}

impl EventStream for Pi {
    type Event<'a> = PiEvent<'a>;

    fn parse(text: &str) -> Result<PiEvent<'_>, String> {
        parse(text)
    }

    fn read(&mut self, event: &PiEvent<'_>, line: &str, out: &mut Vec<TranscriptEvent>) {
        match event.kind.text() {
            Some("session") => out.extend(session(event)),
            Some("agent_start") => self.finished = false,
            Some("message_start") => self.begin_message(event),
            Some("message_update") => self.read_delta(event, out),
            Some("message_end") => self.read_message(&object(event.message), out),
            Some("tool_execution_start") => self.start_tool(event, out),
            Some("tool_execution_end") => self.end_tool(event, out),
            Some("auto_retry_start") => out.push(retry(event)),
            Some("agent_end") if event.will_retry.flag() != Some(true) => self.finish(out),
            Some("agent_settled") => self.finish(out),
            // Repetitions, and notices without content for the transcript.
            Some(
                "agent_end"
                | "turn_start"
                | "turn_end"
                | "tool_execution_update"
                | "auto_retry_end"
                | "entry_appended"
                | "queue_update"
                | "compaction_start"
                | "compaction_end"
                | "thinking_level_changed"
                | "session_info_changed",
            ) => {}
            Some(unknown) => push_unknown(unknown, None, out),
            None => push_unreadable(line, "`type` is missing".to_owned(), out),
        }
    }

    fn tools(&mut self) -> &mut Tools {
        &mut self.tools
    }
}

impl Pi {
    fn begin_message(&mut self, event: &PiEvent<'_>) {
        let message: PiMessage<'_> = object(event.message);
        if message.role.is("assistant") {
            self.messages += 1;
            let id = self.messages.to_string();
            let _ = self.assembler.begin_message(None, &id);
        }
    }

    fn read_delta(&mut self, event: &PiEvent<'_>, out: &mut Vec<TranscriptEvent>) {
        let delta: PiBlock<'_> = object(event.delta);
        let text = delta.delta.text().unwrap_or_default();
        match delta.kind.text() {
            Some("text_delta") => self.assembler.push_delta(None, Tag::Ai, text, out),
            Some("thinking_delta") => self.assembler.push_delta(None, Tag::Think, text, out),
            Some("text_start" | "text_end" | "thinking_start" | "thinking_end") => {
                self.assembler.end_block(None);
            }
            _ => {}
        }
    }

    fn read_message(&mut self, message: &PiMessage<'_>, out: &mut Vec<TranscriptEvent>) {
        match message.role.text() {
            Some("assistant") => {}
            Some("user") => return self.read_user(message, out),
            // The system prompt; results of tools are reported by other events.
            _ => return,
        }
        for raw in list(message.content) {
            let block: PiBlock<'_> = object(Some(raw));
            match (block.kind.text(), block.text.text(), block.thinking.text()) {
                (Some("text"), Some(text), _) => self.assembler.push_whole(None, Tag::Ai, text, out),
                (Some("thinking"), _, Some(text)) => self.assembler.push_whole(None, Tag::Think, text, out),
                _ => {}
            }
        }
        let usage = message.usage();
        if usage.tokens() > Some(0) {
            out.push(TranscriptEvent::usage(usage));
        }
        self.stop_reason = message.stop_reason.to_text();
        self.error = message.error_message.to_text();
    }

    fn read_user(&self, message: &PiMessage<'_>, out: &mut Vec<TranscriptEvent>) {
        let text = text_of(message.content);
        if !self.prompt.is_empty() && text.trim() == self.prompt {
            out.push(hidden_prompt(&text));
        } else if !text.is_empty() {
            out.push(TranscriptEvent::Text {
                tag: Tag::User,
                text,
                flow: Flow::Message,
                parent: None,
            });
        }
    }

    fn start_tool(&mut self, event: &PiEvent<'_>, out: &mut Vec<TranscriptEvent>) {
        let name = event.tool_name.text().unwrap_or("tool");
        let tool = ToolStart {
            id: event.tool_call_id.text().unwrap_or(name).to_owned(),
            name: name.to_owned(),
            input: event.args.map(Json::from),
            parent: None,
        };
        self.tools.start(tool, out);
    }

    fn end_tool(&mut self, event: &PiEvent<'_>, out: &mut Vec<TranscriptEvent>) {
        let name = event.tool_name.text().unwrap_or("tool");
        let id = event.tool_call_id.text().unwrap_or(name);
        let result: PiMessage<'_> = object(event.result);
        self.tools.output(id, text_of(result.content), out);
        let end = ToolEnd {
            id: id.to_owned(),
            status: match event.is_error.flag() {
                Some(true) => ToolStatus::Fail,
                Some(false) | None => ToolStatus::Ok,
            },
            duration_ms: None,
        };
        self.tools.end(end, out);
    }

    fn finish(&mut self, out: &mut Vec<TranscriptEvent>) {
        if std::mem::replace(&mut self.finished, true) {
            return;
        }
        if let Some(error) = self.error.take() {
            let (status, message) = split_error(&error);
            out.push(TranscriptEvent::meta(Meta::Error {
                class: classify_error(status, &message),
                message: message.into_owned(),
                status,
            }));
        }
        let silent = !self.assembler.answered() && !self.tools.used();
        let reason = self.stop_reason.take();
        let success = reason.as_deref() == Some("stop") && !silent;
        out.push(TranscriptEvent::meta(Meta::Finished {
            success,
            reason: if silent && reason.as_deref() == Some("stop") {
                Some("no answer".to_owned())
            } else {
                reason
            },
            text: None,
            turns: None,
            duration_ms: None,
        }));
    }
}

impl PiMessage<'_> {
    /// The usage of this message. The input excludes cached tokens.
    fn usage(&self) -> Usage {
        let usage: PiUsage<'_> = object(self.usage);
        let cost: PiCost<'_> = object(usage.cost);
        // A model without a price has a cost of zero.
        let cost_usd = cost.total.money().filter(|cost| *cost > Usd::ZERO);
        let input = [&usage.input, &usage.cache_read, &usage.cache_write].map(Field::count);
        Usage {
            prompt_tokens: input[0]
                .is_some()
                .then(|| input.into_iter().flatten().fold(0, u64::saturating_add)),
            completion_tokens: usage.output.count(),
            cached_tokens: usage.cache_read.count(),
            cache_write_tokens: usage.cache_write.count(),
            reasoning_tokens: usage.reasoning.count(),
            cost_usd,
            cost_source: cost_usd.map(|_| CostSource::Reported),
            model: self.model.to_text(),
            ..Usage::default()
        }
    }
}

fn session(event: &PiEvent<'_>) -> Option<TranscriptEvent> {
    Some(TranscriptEvent::meta(Meta::Session {
        session_id: event.id.non_empty()?.to_owned(),
        model: None,
        version: None,
    }))
}

fn retry(event: &PiEvent<'_>) -> TranscriptEvent {
    let (status, message) = split_error(event.error_message.text().unwrap_or_default());
    TranscriptEvent::meta(Meta::Retry {
        attempt: event.attempt.count().unwrap_or(1),
        max_attempts: event.max_attempts.count(),
        delay_ms: event.delay_ms.count(),
        class: classify_error(status, &message),
        message: message.into_owned(),
    })
}

/// The status and the message of an error: `401: {"message": …}`, `429 status code (no body)` or a text.
fn split_error(error: &str) -> (Option<u16>, Cow<'_, str>) {
    let digits = error
        .split(|c: char| !c.is_ascii_digit())
        .next()
        .unwrap_or_default();
    let status = digits.parse().ok().filter(|status| (400..600).contains(status));
    let rest = match status {
        Some(_) => error[digits.len()..].trim_start_matches([':', ' ']),
        None => error,
    };
    let body: PiBlock<'_> = serde_json::from_str(rest).unwrap_or_default();
    match body.message.to_text() {
        Some(message) => (status, message.into()),
        None => (status, rest.into()),
    }
}

/// The texts of a list of blocks; other blocks are replaced by their type.
fn text_of(content: Option<&RawValue>) -> String {
    let texts = list(content).into_iter().map(|raw| {
        let block: PiBlock<'_> = object(Some(raw));
        match (block.text.to_text(), block.kind.text()) {
            (Some(text), _) => text,
            (None, kind) => format!("[{}]", kind.unwrap_or("block")),
        }
    });
    texts.collect::<Vec<_>>().join("\n")
}
