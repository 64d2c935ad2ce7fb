//! `agy`: the stream-json format of the Antigravity CLI, as documented. Each line has an event and, under the name of the
//! event, its data.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::common::{
    Assembler, EventStream, Field, Tools, classify_error, object, parse, push_unknown, push_unreadable,
    string,
};
use super::{Capabilities, Format};
use crate::event::{Json, Meta, Tag, ToolEnd, ToolStart, ToolStatus, TranscriptEvent, Usage, UsageScope};

pub(super) const FORMAT: Format = Format {
    name: "agy",
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
    open: |_| Box::<Agy>::default(),
};

#[derive(Default)]
struct Agy {
    assembler: Assembler,
    tools: Tools,
    model: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AgyLine<'a> {
    #[serde(borrow)]
    event: Field<'a>,
    #[serde(borrow)]
    conversation_id: Field<'a>,
    #[serde(borrow)]
    init: Option<&'a RawValue>,
    #[serde(borrow)]
    step_update: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AgyInit<'a> {
    #[serde(borrow)]
    model: Field<'a>,
    #[serde(borrow)]
    conversation_id: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AgyStep<'a> {
    #[serde(borrow)]
    step_index: Field<'a>,
    #[serde(borrow)]
    step_type: Field<'a>,
    #[serde(borrow)]
    state: Field<'a>,
    #[serde(borrow)]
    text_delta: Field<'a>,
    #[serde(borrow)]
    tool_name: Field<'a>,
    #[serde(borrow)]
    tool_info: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    duration_seconds: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AgyTool<'a> {
    #[serde(borrow)]
    parameters: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AgyResult<'a> {
    #[serde(borrow)]
    status: Field<'a>,
    #[serde(borrow)]
    response: Field<'a>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    num_turns: Field<'a>,
    #[serde(borrow)]
    duration_seconds: Field<'a>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AgyUsage<'a> {
    #[serde(borrow)]
    input_tokens: Field<'a>,
    #[serde(borrow)]
    output_tokens: Field<'a>,
    #[serde(borrow)]
    thinking_tokens: Field<'a>,
    #[serde(borrow)]
    cache_read_tokens: Field<'a>,
}

/// The message within an error object.
#[derive(Default, Deserialize)]
#[serde(default)]
struct AgyError<'a> {
    #[serde(borrow)]
    message: Field<'a>,
}

impl EventStream for Agy {
    type Event<'a> = AgyLine<'a>;

    fn parse(text: &str) -> Result<AgyLine<'_>, String> {
        parse(text)
    }

    fn read(&mut self, line: &AgyLine<'_>, source: &str, out: &mut Vec<TranscriptEvent>) {
        match line.event.text() {
            Some("init") => self.read_init(line, out),
            Some("step_update") => self.read_step(&object(line.step_update), out),
            Some("result") => self.read_result(&object(line.result), out),
            Some(unknown) => push_unknown(unknown, None, out),
            None => push_unreadable(source, "`event` is missing".to_owned(), out),
        }
    }

    fn tools(&mut self) -> &mut Tools {
        &mut self.tools
    }
}

impl Agy {
    fn read_init(&mut self, line: &AgyLine<'_>, out: &mut Vec<TranscriptEvent>) {
        let init: AgyInit<'_> = object(line.init);
        self.model = init.model.to_text();
        if let Some(id) = line
            .conversation_id
            .non_empty()
            .or(init.conversation_id.non_empty())
        {
            out.push(TranscriptEvent::meta(Meta::Session {
                session_id: id.to_owned(),
                model: self.model.clone(),
                version: None,
            }));
        }
    }

    fn read_step(&mut self, step: &AgyStep<'_>, out: &mut Vec<TranscriptEvent>) {
        let index = step.step_index.count().unwrap_or(0).to_string();
        match step.step_type.text() {
            Some("agent_response") => {
                if let Some(text) = step.text_delta.text() {
                    let _ = self.assembler.begin_message(None, &index);
                    self.assembler.push_delta(None, Tag::Ai, text, out);
                }
                let usage = self.usage(step.usage, UsageScope::Step);
                if !usage.is_empty() {
                    out.push(TranscriptEvent::usage(usage));
                }
            }
            Some("tool") => self.read_tool(&index, step, out),
            // The prompt, and notices without content.
            Some("user_input" | "checkpoint" | "finish") => {}
            unknown => push_unknown(
                &format!("step_update/{}", unknown.unwrap_or_default()),
                step.text_delta.non_empty(),
                out,
            ),
        }
    }

    fn read_tool(&mut self, id: &str, step: &AgyStep<'_>, out: &mut Vec<TranscriptEvent>) {
        let info: AgyTool<'_> = object(step.tool_info);
        let is_end = step.state.is("DONE") || step.state.is("ERROR");
        if !self.tools.is_open(id) {
            let tool = ToolStart {
                id: id.to_owned(),
                name: step.tool_name.text().unwrap_or("tool").to_owned(),
                input: info.parameters.map(Json::from),
                parent: None,
            };
            self.tools.start(tool, out);
        }
        if !is_end {
            return;
        }
        let failed = step.state.is("ERROR") || info.error.is_some();
        self.tools
            .output(id, error_text(info.error).unwrap_or_default(), out);
        let end = ToolEnd {
            id: id.to_owned(),
            status: if failed { ToolStatus::Fail } else { ToolStatus::Ok },
            duration_ms: milliseconds(&step.duration_seconds),
        };
        self.tools.end(end, out);
    }

    fn read_result(&mut self, result: &AgyResult<'_>, out: &mut Vec<TranscriptEvent>) {
        let text = result.response.text().unwrap_or_default();
        let success = result.status.is("SUCCESS");
        if success && !text.is_empty() && !self.assembler.has_emitted(text) {
            let _ = self.assembler.begin_message(None, "result");
            self.assembler.push_whole(None, Tag::Ai, text, out);
        }
        let usage = self.usage(result.usage, UsageScope::Iteration);
        if usage.tokens() > Some(0) {
            out.push(TranscriptEvent::usage(usage));
        }
        let silent = !self.assembler.answered() && !self.tools.used();
        if !success {
            let message = error_text(result.error).unwrap_or_else(|| text.to_owned());
            out.push(TranscriptEvent::meta(Meta::Error {
                class: classify_error(None, &message),
                message,
                status: None,
            }));
        }
        out.push(TranscriptEvent::meta(Meta::Finished {
            success: success && !silent,
            reason: if success && silent {
                Some("no answer".to_owned())
            } else {
                result.status.to_text().map(|status| status.to_lowercase())
            },
            text: None,
            turns: result.num_turns.count(),
            duration_ms: milliseconds(&result.duration_seconds),
        }));
    }

    fn usage(&self, usage: Option<&RawValue>, scope: UsageScope) -> Usage {
        let usage: AgyUsage<'_> = object(usage);
        Usage {
            prompt_tokens: usage.input_tokens.count(),
            completion_tokens: usage.output_tokens.count(),
            cached_tokens: usage.cache_read_tokens.count(),
            reasoning_tokens: usage.thinking_tokens.count(),
            model: self.model.clone(),
            scope,
            ..Usage::default()
        }
    }
}

/// The text of an error: a string, or the `message` of an object.
fn error_text(error: Option<&RawValue>) -> Option<String> {
    match string(error) {
        Some(text) => Some(text.into_owned()),
        None => object::<AgyError<'_>>(error).message.to_text(),
    }
}

fn milliseconds(seconds: &Field<'_>) -> Option<u64> {
    let duration = std::time::Duration::try_from_secs_f64(seconds.real()?).ok()?;
    u64::try_from(duration.as_millis()).ok()
}
