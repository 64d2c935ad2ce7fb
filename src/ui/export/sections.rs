//! Groups the records of a run into sections, one per attempt, for the exports. Each tool call is combined with its
//! output. Only one section is in memory at a time.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::event::{
    DescribeContext, Description, Detail, Flow, GateResult, IterationOutcome, Json, Meta, NoteTag,
    PassedGates, PlanStatus, Record, RunEvent, Tag, ToolStart, ToolStatus, TranscriptEvent,
};
use crate::ui::plain::main_argument;
use crate::ui::{Verdict, gate_failure, iteration_verdict, units};

/// The exported part of one text or tool output; the run directory has the full output.
const MAX_TEXT_BYTES: usize = 256 * 1024;

/// The content of one attempt, or of the time before the first iteration.
#[derive(Debug, Default)]
pub(super) struct ExportSection {
    /// Iteration and attempt; absent before the first iteration.
    pub(super) iteration: Option<(u64, u64)>,
    pub(super) hat: Option<String>,
    /// The agent, if the run has several.
    pub(super) agent: Option<String>,
    pub(super) began: Timestamp,
    pub(super) items: Vec<SectionItem>,
}

#[derive(Debug)]
pub(super) enum SectionItem {
    Text {
        tag: Tag,
        text: CappedText,
        nested: bool,
    },
    ToolCall(ExportedToolCall),
    Gate(ExportedGate),
    /// How the iteration ended.
    Verdict(Verdict),
    /// A message from ralph, or from the agent about its session.
    Note {
        label: &'static str,
        text: CappedText,
    },
}

#[derive(Debug, Default)]
pub(super) struct ExportedToolCall {
    pub(super) name: String,
    /// The main argument, on one line.
    pub(super) argument: String,
    pub(super) input: CappedText,
    pub(super) output: CappedText,
    pub(super) status: Option<ToolStatus>,
    pub(super) duration: Option<Duration>,
    pub(super) began: Timestamp,
    pub(super) nested: bool,
}

#[derive(Debug)]
pub(super) struct ExportedGate {
    pub(super) name: String,
    pub(super) result: GateResult,
    pub(super) duration: Duration,
    pub(super) output: CappedText,
}

impl ExportedGate {
    /// `exit code 1`; `None` if the gate passed.
    pub(super) fn failure(&self) -> Option<String> {
        gate_failure(self.result)
    }
}

/// A text that is truncated at `MAX_TEXT_BYTES`.
#[derive(Debug, Default)]
pub(super) struct CappedText {
    text: String,
    truncated_bytes: u64,
}

impl CappedText {
    fn new(text: &str) -> Self {
        let mut capped = Self::default();
        capped.push(text);
        capped
    }

    fn push(&mut self, text: &str) {
        let remaining = MAX_TEXT_BYTES.saturating_sub(self.text.len()).min(text.len());
        let end = text.floor_char_boundary(remaining);
        self.text.push_str(&text[..end]);
        self.truncated_bytes += (text.len() - end) as u64;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// The cleaned text, followed by a note if it was truncated.
    pub(super) fn shown(&self) -> String {
        let text = crate::ui::clean::clean(self.text.trim_matches('\n')).into_owned();
        match self.truncated_bytes {
            0 => text,
            bytes => format!(
                "{text}\n… {} truncated; the run directory has the full output",
                units::bytes(bytes)
            ),
        }
    }
}

/// Builds sections from records.
#[derive(Debug, Default)]
pub(super) struct SectionBuilder {
    section: ExportSection,
    workspace: String,
    /// The running tool calls of this section, as indices of its items.
    open_tools: HashMap<String, usize>,
    /// The item that the last record changed or added.
    changed_item: Option<usize>,
    /// The record that each item of this section started with.
    origins: Vec<ItemOrigin>,
    /// The record that is being applied.
    record: ItemOrigin,
}

/// The record that an item started with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ItemOrigin {
    pub(super) seq: u64,
    pub(super) at: Timestamp,
}

impl SectionBuilder {
    /// Adds a record; returns the previous section if the record starts a new one.
    pub(super) fn apply(&mut self, record: &Record) -> Option<ExportSection> {
        self.record = ItemOrigin {
            seq: record.seq,
            at: record.at,
        };
        match &record.event {
            RunEvent::RunStarted(header) => self.workspace.clone_from(&header.workspace),
            RunEvent::IterationStarted {
                iteration,
                attempt,
                hat,
                agent,
                ..
            } => {
                return self.start_section(ExportSection {
                    iteration: Some((*iteration, *attempt)),
                    hat: hat.clone(),
                    agent: agent.clone(),
                    began: record.at,
                    ..ExportSection::default()
                });
            }
            RunEvent::Transcript { event, .. } => self.transcript(event, record.at),
            RunEvent::Stderr { text, .. } => self.note("ERR", text),
            RunEvent::GateEnded {
                name,
                result,
                duration_ms,
                output,
                ..
            } => self.gate(name, *result, *duration_ms, output),
            RunEvent::IterationEnded { outcome, .. } => self.iteration_ended(outcome, record.at),
            // The header shows how the run ended.
            RunEvent::RunEnded { .. } => {}
            event => {
                let (zone, gates) = (&crate::ui::local_time_zone(), &PassedGates::default());
                self.describe(event.describe(&DescribeContext {
                    at: record.at,
                    zone,
                    gates,
                }));
            }
        }
        None
    }

    /// The section of the last record.
    pub(super) fn current(&self) -> &ExportSection {
        &self.section
    }

    /// The record that an item of the current section started with.
    pub(super) fn origin(&self, item: usize) -> ItemOrigin {
        self.origins.get(item).copied().unwrap_or_default()
    }

    /// Returns the position of the item that the last record changed or added.
    pub(super) fn take_changed(&mut self) -> Option<usize> {
        self.changed_item.take()
    }

    fn push(&mut self, item: SectionItem) {
        self.changed_item = Some(self.section.items.len());
        self.origins.push(self.record);
        self.section.items.push(item);
    }

    /// Marks the last item as changed.
    fn last_changed(&mut self) {
        self.changed_item = self.section.items.len().checked_sub(1);
    }

    fn start_section(&mut self, next: ExportSection) -> Option<ExportSection> {
        self.open_tools.clear();
        self.origins.clear();
        let previous = std::mem::replace(&mut self.section, next);
        Some(previous).filter(ExportSection::is_worth_showing)
    }

    fn gate(&mut self, name: &str, result: GateResult, duration_ms: u64, output: &str) {
        self.push(SectionItem::Gate(ExportedGate {
            name: name.to_owned(),
            result,
            duration: Duration::from_millis(duration_ms),
            output: CappedText::new(output),
        }));
    }

    pub(super) fn finish(&mut self) -> Option<ExportSection> {
        Some(std::mem::take(&mut self.section)).filter(ExportSection::is_worth_showing)
    }

    fn iteration_ended(&mut self, outcome: &IterationOutcome, at: Timestamp) {
        let verdict = iteration_verdict(outcome, at, &crate::ui::local_time_zone());
        self.push(SectionItem::Verdict(verdict));
    }

    /// Adds a note; consecutive notes with the same label are merged.
    fn note(&mut self, label: &'static str, text: &str) {
        match self.section.items.last_mut() {
            Some(SectionItem::Note {
                label: same,
                text: before,
            }) if *same == label => {
                before.push("\n");
                before.push(text.trim_end_matches('\n'));
                self.last_changed();
            }
            _ => self.push(SectionItem::Note {
                label,
                text: CappedText::new(text.trim_end_matches('\n')),
            }),
        }
    }

    /// Adds a sentence about the run, without sessions and pauses, which matter only while it runs.
    fn describe(&mut self, description: Option<Description>) {
        let shown = |description: &Description| {
            description.detail == Detail::Normal
                && !matches!(description.tag, NoteTag::Pause | NoteTag::Session)
        };
        if let Some(description) = description.filter(shown) {
            self.note(description.tag.label(), &description.text);
        }
    }

    fn transcript(&mut self, event: &TranscriptEvent, at: Timestamp) {
        match event {
            TranscriptEvent::Text {
                tag,
                text,
                flow,
                parent,
            } => self.text(*tag, text, *flow, parent.is_some()),
            TranscriptEvent::ToolStart { tool } => self.tool_started(tool, at),
            TranscriptEvent::ToolOutput { tool, text } => {
                if let Some(open) = self.tool(&tool.id) {
                    open.output.push(text);
                }
            }
            TranscriptEvent::ToolEnd { tool } => {
                if let Some(open) = self.tool(&tool.id) {
                    open.status = Some(tool.status);
                    // Most agents do not report the duration.
                    let measured = Some(units::since(open.began, at)).filter(|took| !took.is_zero());
                    open.duration = tool.duration_ms.map(Duration::from_millis).or(measured);
                }
                self.open_tools.remove(&tool.id);
            }
            TranscriptEvent::Usage { usage: _ } => {}
            TranscriptEvent::Meta { meta } => self.meta(meta, at),
        }
    }

    fn text(&mut self, tag: Tag, text: &str, flow: Flow, nested: bool) {
        if flow != Flow::Message
            && let Some(SectionItem::Text {
                tag: same,
                text: before,
                nested: same_depth,
            }) = self.section.items.last_mut()
            && (*same, *same_depth) == (tag, nested)
        {
            if flow == Flow::Line {
                before.push("\n");
            }
            before.push(text);
            return self.last_changed();
        }
        if !text.is_empty() {
            let text = CappedText::new(text);
            self.push(SectionItem::Text { tag, text, nested });
        }
    }

    fn tool_started(&mut self, tool: &ToolStart, at: Timestamp) {
        let input = tool.input.as_ref();
        self.open_tools.insert(tool.id.clone(), self.section.items.len());
        self.push(SectionItem::ToolCall(ExportedToolCall {
            name: tool.name.clone(),
            argument: input
                .map(|input| main_argument(input, &self.workspace))
                .unwrap_or_default(),
            input: CappedText::new(&input.map(format_input).unwrap_or_default()),
            nested: tool.parent.is_some(),
            began: at,
            ..ExportedToolCall::default()
        }));
    }

    fn tool(&mut self, id: &str) -> Option<&mut ExportedToolCall> {
        let index = *self.open_tools.get(id)?;
        match self.section.items.get_mut(index) {
            Some(SectionItem::ToolCall(tool)) => {
                self.changed_item = Some(index);
                Some(tool)
            }
            _ => None,
        }
    }

    fn meta(&mut self, meta: &Meta, at: Timestamp) {
        let Meta::Plan { items } = meta else {
            let (zone, gates) = (&crate::ui::local_time_zone(), &PassedGates::default());
            return self.describe(meta.describe(&DescribeContext { at, zone, gates }));
        };
        let line = |status, text: &str| match status {
            PlanStatus::Pending => format!("· {text}"),
            PlanStatus::Active => format!("▸ {text}"),
            PlanStatus::Done => format!("✓ {text}"),
        };
        let lines: Vec<String> = items.iter().map(|item| line(item.status, &item.text)).collect();
        self.push(SectionItem::Note {
            label: NoteTag::Plan.label(),
            text: CappedText::new(&lines.join("\n")),
        });
    }
}

impl ExportSection {
    fn is_worth_showing(&self) -> bool {
        self.iteration.is_some() || !self.items.is_empty()
    }

    /// `Iteration 3 · attempt 2 · reviewer`
    pub(super) fn title(&self) -> String {
        let Some((iteration, attempt)) = self.iteration else {
            return "Before the first iteration".to_owned();
        };
        let attempt = (attempt > 1).then(|| format!(" · attempt {attempt}"));
        let role = [&self.hat, &self.agent].into_iter().flatten();
        let role: String = role.map(|part| format!(" · {part}")).collect();
        format!("Iteration {iteration}{}{role}", attempt.unwrap_or_default())
    }
}

/// The input of a call, one field per line; strings are unquoted.
fn format_input(input: &Json) -> String {
    let field = |(name, value): (&String, &Value)| match value {
        Value::String(text) if text.contains('\n') => format!("{name}:\n{text}"),
        Value::String(text) => format!("{name}: {text}"),
        value => format!(
            "{name}: {}",
            serde_json::to_string_pretty(value).unwrap_or_default()
        ),
    };
    match input.value() {
        Value::String(text) => text,
        Value::Object(fields) => fields.iter().map(field).collect::<Vec<_>>().join("\n"),
        value => serde_json::to_string_pretty(&value).unwrap_or_default(),
    }
}

/// A mark for the status of a call, and its duration: `✓`, `12ms`.
pub(super) fn tool_status(tool: &ExportedToolCall) -> (&'static str, String) {
    let mark = match tool.status {
        Some(ToolStatus::Ok) => "✓",
        Some(ToolStatus::Fail) => "✗",
        Some(ToolStatus::Unknown) | None => "·",
    };
    (mark, tool.duration.map(units::duration).unwrap_or_default())
}
