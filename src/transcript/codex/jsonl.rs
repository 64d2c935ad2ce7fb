//! Parses the events of `codex exec --json`: threads, turns and items.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{error_meta, finished, parse_retry};
use crate::event::{
    FileChangeKind, Json, Meta, PlanItem, PlanStatus, Tag, ToolEnd, ToolStart, ToolStatus, TranscriptEvent,
    Usage, UsageScope,
};
use crate::transcript::common::{
    Assembler, EventStream, Field, Tools, list, object, parse, push_unknown, push_unreadable, string,
};

#[derive(Default)]
pub(super) struct CodexJsonl {
    assembler: Assembler,
    tools: Tools,
    /// The last reported error; a failed turn repeats it.
    reported_error: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct CodexEvent<'a> {
    #[serde(borrow, rename = "type")]
    kind: Field<'a>,
    #[serde(borrow)]
    thread_id: Field<'a>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CodexItem<'a> {
    #[serde(borrow)]
    id: Field<'a>,
    #[serde(borrow, rename = "type")]
    kind: Field<'a>,
    #[serde(borrow)]
    text: Field<'a>,
    #[serde(borrow)]
    message: Field<'a>,
    #[serde(borrow)]
    command: Option<&'a RawValue>,
    #[serde(borrow)]
    aggregated_output: Field<'a>,
    #[serde(borrow)]
    status: Field<'a>,
    #[serde(borrow)]
    changes: Option<&'a RawValue>,
    #[serde(borrow)]
    server: Field<'a>,
    #[serde(borrow)]
    tool: Field<'a>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    query: Option<&'a RawValue>,
    #[serde(borrow)]
    prompt: Option<&'a RawValue>,
    #[serde(borrow)]
    items: Option<&'a RawValue>,
}

/// The fields of several small objects inside an item.
#[derive(Default, Deserialize)]
#[serde(default)]
struct CodexDetail<'a> {
    #[serde(borrow)]
    message: Field<'a>,
    #[serde(borrow)]
    text: Field<'a>,
    #[serde(borrow)]
    completed: Field<'a>,
    #[serde(borrow)]
    path: Field<'a>,
    #[serde(borrow)]
    kind: Field<'a>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CodexTokens<'a> {
    #[serde(borrow)]
    input_tokens: Field<'a>,
    #[serde(borrow)]
    cached_input_tokens: Field<'a>,
    #[serde(borrow)]
    cache_write_input_tokens: Field<'a>,
    #[serde(borrow)]
    output_tokens: Field<'a>,
    #[serde(borrow)]
    reasoning_output_tokens: Field<'a>,
}

/// The stage of an item.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ItemStage {
    Started,
    Updated,
    Completed,
}

impl EventStream for CodexJsonl {
    type Event<'a> = CodexEvent<'a>;

    fn parse(text: &str) -> Result<CodexEvent<'_>, String> {
        parse(text)
    }

    fn read(&mut self, event: &CodexEvent<'_>, line: &str, out: &mut Vec<TranscriptEvent>) {
        match event.kind.text() {
            Some("thread.started") => {
                if let Some(id) = event.thread_id.non_empty() {
                    out.push(TranscriptEvent::meta(Meta::Session {
                        session_id: id.to_owned(),
                        model: None,
                        version: None,
                    }));
                }
            }
            Some("turn.started") => {}
            Some("turn.completed") => self.end_turn(event, out),
            Some("turn.failed") => self.fail_turn(event, out),
            Some("error") => self.push_error(event.message.text().unwrap_or("error"), out),
            Some("item.started") => self.read_item(event.item, ItemStage::Started, out),
            Some("item.updated") => self.read_item(event.item, ItemStage::Updated, out),
            Some("item.completed") => self.read_item(event.item, ItemStage::Completed, out),
            Some(unknown) => push_unknown(unknown, event.message.non_empty(), out),
            None => push_unreadable(line, "`type` is missing".to_owned(), out),
        }
    }

    fn tools(&mut self) -> &mut Tools {
        &mut self.tools
    }
}

impl CodexJsonl {
    /// Ends a turn. The usage covers the whole thread, including earlier runs.
    fn end_turn(&self, event: &CodexEvent<'_>, out: &mut Vec<TranscriptEvent>) {
        let tokens: CodexTokens<'_> = object(event.usage);
        let usage = Usage {
            prompt_tokens: tokens.input_tokens.count(),
            completion_tokens: tokens.output_tokens.count(),
            cached_tokens: tokens.cached_input_tokens.count(),
            cache_write_tokens: tokens.cache_write_input_tokens.count(),
            reasoning_tokens: tokens.reasoning_output_tokens.count(),
            scope: UsageScope::Session,
            ..Usage::default()
        };
        if !usage.is_empty() {
            out.push(TranscriptEvent::usage(usage));
        }
        let silent = !self.assembler.answered() && !self.tools.used();
        out.push(finished(
            !silent,
            if silent { "no answer" } else { "turn.completed" },
        ));
    }

    fn fail_turn(&mut self, event: &CodexEvent<'_>, out: &mut Vec<TranscriptEvent>) {
        let error: CodexDetail<'_> = object(event.error);
        let message = error.message.non_empty().unwrap_or("the turn failed");
        if self.reported_error.as_deref() != Some(message) {
            self.push_error(message, out);
        }
        out.push(finished(false, "turn.failed"));
    }

    /// Reports an `error` event. It does not end the turn: usually codex retries.
    fn push_error(&mut self, message: &str, out: &mut Vec<TranscriptEvent>) {
        out.push(TranscriptEvent::meta(
            parse_retry(message).unwrap_or_else(|| error_meta(message)),
        ));
        self.reported_error = Some(message.to_owned());
    }

    fn read_item(&mut self, raw: Option<&RawValue>, stage: ItemStage, out: &mut Vec<TranscriptEvent>) {
        let item: CodexItem<'_> = object(raw);
        let done = stage == ItemStage::Completed;
        match item.kind.text().unwrap_or_default() {
            "agent_message" if done => self.push_message(&item, Tag::Ai, out),
            "reasoning" if done => self.push_message(&item, Tag::Think, out),
            "error" if done => {
                let text = item.message.text().unwrap_or("error");
                out.push(TranscriptEvent::message(Tag::Sys, text));
            }
            "todo_list" => out.extend(item.plan()),
            "agent_message" | "reasoning" | "error" => {}
            "command_execution" => self.read_tool(&item, "shell", stage, out),
            "file_change" => self.read_tool(&item, "apply_patch", stage, out),
            "web_search" => self.read_tool(&item, "web_search", stage, out),
            "mcp_tool_call" | "collab_tool_call" => {
                let name = match (item.server.non_empty(), item.tool.non_empty()) {
                    (Some(server), Some(tool)) => format!("{server}.{tool}"),
                    (None, Some(tool)) => tool.to_owned(),
                    (_, None) => "tool".to_owned(),
                };
                self.read_tool(&item, &name, stage, out);
            }
            unknown if done => {
                let text = item.text.non_empty().or(item.message.non_empty());
                push_unknown(&format!("item/{unknown}"), text, out);
            }
            _ => {}
        }
    }

    fn push_message(&mut self, item: &CodexItem<'_>, tag: Tag, out: &mut Vec<TranscriptEvent>) {
        let _ = match item.id.non_empty() {
            Some(id) => self.assembler.begin_message(None, id),
            None => self.assembler.begin_unnamed_message(None),
        };
        self.assembler
            .push_whole(None, tag, item.text.text().unwrap_or_default(), out);
    }

    fn read_tool(
        &mut self,
        item: &CodexItem<'_>,
        name: &str,
        stage: ItemStage,
        out: &mut Vec<TranscriptEvent>,
    ) {
        let id = item.id.non_empty().unwrap_or(name);
        let tool = ToolStart {
            id: id.to_owned(),
            name: name.to_owned(),
            input: item.input(),
            parent: None,
        };
        self.tools.start(tool, out);
        if stage != ItemStage::Completed {
            return;
        }
        self.tools.output(id, item.output(), out);
        let status = match item.status.text() {
            Some("failed" | "declined") => ToolStatus::Fail,
            Some("completed") | None => ToolStatus::Ok,
            Some(_) => ToolStatus::Unknown,
        };
        if status == ToolStatus::Ok {
            out.extend(list(item.changes).into_iter().filter_map(file_change));
        }
        let end = ToolEnd {
            id: id.to_owned(),
            status,
            duration_ms: None,
        };
        self.tools.end(end, out);
    }
}

impl CodexItem<'_> {
    /// The input of the tool, with codex's field names.
    fn input(&self) -> Option<Json> {
        if let Some(arguments) = self.arguments {
            return Some(Json::from(arguments));
        }
        let mut input = serde_json::Map::new();
        let fields = [
            ("command", self.command),
            ("changes", self.changes),
            ("query", self.query),
            ("prompt", self.prompt),
        ];
        for (name, raw) in fields {
            if let Some(value) = raw.and_then(|raw| serde_json::from_str(raw.get()).ok()) {
                input.insert(name.to_owned(), value);
            }
        }
        (!input.is_empty()).then(|| Json::from(serde_json::Value::Object(input)))
    }

    fn output(&self) -> String {
        let error: CodexDetail<'_> = object(self.error);
        if let Some(output) = self.aggregated_output.non_empty().or(error.message.non_empty()) {
            return output.to_owned();
        }
        let result: CodexDetail<'_> = object(self.result);
        let texts: Vec<String> = list(result.content)
            .into_iter()
            .map(|raw| {
                object::<CodexDetail<'_>>(Some(raw))
                    .text
                    .to_text()
                    .unwrap_or_else(|| raw.get().to_owned())
            })
            .collect();
        match (texts.is_empty(), self.result) {
            (false, _) => texts.join("\n"),
            (true, Some(raw)) => string(Some(raw)).map_or_else(|| raw.get().to_owned(), Into::into),
            (true, None) => String::new(),
        }
    }

    fn plan(&self) -> Option<TranscriptEvent> {
        let items: Vec<PlanItem> = list(self.items)
            .into_iter()
            .filter_map(|raw| {
                let item: CodexDetail<'_> = object(Some(raw));
                let status = match item.completed.flag() {
                    Some(true) => PlanStatus::Done,
                    Some(false) | None => PlanStatus::Pending,
                };
                let text = item.text.non_empty()?.to_owned();
                Some(PlanItem { text, status })
            })
            .collect();
        (!items.is_empty()).then(|| TranscriptEvent::meta(Meta::Plan { items }))
    }
}

fn file_change(raw: &RawValue) -> Option<TranscriptEvent> {
    let edit: CodexDetail<'_> = object(Some(raw));
    let change = match edit.kind.text() {
        Some("add") => FileChangeKind::Added,
        Some("delete") => FileChangeKind::Deleted,
        _ => FileChangeKind::Modified,
    };
    let path = edit.path.non_empty()?.to_owned();
    Some(TranscriptEvent::meta(Meta::FileChange { path, change }))
}
