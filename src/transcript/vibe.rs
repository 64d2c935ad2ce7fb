//! `vibe`: the entries of `vibe --output streaming`. Each entry is sent once, after it has ended; there is no terminal event.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::common::{
    Assembler, EventStream, Field, Tools, hidden_prompt, list, object, parse, push_unknown, push_unreadable,
};
use super::{Adapter, AdapterContext, Capabilities, Format};
use crate::event::{Flow, Json, Meta, Tag, ToolEnd, ToolStart, ToolStatus, TranscriptEvent};

pub(super) const FORMAT: Format = Format {
    name: "vibe",
    capabilities: Capabilities {
        roles: true,
        messages: true,
        tools: true,
        usage: false,
        costs: false,
        sessions: true,
        prompt_hiding: true,
        terminal_event: false,
    },
    open,
};

fn open(context: &AdapterContext<'_>) -> Box<dyn Adapter> {
    Box::new(Vibe {
        prompt: context.prompt.trim().to_owned(),
        session: None,
        assembler: Assembler::default(),
        tools: Tools::default(),
    })
}

struct Vibe {
    prompt: String,
    session: Option<String>,
    assembler: Assembler,
    tools: Tools,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct VibeEntry<'a> {
    #[serde(borrow)]
    id: Field<'a>,
    #[serde(borrow, rename = "sessionId")]
    session_id: Field<'a>,
    #[serde(borrow, rename = "type")]
    kind: Field<'a>,
    #[serde(borrow)]
    role: Field<'a>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Field<'a>,
    #[serde(borrow)]
    title: Field<'a>,
    #[serde(borrow)]
    detail: Option<&'a RawValue>,
    #[serde(borrow)]
    state: Option<&'a RawValue>,
}

/// A block of a message, the detail of an effect, or its state.
#[derive(Default, Deserialize)]
#[serde(default)]
struct VibePart<'a> {
    #[serde(borrow)]
    text: Field<'a>,
    #[serde(borrow, rename = "toolName")]
    tool_name: Field<'a>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Field<'a>,
    #[serde(borrow, rename = "outputText")]
    output_text: Field<'a>,
    #[serde(borrow)]
    error: Field<'a>,
    #[serde(borrow)]
    display: Option<&'a RawValue>,
    #[serde(borrow)]
    success: Field<'a>,
}

impl EventStream for Vibe {
    type Event<'a> = VibeEntry<'a>;

    fn parse(text: &str) -> Result<VibeEntry<'_>, String> {
        parse(text)
    }

    fn read(&mut self, entry: &VibeEntry<'_>, line: &str, out: &mut Vec<TranscriptEvent>) {
        self.report_session(entry, out);
        match (entry.kind.text(), entry.role.text()) {
            (Some("message"), Some("assistant")) => self.push_text(Tag::Ai, &text_of(entry.content), out),
            (Some("message"), _) => self.read_input(entry, out),
            (Some("reasoning"), _) => {
                self.push_text(Tag::Think, entry.text.text().unwrap_or_default(), out);
            }
            (Some("effect"), _) => self.read_effect(entry, out),
            (Some(unknown), _) => push_unknown(unknown, entry.text.non_empty(), out),
            (None, _) => push_unreadable(line, "`type` is missing".to_owned(), out),
        }
    }

    fn tools(&mut self) -> &mut Tools {
        &mut self.tools
    }
}

impl Vibe {
    fn report_session(&mut self, entry: &VibeEntry<'_>, out: &mut Vec<TranscriptEvent>) {
        let current = self.session.as_deref();
        if let Some(id) = entry.session_id.non_empty().filter(|id| current != Some(id)) {
            self.session = Some(id.to_owned());
            out.push(TranscriptEvent::meta(Meta::Session {
                session_id: id.to_owned(),
                model: None,
                version: None,
            }));
        }
    }

    fn push_text(&mut self, tag: Tag, text: &str, out: &mut Vec<TranscriptEvent>) {
        let _ = self.assembler.begin_unnamed_message(None);
        self.assembler.push_whole(None, tag, text, out);
    }

    fn read_input(&self, entry: &VibeEntry<'_>, out: &mut Vec<TranscriptEvent>) {
        let text = text_of(entry.content);
        if !self.prompt.is_empty() && text.trim() == self.prompt {
            return out.push(hidden_prompt(&text));
        }
        out.push(TranscriptEvent::Text {
            tag: Tag::User,
            text,
            flow: Flow::Message,
            parent: None,
        });
    }

    /// Reads a tool call, which is reported after it has ended.
    fn read_effect(&mut self, entry: &VibeEntry<'_>, out: &mut Vec<TranscriptEvent>) {
        let (detail, state): (VibePart<'_>, VibePart<'_>) = (object(entry.detail), object(entry.state));
        let name = detail.tool_name.non_empty().or(entry.title.non_empty());
        let name = name.unwrap_or("tool");
        let id = entry.id.text().unwrap_or(name);
        self.assembler.end_unnamed_message(None);
        let tool = ToolStart {
            id: id.to_owned(),
            name: name.to_owned(),
            input: detail.input.map(Json::from),
            parent: None,
        };
        self.tools.start(tool, out);
        let output = state.output_text.non_empty().or(state.error.non_empty());
        self.tools.output(id, output.unwrap_or_default(), out);
        // A command that exits with an error is completed, too.
        let display: VibePart<'_> = object(state.display);
        let status = match (state.status.text(), display.success.flag()) {
            (Some("completed"), Some(true)) => ToolStatus::Ok,
            (Some("completed"), None) | (None, _) => ToolStatus::Unknown,
            (Some(_), _) => ToolStatus::Fail,
        };
        let end = ToolEnd {
            id: id.to_owned(),
            status,
            duration_ms: None,
        };
        self.tools.end(end, out);
    }
}

fn text_of(content: Option<&RawValue>) -> String {
    let texts = list(content)
        .into_iter()
        .filter_map(|raw| object::<VibePart<'_>>(Some(raw)).text.to_text());
    texts.collect::<Vec<_>>().join("\n")
}
