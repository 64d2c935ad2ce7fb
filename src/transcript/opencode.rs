//! `opencode`: the JSON events of `opencode run`. Every part comes whole, when it is over; a session ends with a
//! step that stopped, and there is no other terminal event.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::common::{
    Assembler, EventStream, Field, Tools, class_of_error, mark_unknown, object, parse, read_plan,
    say_unreadable,
};
use super::{Capabilities, Format};
use crate::event::{CostSource, Json, Meta, Tag, ToolEnd, ToolStart, ToolStatus, TranscriptEvent, Usage};

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
    speech: Assembler,
    tools: Tools,
    /// The conversation did not fit: the next step sums it up for the model, and answers nobody.
    compacting: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Event<'a> {
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
struct Part<'a> {
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
struct State<'a> {
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

/// Fields of several small objects: how a command ended, from when to when, what a cache did.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Small<'a> {
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
struct Tokens<'a> {
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
struct Problem<'a> {
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
    type Event<'a> = Event<'a>;

    fn parse(text: &str) -> Result<Event<'_>, String> {
        parse(text)
    }

    fn read(&mut self, event: &Event<'_>, line: &str, out: &mut Vec<TranscriptEvent>) {
        self.note_session(event, out);
        let part: Part<'_> = object(event.part);
        match event.kind.text() {
            Some("step_start") => {}
            Some("text") => self.read_text(&part, Tag::Ai, out),
            Some("reasoning") => self.read_text(&part, Tag::Think, out),
            Some("tool_use") => self.read_tool(&part, out),
            Some("step_finish") => self.read_step_finish(&part, out),
            Some("error") => self.read_error(event.error, out),
            Some(unknown) => mark_unknown(unknown, part.text.words(), out),
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

impl OpenCode {
    fn note_session(&mut self, event: &Event<'_>, out: &mut Vec<TranscriptEvent>) {
        let known = self.session.as_deref();
        if let Some(id) = event.session_id.words().filter(|id| known != Some(id)) {
            self.session = Some(id.to_owned());
            out.push(TranscriptEvent::meta(Meta::Session {
                session_id: id.to_owned(),
                model: None,
                version: None,
            }));
        }
    }

    fn read_text(&mut self, part: &Part<'_>, tag: Tag, out: &mut Vec<TranscriptEvent>) {
        let text = part.text.text().unwrap_or_default();
        let synthetic = part.synthetic.flag() == Some(true);
        if synthetic || self.compacting {
            self.compacting &= !synthetic;
            out.push(TranscriptEvent::message(Tag::Sys, text));
            return;
        }
        let _ = match part.message_id.words() {
            Some(id) => self.speech.begin(None, id),
            None => self.speech.begin_unnamed(None),
        };
        self.speech.whole(None, tag, text, out);
    }

    /// A tool call is told when it is over.
    fn read_tool(&mut self, part: &Part<'_>, out: &mut Vec<TranscriptEvent>) {
        let name = part.tool.text().unwrap_or("tool");
        let id = part.call_id.text().unwrap_or(name);
        let state: State<'_> = object(part.state);
        self.speech.interrupt(None);
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
        let output = state.output.words().or(state.error.words()).unwrap_or_default();
        self.tools.output(id, output, out);
        let end = ToolEnd {
            id: id.to_owned(),
            status: state.outcome(name),
            duration_ms: state.duration(),
        };
        self.tools.end(end, out);
    }

    fn read_step_finish(&mut self, part: &Part<'_>, out: &mut Vec<TranscriptEvent>) {
        let usage = part.usage();
        if !usage.is_empty() {
            out.push(TranscriptEvent::usage(usage));
        }
        let reason = part.reason.text().unwrap_or("unknown");
        if reason == "tool-calls" || std::mem::take(&mut self.compacting) {
            return;
        }
        let silent = !self.speech.answered() && !self.tools.used();
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

    /// An error ends the session, unless opencode compacts the conversation and goes on: then more follows.
    fn read_error(&mut self, raw: Option<&RawValue>, out: &mut Vec<TranscriptEvent>) {
        let problem: Problem<'_> = object(raw);
        let data: Problem<'_> = object(problem.data);
        let name = problem.name.text().unwrap_or("error");
        self.compacting = name == "ContextOverflowError";
        let message = data.message.words().or(problem.message.words()).unwrap_or(name);
        let status = data
            .status_code
            .count()
            .and_then(|status| u16::try_from(status).ok());
        out.push(TranscriptEvent::meta(Meta::Error {
            class: class_of_error(status, &format!("{name}: {message}")),
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

impl State<'_> {
    /// A command that failed is `completed` all the same; its exit code tells. So is a call of no known tool.
    fn outcome(&self, tool: &str) -> ToolStatus {
        let exit = object::<Small<'_>>(self.metadata).exit.real().unwrap_or(0.0);
        if self.status.is("completed") && exit == 0.0 && tool != "invalid" {
            ToolStatus::Ok
        } else {
            ToolStatus::Fail
        }
    }

    fn duration(&self) -> Option<u64> {
        let time: Small<'_> = object(self.time);
        time.end.count()?.checked_sub(time.start.count()?)
    }
}

impl Part<'_> {
    /// `input` leaves out what a cache had to do with; whether `output` leaves out reasoning, the total tells.
    fn usage(&self) -> Usage {
        let tokens: Tokens<'_> = object(self.tokens);
        let cache: Small<'_> = object(tokens.cache);
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
        // opencode says 0 where it knows no price.
        let cost = self.cost.real().filter(|cost| *cost > 0.0);
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
