//! The transcript of one attempt, folded from live or journaled records. Pure.
//!
//! It is bounded: the oldest blocks of a long transcript are dropped and counted.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use jiff::{Timestamp, tz::TimeZone};

use super::block::{
    BlockBody, GateBlock, Note, OutputExcerpt, TextBlock, ToolCall, ToolState, TranscriptBlock,
};
use super::notes;
use crate::event::{
    DescribeContext, Description, Detail, Flow, GateResult, Json, Meta, PlanItem, Record, RunEvent, Tag,
    ToolEnd, ToolStart, TranscriptEvent,
};
use crate::ui::plain::{head, main_argument, one_line};
use crate::ui::{PassedGates, Tone, units};

/// Size limit of a text block; further text starts a new block.
const MAX_BLOCK_BYTES: usize = 16 * 1024;
/// Limits of one transcript.
const MAX_BYTES: usize = 2 * 1024 * 1024;
const MAX_BLOCKS: usize = 8000;
const MAX_OPEN_TOOLS: usize = 64;
const MAX_PLAN_ITEMS: usize = 40;
const MAX_INPUT: usize = 32 * 1024;
const NAME_COLUMNS: usize = 60;

/// Run-wide values that are needed to interpret its records.
#[derive(Debug, Clone)]
pub(in crate::ui::tui) struct TranscriptContext {
    pub(in crate::ui::tui) workspace: Arc<str>,
    pub(in crate::ui::tui) zone: TimeZone,
}

impl TranscriptContext {
    pub(super) fn describe<'a>(&'a self, at: Timestamp, gates: &'a PassedGates) -> DescribeContext<'a> {
        let zone = &self.zone;
        DescribeContext { at, zone, gates }
    }
}

#[derive(Debug, Clone, Default)]
pub(in crate::ui::tui) struct Transcript {
    pub(in crate::ui::tui) blocks: VecDeque<Arc<TranscriptBlock>>,
    /// Number of dropped blocks.
    pub(in crate::ui::tui) dropped: u64,
    pub(in crate::ui::tui) plan: Vec<PlanItem>,
    pub(in crate::ui::tui) tool_calls: u64,
    pub(in crate::ui::tui) passed_gates: PassedGates,
    bytes: usize,
    /// Running tool calls: the agent's id and the block id.
    open_tools: Vec<(String, u64)>,
    /// The kind of text that the last block accepts.
    open_text: Option<OpenText>,
    session_line: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct OpenText {
    kind: TextKind,
    parent: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextKind {
    Message(Tag),
    Stderr,
}

impl Transcript {
    /// Applies one record.
    pub(in crate::ui::tui) fn apply(&mut self, record: &Record, context: &TranscriptContext) {
        let at = record.at;
        self.passed_gates.apply(&record.event);
        match &record.event {
            RunEvent::Transcript { event, .. } => self.event(event, at, context),
            RunEvent::Stderr { text, .. } => self.stderr(text),
            RunEvent::GateStarted { name, command, .. } => {
                self.push(BlockBody::Gate(GateBlock {
                    name: one_line(name, NAME_COLUMNS).0,
                    command: one_line(command, 400).0,
                    started: at,
                    end: None,
                    output: OutputExcerpt::default(),
                }));
            }
            RunEvent::GateEnded {
                result,
                duration_ms,
                output,
                ..
            } => {
                self.end_gate(*result, Duration::from_millis(*duration_ms), output);
            }
            // The view shows the end of the run itself.
            RunEvent::RunEnded { .. } => {}
            event => {
                if let RunEvent::AgentEnded { .. } | RunEvent::IterationEnded { .. } = event {
                    self.close_open_tools();
                }
                let description = event.describe(&context.describe(at, &self.passed_gates));
                self.describe(description);
            }
        }
    }

    fn end_gate(&mut self, result: GateResult, duration: Duration, output: &str) {
        self.update_last(|body| match body {
            BlockBody::Gate(gate) if gate.end.is_none() => {
                gate.end = Some((result, duration));
                gate.output = OutputExcerpt::of(output);
                true
            }
            BlockBody::Gate(_) | BlockBody::Text(_) | BlockBody::Tool(_) | BlockBody::Note(_) => false,
        });
    }

    /// The tool calls that were not dropped, in order.
    pub(in crate::ui::tui) fn tools(&self) -> impl Iterator<Item = (&TranscriptBlock, &ToolCall)> {
        self.blocks.iter().filter_map(|block| match &block.body {
            BlockBody::Tool(tool) => Some((&**block, tool)),
            BlockBody::Text(_) | BlockBody::Gate(_) | BlockBody::Note(_) => None,
        })
    }

    /// The gates that were not dropped, in order.
    pub(in crate::ui::tui) fn gates(&self) -> impl Iterator<Item = (&TranscriptBlock, &GateBlock)> {
        self.blocks.iter().filter_map(|block| match &block.body {
            BlockBody::Gate(gate) => Some((&**block, gate)),
            BlockBody::Text(_) | BlockBody::Tool(_) | BlockBody::Note(_) => None,
        })
    }

    /// Approximate memory use.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    #[cfg(test)]
    pub(super) fn of_size(bytes: usize) -> Self {
        Self {
            bytes,
            ..Self::default()
        }
    }

    /// The newest running tool call.
    pub(in crate::ui::tui) fn running_tool(&self) -> Option<&ToolCall> {
        let (_, id) = self.open_tools.last()?;
        match &self.blocks.get(self.index(*id)?)?.body {
            BlockBody::Tool(tool) => Some(tool),
            BlockBody::Text(_) | BlockBody::Gate(_) | BlockBody::Note(_) => None,
        }
    }

    fn event(&mut self, event: &TranscriptEvent, at: Timestamp, context: &TranscriptContext) {
        match event {
            TranscriptEvent::Text {
                tag,
                text,
                flow,
                parent,
            } => self.text(*tag, text, *flow, parent.as_deref()),
            TranscriptEvent::ToolStart { tool } => self.tool_start(tool, at, context),
            TranscriptEvent::ToolOutput { tool, text } => self.tool_output(&tool.id, text),
            TranscriptEvent::ToolEnd { tool } => self.tool_end(tool, at),
            TranscriptEvent::Usage { usage: _ } => {}
            TranscriptEvent::Meta { meta } => self.meta(meta, at, context),
        }
    }

    fn text(&mut self, tag: Tag, text: &str, flow: Flow, parent: Option<&str>) {
        // Agents send empty deltas as keep-alives.
        if text.is_empty() && flow != Flow::Line {
            return;
        }
        self.add_text(TextKind::Message(tag), text, flow, parent);
    }

    fn stderr(&mut self, text: &str) {
        self.add_text(TextKind::Stderr, text, Flow::Line, None);
    }

    /// Adds text to the open block or starts a new one.
    fn add_text(&mut self, kind: TextKind, text: &str, flow: Flow, parent: Option<&str>) {
        let wanted = OpenText {
            kind,
            parent: parent.map(str::to_owned),
        };
        let continues = flow != Flow::Message && self.open_text.as_ref() == Some(&wanted);
        let mut rest = text;
        if continues {
            let mut added = 0;
            self.update_last(|body| {
                let (BlockBody::Text(TextBlock { text: open, .. })
                | BlockBody::Note(Note { text: open, .. })) = body
                else {
                    return false;
                };
                if flow == Flow::Line {
                    open.push('\n');
                }
                let fits = head(rest, MAX_BLOCK_BYTES.saturating_sub(open.len()));
                open.push_str(fits);
                added = fits.len();
                true
            });
            rest = &rest[added..];
        }
        let mut continued = continues;
        while !rest.is_empty() || !continued {
            let chunk = head(rest, MAX_BLOCK_BYTES);
            let body = match kind {
                TextKind::Message(tag) => BlockBody::Text(TextBlock {
                    tag,
                    text: chunk.to_owned(),
                    continued,
                }),
                TextKind::Stderr => BlockBody::Note(Note::new("·", Tone::Warning, chunk)),
            };
            self.push_nested(body, parent.is_some());
            rest = &rest[chunk.len()..];
            continued = true;
        }
        self.open_text = Some(wanted);
    }

    fn tool_start(&mut self, tool: &ToolStart, at: Timestamp, context: &TranscriptContext) {
        let argument = tool
            .input
            .as_ref()
            .map(|input| main_argument(input, &context.workspace));
        self.tool_calls += 1;
        let block = self.push_nested(
            BlockBody::Tool(ToolCall {
                name: one_line(&tool.name, NAME_COLUMNS).0,
                argument: argument.unwrap_or_default(),
                input: tool.input.as_ref().map(truncated_input).unwrap_or_default(),
                output: OutputExcerpt::default(),
                started: at,
                state: ToolState::Running,
            }),
            tool.parent.is_some(),
        );
        self.open_tools.retain(|(id, _)| *id != tool.id);
        if self.open_tools.len() < MAX_OPEN_TOOLS {
            self.open_tools.push((tool.id.clone(), block));
        }
    }

    fn tool_output(&mut self, id: &str, text: &str) {
        let known = self
            .open_tools
            .iter()
            .find(|(open, _)| open == id)
            .map(|(_, block)| *block);
        match known {
            Some(block) => self.update_tool(block, |tool| tool.output.add(text)),
            None => self.text(Tag::Tool, text, Flow::Message, None),
        }
    }

    fn tool_end(&mut self, end: &ToolEnd, at: Timestamp) {
        let Some(index) = self.open_tools.iter().position(|(open, _)| *open == end.id) else {
            return;
        };
        let (_, block) = self.open_tools.remove(index);
        self.update_tool(block, |tool| {
            let measured = units::since(tool.started, at);
            tool.state = ToolState::Ended {
                status: end.status,
                took: Some(end.duration_ms.map_or(measured, Duration::from_millis)),
            };
        });
    }

    fn close_open_tools(&mut self) {
        for (_, block) in std::mem::take(&mut self.open_tools) {
            self.update_tool(block, |tool| tool.state = ToolState::Unfinished);
        }
    }

    fn meta(&mut self, meta: &Meta, at: Timestamp, context: &TranscriptContext) {
        let description = meta.describe(&context.describe(at, &PassedGates::default()));
        match (meta, &description) {
            (Meta::Plan { items }, _) => {
                let items = &items[..items.len().min(MAX_PLAN_ITEMS)];
                if self.plan == items {
                    return;
                }
                self.plan = items.to_vec();
            }
            // Agents may report the same session repeatedly.
            (Meta::Session { .. }, Some(session)) => {
                if self.session_line.starts_with(&session.text) {
                    return;
                }
                self.session_line.clone_from(&session.text);
            }
            _ => {}
        }
        self.describe(description);
    }

    /// Adds a note. The layout shows starts and ends of iterations and gates itself.
    fn describe(&mut self, description: Option<Description>) {
        let Some(description) = description.filter(|description| description.detail == Detail::Normal) else {
            return;
        };
        let mut note = notes::note(&description);
        note.text.truncate(note.text.floor_char_boundary(MAX_BLOCK_BYTES));
        self.push(BlockBody::Note(note));
    }

    fn push(&mut self, body: BlockBody) -> u64 {
        self.push_nested(body, false)
    }

    fn push_nested(&mut self, body: BlockBody, nested: bool) -> u64 {
        let id = self.dropped + self.blocks.len() as u64;
        self.open_text = None;
        self.bytes += body.bytes();
        self.blocks.push_back(Arc::new(TranscriptBlock {
            id,
            version: 0,
            nested,
            body,
        }));
        while self.blocks.len() > MAX_BLOCKS || (self.bytes > MAX_BYTES && self.blocks.len() > 1) {
            if let Some(dropped) = self.blocks.pop_front() {
                self.bytes = self.bytes.saturating_sub(dropped.body.bytes());
                self.dropped += 1;
            }
        }
        id
    }

    fn index(&self, id: u64) -> Option<usize> {
        usize::try_from(id.checked_sub(self.dropped)?).ok()
    }

    fn update_tool(&mut self, id: u64, update: impl FnOnce(&mut ToolCall)) {
        let Some(index) = self.index(id) else { return };
        self.update(index, |body| match body {
            BlockBody::Tool(tool) => {
                update(tool);
                true
            }
            BlockBody::Text(_) | BlockBody::Gate(_) | BlockBody::Note(_) => false,
        });
    }

    fn update_last(&mut self, update: impl FnOnce(&mut BlockBody) -> bool) {
        if let Some(last) = self.blocks.len().checked_sub(1) {
            self.update(last, update);
        }
    }

    /// Updates a block. Existing snapshots keep the old version.
    fn update(&mut self, index: usize, update: impl FnOnce(&mut BlockBody) -> bool) {
        let Some(block) = self.blocks.get_mut(index).map(Arc::make_mut) else {
            return;
        };
        let before = block.body.bytes();
        if update(&mut block.body) {
            block.version += 1;
            self.bytes = (self.bytes + block.body.bytes()).saturating_sub(before);
        }
    }
}

fn truncated_input(input: &Json) -> String {
    head(input.as_str(), MAX_INPUT).to_owned()
}
