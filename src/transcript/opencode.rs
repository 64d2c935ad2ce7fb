//! `opencode`: the JSON events of `opencode run`. Each part is sent once, after it has ended. The last step of a session is
//! its terminal event.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::common::{
    Assembler, EventStream, Field, Tools, classify_error, object, parse, push_unknown, push_unreadable,
    read_plan,
};
use super::{Capabilities, Format};
use crate::event::{
    CostSource, Json, Meta, Tag, ToolEnd, ToolStart, ToolStatus, TranscriptEvent, Usage, Usd,
};

pub(super) const FORMAT: Format = Format {
    name: "opencode",
    capabilities: Capabilities {
        roles: true,
        messages: true,
        tools: true,
        usage: true,
        costs: true,
        sessions: true,
        prompt_hiding: false,
        terminal_event: true,
    },
    open: |_| Box::<OpenCode>::default(),
};

#[derive(Default)]
struct OpenCode {
    session: Option<String>,
    assembler: Assembler,
    tools: Tools,
    /// The conversation exceeded the context window; the next step is a summary for the model, not an answer.
    compacting: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OpenCodeEvent<'a> {
    #[serde(borrow, rename = "type")]
    kind: Field<'a>,
    #[serde(borrow, rename = "sessionID")]
    session_id: Field<'a>,
    #[serde(borrow)]
    part: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OpenCodePart<'a> {
    #[serde(borrow, rename = "messageID")]
    message_id: Field<'a>,
    #[serde(borrow)]
    text: Field<'a>,
    #[serde(borrow)]
    synthetic: Field<'a>,
    #[serde(borrow)]
    tool: Field<'a>,
    #[serde(borrow, rename = "callID")]
    call_id: Field<'a>,
    #[serde(borrow)]
    state: Option<&'a RawValue>,
    #[serde(borrow)]
    reason: Field<'a>,
    #[serde(borrow)]
    tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    cost: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OpenCodeToolState<'a> {
    #[serde(borrow)]
    status: Field<'a>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Field<'a>,
    #[serde(borrow)]
    error: Field<'a>,
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    time: Option<&'a RawValue>,
}

/// The fields of several small objects: exit code, times and cache tokens.
#[derive(Default, Deserialize)]
#[serde(default)]
struct OpenCodeDetail<'a> {
    #[serde(borrow)]
    exit: Field<'a>,
    #[serde(borrow)]
    start: Field<'a>,
    #[serde(borrow)]
    end: Field<'a>,
    #[serde(borrow)]
    read: Field<'a>,
    #[serde(borrow)]
    write: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OpenCodeTokens<'a> {
    #[serde(borrow)]
    total: Field<'a>,
    #[serde(borrow)]
    input: Field<'a>,
    #[serde(borrow)]
    output: Field<'a>,
    #[serde(borrow)]
    reasoning: Field<'a>,
    #[serde(borrow)]
    cache: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OpenCodeError<'a> {
    #[serde(borrow)]
    name: Field<'a>,
    #[serde(borrow)]
    message: Field<'a>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    #[serde(borrow, rename = "statusCode")]
    status_code: Field<'a>,
}

impl EventStream for OpenCode {
    type Event<'a> = OpenCodeEvent<'a>;

    fn parse(text: &str) -> Result<OpenCodeEvent<'_>, String> {
        parse(text)
    }

    fn read(&mut self, event: &OpenCodeEvent<'_>, line: &str, out: &mut Vec<TranscriptEvent>) {
        self.report_session(event, out);
        let part: OpenCodePart<'_> = object(event.part);
        match event.kind.text() {
            Some("step_start") => {}
            Some("text") => self.read_text(&part, Tag::Ai, out),
            Some("reasoning") => self.read_text(&part, Tag::Think, out),
            Some("tool_use") => self.read_tool(&part, out),
            Some("step_finish") => self.read_step_finish(&part, out),
            Some("error") => self.read_error(event.error, out),
            Some(unknown) => push_unknown(unknown, part.text.non_empty(), out),
            None => push_unreadable(line, "`type` is missing".to_owned(), out),
        }
    }

    fn tools(&mut self) -> &mut Tools {
        &mut self.tools
    }
}

impl OpenCode {
    fn report_session(&mut self, event: &OpenCodeEvent<'_>, out: &mut Vec<TranscriptEvent>) {
        let current = self.session.as_deref();
        if let Some(id) = event.session_id.non_empty().filter(|id| current != Some(id)) {
            self.session = Some(id.to_owned());
            out.push(TranscriptEvent::meta(Meta::Session {
                session_id: id.to_owned(),
                model: None,
                version: None,
            }));
        }
    }

    fn read_text(&mut self, part: &OpenCodePart<'_>, tag: Tag, out: &mut Vec<TranscriptEvent>) {
        let text = part.text.text().unwrap_or_default();
        let synthetic = part.synthetic.flag() == Some(true);
        if synthetic || self.compacting {
            self.compacting &= !synthetic;
            out.push(TranscriptEvent::message(Tag::Sys, text));
            return;
        }
        let _ = match part.message_id.non_empty() {
            Some(id) => self.assembler.begin_message(None, id),
            None => self.assembler.begin_unnamed_message(None),
        };
        self.assembler.push_whole(None, tag, text, out);
    }

    /// Reads a tool call, which is reported after it has ended.
    fn read_tool(&mut self, part: &OpenCodePart<'_>, out: &mut Vec<TranscriptEvent>) {
        let name = part.tool.text().unwrap_or("tool");
        let id = part.call_id.text().unwrap_or(name);
        let state: OpenCodeToolState<'_> = object(part.state);
        self.assembler.end_unnamed_message(None);
        let tool = ToolStart {
            id: id.to_owned(),
            name: name.to_owned(),
            input: state.input.map(Json::from),
            parent: None,
        };
        self.tools.start(tool, out);
        if name == "todowrite" {
            out.extend(read_plan(state.input));
        }
        if !state.status.is("completed") && !state.status.is("error") {
            return;
        }
        let output = state
            .output
            .non_empty()
            .or(state.error.non_empty())
            .unwrap_or_default();
        self.tools.output(id, output, out);
        let end = ToolEnd {
            id: id.to_owned(),
            status: state.outcome(name),
            duration_ms: state.duration(),
        };
        self.tools.end(end, out);
    }

    fn read_step_finish(&mut self, part: &OpenCodePart<'_>, out: &mut Vec<TranscriptEvent>) {
        let usage = part.usage();
        if !usage.is_empty() {
            out.push(TranscriptEvent::usage(usage));
        }
        let reason = part.reason.text().unwrap_or("unknown");
        if reason == "tool-calls" || std::mem::take(&mut self.compacting) {
            return;
        }
        let silent = !self.assembler.answered() && !self.tools.used();
        let success = reason == "stop" && !silent;
        let reason = if silent { "no answer" } else { reason };
        out.push(TranscriptEvent::meta(Meta::Finished {
            success,
            reason: Some(reason.to_owned()),
            text: None,
            turns: None,
            duration_ms: None,
        }));
    }

    /// Reads an error. It ends the session, unless opencode compacts the conversation and continues.
    fn read_error(&mut self, raw: Option<&RawValue>, out: &mut Vec<TranscriptEvent>) {
        let error: OpenCodeError<'_> = object(raw);
        let data: OpenCodeError<'_> = object(error.data);
        let name = error.name.text().unwrap_or("error");
        self.compacting = name == "ContextOverflowError";
        let message = data
            .message
            .non_empty()
            .or(error.message.non_empty())
            .unwrap_or(name);
        let status = data
            .status_code
            .count()
            .and_then(|status| u16::try_from(status).ok());
        out.push(TranscriptEvent::meta(Meta::Error {
            class: classify_error(status, &format!("{name}: {message}")),
            message: message.to_owned(),
            status,
        }));
        out.push(TranscriptEvent::meta(Meta::Finished {
            success: false,
            reason: Some(name.to_owned()),
            text: None,
            turns: None,
            duration_ms: None,
        }));
    }
}

impl OpenCodeToolState<'_> {
    /// The status of the call. A failed command and a call of an unknown tool (`invalid`) are also reported as `completed`.
    fn outcome(&self, tool: &str) -> ToolStatus {
        let exit = object::<OpenCodeDetail<'_>>(self.metadata)
            .exit
            .real()
            .unwrap_or(0.0);
        if self.status.is("completed") && exit == 0.0 && tool != "invalid" {
            ToolStatus::Ok
        } else {
            ToolStatus::Fail
        }
    }

    fn duration(&self) -> Option<u64> {
        let time: OpenCodeDetail<'_> = object(self.time);
        time.end.count()?.checked_sub(time.start.count()?)
    }
}

impl OpenCodePart<'_> {
    /// The usage of a step. `input` excludes cached tokens; `output` may exclude reasoning, which only the total shows.
    fn usage(&self) -> Usage {
        let tokens: OpenCodeTokens<'_> = object(self.tokens);
        let cache: OpenCodeDetail<'_> = object(tokens.cache);
        let cached = [cache.read.count(), cache.write.count()]
            .into_iter()
            .flatten()
            .sum::<u64>();
        let prompt = tokens.input.count().map(|input| input.saturating_add(cached));
        let reasoning = tokens.reasoning.count();
        let completion = match (tokens.total.count(), prompt) {
            (Some(total), Some(prompt)) => total.checked_sub(prompt),
            _ => None,
        };
        let output = tokens
            .output
            .count()
            .map(|output| output.saturating_add(reasoning.unwrap_or(0)));
        // opencode reports 0 if it has no price.
        let cost = self.cost.money().filter(|cost| *cost > Usd::ZERO);
        Usage {
            prompt_tokens: prompt,
            completion_tokens: completion.or(output),
            total_tokens: tokens.total.count(),
            cached_tokens: cache.read.count(),
            cache_write_tokens: cache.write.count(),
            reasoning_tokens: reasoning,
            cost_usd: cost,
            cost_source: cost.map(|_| CostSource::Reported),
            ..Usage::default()
        }
    }
}
