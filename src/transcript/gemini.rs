//! `gemini`: the stream-json of Gemini CLI. Text comes in pieces only; there is no word on reasoning or retries.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::common::{
    Assembler, EventStream, Field, Tools, class_of_error, hidden_prompt, mark_unknown, object, parse,
    say_unreadable, status_named_in,
};
use super::{Capabilities, Format};
use crate::event::{Json, Meta, Tag, ToolEnd, ToolStart, ToolStatus, TranscriptEvent, Usage, UsageScope};

pub(super) const FORMAT: Format = Format {
    name: "gemini",
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
    open: |_| Box::<Gemini>::default(),
};

#[derive(Default)]
struct Gemini {
    speech: Assembler,
    tools: Tools,
    /// The first piece of the current message.
    opening: String,
    /// What spoils a result that calls itself a success.
    spoiled: Option<String>,
    /// A result has told what was used.
    counted: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Field<'a>,
    #[serde(borrow)]
    session_id: Field<'a>,
    #[serde(borrow)]
    model: Field<'a>,
    #[serde(borrow)]
    role: Field<'a>,
    #[serde(borrow)]
    content: Field<'a>,
    #[serde(borrow)]
    delta: Field<'a>,
    #[serde(borrow)]
    tool_name: Field<'a>,
    #[serde(borrow)]
    tool_id: Field<'a>,
    #[serde(borrow)]
    parameters: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Field<'a>,
    #[serde(borrow)]
    output: Field<'a>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    severity: Field<'a>,
    #[serde(borrow)]
    message: Field<'a>,
    #[serde(borrow)]
    stats: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Problem<'a> {
    #[serde(borrow)]
    message: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Stats<'a> {
    #[serde(borrow)]
    total_tokens: Field<'a>,
    #[serde(borrow)]
    input_tokens: Field<'a>,
    #[serde(borrow)]
    output_tokens: Field<'a>,
    #[serde(borrow)]
    cached: Field<'a>,
    #[serde(borrow)]
    duration_ms: Field<'a>,
    /// The same figures for each model that took part.
    #[serde(borrow)]
    models: Option<&'a RawValue>,
}

impl Stats<'_> {
    fn usage(&self) -> Usage {
        Usage {
            prompt_tokens: self.input_tokens.count(),
            completion_tokens: self.output_tokens.count(),
            total_tokens: self.total_tokens.count(),
            cached_tokens: self.cached.count(),
            ..Usage::default()
        }
    }

    fn total(&self) -> Usage {
        Usage {
            scope: UsageScope::Iteration,
            ..self.usage()
        }
    }

    /// What each model used, if that is all that was used; or else the total.
    fn usages(&self) -> Vec<Usage> {
        let models: BTreeMap<Cow<'_, str>, &RawValue> = object(self.models);
        let by_model: Vec<Usage> = models
            .into_iter()
            .map(|(model, stats)| Usage {
                model: Some(model.into_owned()),
                ..object::<Stats<'_>>(Some(stats)).usage()
            })
            .filter(|usage| usage.tokens() != Some(0))
            .collect();
        let mut sum = Usage::default();
        by_model.iter().for_each(|usage| sum.add(usage));
        let total = self.total();
        if sum.tokens().is_some() && sum.tokens() == total.tokens() {
            by_model
        } else {
            vec![total]
        }
    }
}

impl EventStream for Gemini {
    type Event<'a> = Event<'a>;

    fn parse(text: &str) -> Result<Event<'_>, String> {
        parse(text)
    }

    fn read(&mut self, event: &Event<'_>, line: &str, out: &mut Vec<TranscriptEvent>) {
        match event.kind.text() {
            Some("init") => {
                if let Some(id) = event.session_id.words() {
                    out.push(TranscriptEvent::meta(Meta::Session {
                        session_id: id.to_owned(),
                        model: event.model.to_text(),
                        version: None,
                    }));
                }
            }
            Some("message") => self.read_message(event, out),
            Some("tool_use") => self.read_tool_use(event, out),
            Some("tool_result") => self.read_tool_result(event, out),
            Some("error") => self.read_error(event, out),
            Some("result") => self.read_result(event, out),
            Some(unknown) => mark_unknown(unknown, event.message.words().or(event.content.words()), out),
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

impl Gemini {
    fn read_message(&mut self, event: &Event<'_>, out: &mut Vec<TranscriptEvent>) {
        let text = event.content.text().unwrap_or_default();
        match event.role.text() {
            Some("user") => out.push(hidden_prompt(text)),
            Some("assistant") | None => {
                // After a broken connection the answer begins again, and nothing marks it.
                if self.opening == text && text.len() >= SURELY_NO_CHANCE {
                    self.speech.interrupt(None);
                }
                if self.speech.is_between_messages() {
                    self.opening = text.to_owned();
                }
                if event.delta.flag() == Some(true) {
                    self.speech.piece(None, Tag::Ai, text, out);
                } else {
                    let _ = self.speech.begin_unnamed(None);
                    self.speech.whole(None, Tag::Ai, text, out);
                }
            }
            Some(_) => out.push(TranscriptEvent::message(Tag::Sys, text)),
        }
    }

    fn read_tool_use(&mut self, event: &Event<'_>, out: &mut Vec<TranscriptEvent>) {
        self.speech.interrupt(None);
        let name = event.tool_name.text().unwrap_or("tool");
        let tool = ToolStart {
            id: event.tool_id.text().unwrap_or(name).to_owned(),
            name: name.to_owned(),
            input: event.parameters.map(Json::from),
            parent: None,
        };
        self.tools.start(tool, out);
    }

    fn read_tool_result(&mut self, event: &Event<'_>, out: &mut Vec<TranscriptEvent>) {
        let id = event.tool_id.text().unwrap_or_default();
        let problem: Problem<'_> = object(event.error);
        let output = event
            .output
            .words()
            .or(problem.message.words())
            .unwrap_or_default();
        self.tools.output(id, output, out);
        let status = match event.status.text() {
            Some("success") => ToolStatus::Ok,
            Some("error") => ToolStatus::Fail,
            _ => ToolStatus::Unknown,
        };
        let end = ToolEnd {
            id: id.to_owned(),
            status,
            duration_ms: None,
        };
        self.tools.end(end, out);
    }

    /// A warning is only told, unless it says that the work was broken off: the result then still says success.
    fn read_error(&mut self, event: &Event<'_>, out: &mut Vec<TranscriptEvent>) {
        let message = event.message.text().unwrap_or_default();
        if event.severity.is("warning") {
            out.push(TranscriptEvent::message(Tag::Sys, message));
            if message.starts_with("Loop detected") {
                self.spoiled = Some(message.to_owned());
            }
            return;
        }
        out.push(failure(message));
        self.spoiled = Some(message.to_owned());
    }

    fn read_result(&mut self, event: &Event<'_>, out: &mut Vec<TranscriptEvent>) {
        let stats: Stats<'_> = object(event.stats);
        let problem: Problem<'_> = object(event.error);
        if let Some(message) = problem.message.words() {
            out.push(failure(message));
        }
        let silent = !self.speech.answered() && !self.tools.used();
        let reason = match (&self.spoiled, event.status.text()) {
            (Some(message), _) => message.clone(),
            (None, Some("success")) if silent => "no answer".to_owned(),
            (None, status) => status.unwrap_or("no status").to_owned(),
        };
        out.push(TranscriptEvent::meta(Meta::Finished {
            success: reason == "success",
            reason: Some(reason),
            text: None,
            turns: None,
            duration_ms: stats.duration_ms.count(),
        }));
        // Were there a second result, its figures would cover those of the first.
        let usages = match std::mem::replace(&mut self.counted, true) {
            true => vec![stats.total()],
            false => stats.usages(),
        };
        let used = usages.into_iter().filter(|usage| !usage.is_empty());
        out.extend(used.map(TranscriptEvent::usage));
        self.spoiled = None;
        self.speech.interrupt(None);
    }
}

/// A first piece shorter than this may come twice by chance.
const SURELY_NO_CHANCE: usize = 16;

/// Gemini gives every failure the type `unknown`; the status is inside the message, where there is one.
fn failure(message: &str) -> TranscriptEvent {
    let status = status_named_in(message, &["\"code\":", "\"code\": "]);
    TranscriptEvent::meta(Meta::Error {
        class: class_of_error(status, message),
        message: message.to_owned(),
        status,
    })
}
