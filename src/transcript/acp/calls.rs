//! The tool calls of an ACP session. An agent may announce a call before its input is complete, and may leave out the
//! announcement, so a call starts when it is known to run.

use std::collections::HashMap;

use serde_json::value::RawValue;

use super::wire::{AcpBlock, AcpDetail, AcpUpdate, blocks_text, exit_code};
use crate::event::{FileChangeKind, Json, Meta, ToolEnd, ToolStart, ToolStatus, TranscriptEvent};
use crate::transcript::common::{Tools, list, object, string};

/// Announced calls are forgotten beyond this number.
const MAX_ANNOUNCED: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Calls {
    tools: Tools,
    /// Calls that have not started.
    announced: HashMap<String, Announced>,
}

/// What is known about a call before it starts.
#[derive(Debug, Default)]
struct Announced {
    kind: Option<String>,
    title: Option<String>,
    input: Option<Json>,
}

impl Announced {
    fn learn(&mut self, update: &AcpUpdate<'_>) {
        self.kind = update.kind.to_text().or(self.kind.take());
        self.title = update.title.to_text().or(self.title.take());
        let input = update.raw_input.filter(|raw| has_content(raw)).map(Json::from);
        self.input = input.or(self.input.take());
    }

    fn start(self, id: &str) -> ToolStart {
        let title = self.title.filter(|title| !title.is_empty());
        let input = self.input.or_else(|| {
            let title = serde_json::json!({ "title": title.as_ref()? });
            serde_json::value::to_raw_value(&title)
                .ok()
                .map(|raw| Json::from(&*raw))
        });
        let name = self
            .kind
            .filter(|kind| !kind.is_empty() && kind != "other")
            .or(title);
        ToolStart {
            id: id.to_owned(),
            name: name.unwrap_or_else(|| "tool".to_owned()),
            input,
            parent: None,
        }
    }
}

impl Calls {
    pub(super) fn tools(&mut self) -> &mut Tools {
        &mut self.tools
    }

    /// Reads a call or an update of one.
    pub(super) fn update(&mut self, update: &AcpUpdate<'_>, out: &mut Vec<TranscriptEvent>) {
        let Some(id) = update.tool_call_id.non_empty() else {
            return;
        };
        let ended = match update.status.text() {
            Some("completed") => Some(ToolStatus::Ok),
            Some("failed") => Some(ToolStatus::Fail),
            Some(_) | None => None,
        };
        if !self.tools.is_open(id) {
            let announced = self.announce(id, update);
            let runs = announced.input.is_some() && !update.status.is("pending");
            if runs || ended.is_some() {
                self.start(id, out);
            }
        }
        if let Some(status) = ended {
            self.end(id, status, update, out);
        }
    }

    /// The agent asks for the permission to make a call, which ralph grants. An announced call starts with its next
    /// update, which has its input.
    pub(super) fn permission_requested(&mut self, call: &AcpUpdate<'_>, out: &mut Vec<TranscriptEvent>) {
        let Some(id) = call.tool_call_id.non_empty().filter(|id| !self.tools.is_open(id)) else {
            return;
        };
        let was_announced = self.announced.contains_key(id);
        let has_input = self.announce(id, call).input.is_some();
        if has_input || !was_announced {
            self.start(id, out);
        }
    }

    fn announce(&mut self, id: &str, update: &AcpUpdate<'_>) -> &Announced {
        if self.announced.len() >= MAX_ANNOUNCED {
            self.announced.clear();
        }
        let announced = self.announced.entry(id.to_owned()).or_default();
        announced.learn(update);
        announced
    }

    fn start(&mut self, id: &str, out: &mut Vec<TranscriptEvent>) {
        let announced = self.announced.remove(id).unwrap_or_default();
        self.tools.start(announced.start(id), out);
    }

    fn end(&mut self, id: &str, status: ToolStatus, update: &AcpUpdate<'_>, out: &mut Vec<TranscriptEvent>) {
        let output = match blocks_text(update.content) {
            text if text.is_empty() => raw_text(update.raw_output),
            text => text,
        };
        self.tools.output(id, output, out);
        for raw in list(update.content) {
            out.extend(file_change(&object(Some(raw))));
        }
        // A call succeeds even if its command failed; only the exit code shows the failure.
        let status = match exit_code(update.raw_output) {
            Some(code) if code != 0.0 => ToolStatus::Fail,
            Some(_) | None => status,
        };
        self.tools.end(
            ToolEnd {
                id: id.to_owned(),
                status,
                duration_ms: None,
            },
            out,
        );
    }
}

/// An input without fields is a placeholder.
fn has_content(raw: &RawValue) -> bool {
    !matches!(raw.get().trim(), "null" | "{}" | "\"\"")
}

fn raw_text(raw_output: Option<&RawValue>) -> String {
    let text = string(raw_output).map(std::borrow::Cow::into_owned);
    let output = || object::<AcpDetail<'_>>(raw_output).output.to_text();
    text.or_else(output).unwrap_or_default()
}

fn file_change(block: &AcpBlock<'_>) -> Option<TranscriptEvent> {
    if !block.kind.is("diff") {
        return None;
    }
    let change = match block.old_text.text() {
        None => FileChangeKind::Added,
        Some(_) => FileChangeKind::Modified,
    };
    let path = block.path.non_empty()?.to_owned();
    Some(TranscriptEvent::meta(Meta::FileChange { path, change }))
}
