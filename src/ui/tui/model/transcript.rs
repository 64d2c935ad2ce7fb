//! The transcript of one try of an iteration, folded from records: live, or read back from the journal. Pure, and
//! bounded: of a transcript that is very long the newest part is kept, and it is said how much went before.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use jiff::{Timestamp, tz::TimeZone};

use super::block::{Block, Body, Excerpt, Gate, Note, Said, Tool, ToolState};
use super::{meta, notes};
use crate::event::{Flow, Json, Meta, PlanItem, Record, RunEvent, Tag, ToolEnd, ToolStart, TranscriptEvent};
use crate::ui::dedup::MessageDedup;
use crate::ui::plain::{first_argument, head, one_line};
use crate::ui::{PassedGates, Tone, units};

/// A block that has grown to this size is full; what is said further goes into the next one.
const FULL: usize = 16 * 1024;
/// What is kept of one transcript.
const MOST_BYTES: usize = 2 * 1024 * 1024;
const MOST_BLOCKS: usize = 8000;
const MOST_OPEN_TOOLS: usize = 64;
const MOST_PLAN_ITEMS: usize = 40;
const MOST_INPUT: usize = 32 * 1024;
const NAME_COLUMNS: usize = 60;

/// What is the same for the whole run and is needed to read its records.
#[derive(Debug, Clone)]
pub(in crate::ui::tui) struct Setting {
    pub(in crate::ui::tui) workspace: Arc<str>,
    pub(in crate::ui::tui) zone: TimeZone,
}

#[derive(Debug, Clone, Default)]
pub(in crate::ui::tui) struct Transcript {
    pub(in crate::ui::tui) blocks: VecDeque<Arc<Block>>,
    /// Blocks that were let go, from the beginning.
    pub(in crate::ui::tui) dropped: u64,
    pub(in crate::ui::tui) plan: Vec<PlanItem>,
    pub(in crate::ui::tui) tool_calls: u64,
    pub(in crate::ui::tui) passed_gates: PassedGates,
    bytes: usize,
    /// Tool calls that have not ended: the agent's name for each, and its block.
    open_tools: Vec<(String, u64)>,
    /// The block to which more text can be added.
    open_text: Option<OpenText>,
    said: MessageDedup,
    session_line: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct OpenText {
    kind: TextKind,
    parent: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextKind {
    Said(Tag),
    Stderr,
}

impl Transcript {
    /// Folds one record in.
    pub(in crate::ui::tui) fn apply(&mut self, record: &Record, setting: &Setting) {
        let at = record.at;
        self.passed_gates.apply(&record.event);
        match &record.event {
            RunEvent::Transcript { event, .. } => self.event(event, at, setting),
            RunEvent::Stderr { text, .. } => self.stderr(text),
            RunEvent::GateStarted { name, command, .. } => {
                self.push(Body::Gate(Gate {
                    name: one_line(name, NAME_COLUMNS).0,
                    command: one_line(command, 400).0,
                    started: at,
                    end: None,
                    output: Excerpt::default(),
                }));
            }
            RunEvent::GateEnded {
                result,
                duration_ms,
                output,
                ..
            } => {
                self.change_last(|body| match body {
                    Body::Gate(gate) if gate.end.is_none() => {
                        gate.end = Some((*result, Duration::from_millis(*duration_ms)));
                        gate.output = Excerpt::of(output);
                        true
                    }
                    Body::Gate(_) | Body::Said(_) | Body::Tool(_) | Body::Note(_) => false,
                });
            }
            RunEvent::AgentEnded { .. } | RunEvent::IterationEnded { .. } => {
                self.lose_open_tools();
                self.note(notes::of_run(
                    &record.event,
                    at,
                    &setting.zone,
                    &self.passed_gates,
                ));
            }
            RunEvent::RunStarted(_)
            | RunEvent::RunResumed(_)
            | RunEvent::TopicRerouted { .. }
            | RunEvent::CommandReceived { .. }
            | RunEvent::Progress { .. }
            | RunEvent::Paused
            | RunEvent::Asking
            | RunEvent::IterationStarted { .. }
            | RunEvent::AgentStarted { .. }
            | RunEvent::MarkerIgnored { .. }
            | RunEvent::Topic { .. }
            | RunEvent::Waiting { .. }
            | RunEvent::WaitEnded
            | RunEvent::Stopping { .. }
            | RunEvent::Notice { .. }
            | RunEvent::RunEnded { .. } => self.note(notes::of_run(
                &record.event,
                at,
                &setting.zone,
                &self.passed_gates,
            )),
        }
    }

    /// The tool calls that are kept, in order.
    pub(in crate::ui::tui) fn tools(&self) -> impl Iterator<Item = (&Block, &Tool)> {
        self.blocks.iter().filter_map(|block| match &block.body {
            Body::Tool(tool) => Some((&**block, tool)),
            Body::Said(_) | Body::Gate(_) | Body::Note(_) => None,
        })
    }

    /// The tool that runs now, the newest if there are several.
    pub(in crate::ui::tui) fn running_tool(&self) -> Option<&Tool> {
        let (_, id) = self.open_tools.last()?;
        match &self.blocks.get(self.index(*id)?)?.body {
            Body::Tool(tool) => Some(tool),
            Body::Said(_) | Body::Gate(_) | Body::Note(_) => None,
        }
    }

    fn event(&mut self, event: &TranscriptEvent, at: Timestamp, setting: &Setting) {
        match event {
            TranscriptEvent::Text {
                tag,
                text,
                flow,
                parent,
            } => self.text(*tag, text, *flow, parent.as_deref()),
            TranscriptEvent::ToolStart { tool } => self.tool_start(tool, at, setting),
            TranscriptEvent::ToolOutput { tool, text } => self.tool_output(&tool.id, text),
            TranscriptEvent::ToolEnd { tool } => self.tool_end(tool, at),
            TranscriptEvent::Usage { usage: _ } => {}
            TranscriptEvent::Meta { meta } => self.meta(meta, at, setting),
        }
    }

    fn text(&mut self, tag: Tag, text: &str, flow: Flow, parent: Option<&str>) {
        // An empty delta is a sign of life and nothing to see.
        if text.is_empty() && flow != Flow::Line {
            return;
        }
        let goes_on = self.say(TextKind::Said(tag), text, flow, parent);
        if tag == Tag::Ai && parent.is_none() {
            if !goes_on {
                self.said.begin_message();
            }
            self.said.add(text);
        }
    }

    fn stderr(&mut self, text: &str) {
        self.say(TextKind::Stderr, text, Flow::Line, None);
    }

    /// Adds text to the open block, or opens one; says whether it went on.
    fn say(&mut self, kind: TextKind, text: &str, flow: Flow, parent: Option<&str>) -> bool {
        let wanted = OpenText {
            kind,
            parent: parent.map(str::to_owned),
        };
        let goes_on = flow != Flow::Message && self.open_text.as_ref() == Some(&wanted);
        let mut rest = text;
        if goes_on {
            let mut added = 0;
            self.change_last(|body| {
                let (Body::Said(Said { text: open, .. }) | Body::Note(Note { text: open, .. })) = body else {
                    return false;
                };
                if flow == Flow::Line {
                    open.push('\n');
                }
                let fits = head(rest, FULL.saturating_sub(open.len()));
                open.push_str(fits);
                added = fits.len();
                true
            });
            rest = &rest[added..];
        }
        let mut continued = goes_on;
        while !rest.is_empty() || !continued {
            let piece = head(rest, FULL);
            let body = match kind {
                TextKind::Said(tag) => Body::Said(Said {
                    tag,
                    text: piece.to_owned(),
                    continued,
                }),
                TextKind::Stderr => Body::Note(Note::new("·", Tone::Warning, piece)),
            };
            self.push_nested(body, parent.is_some());
            rest = &rest[piece.len()..];
            continued = true;
        }
        self.open_text = Some(wanted);
        goes_on
    }

    fn tool_start(&mut self, tool: &ToolStart, at: Timestamp, setting: &Setting) {
        let argument = tool
            .input
            .as_ref()
            .map(|input| first_argument(input, &setting.workspace));
        self.tool_calls += 1;
        let block = self.push_nested(
            Body::Tool(Tool {
                name: one_line(&tool.name, NAME_COLUMNS).0,
                argument: argument.unwrap_or_default(),
                input: tool.input.as_ref().map(kept_input).unwrap_or_default(),
                output: Excerpt::default(),
                started: at,
                state: ToolState::Running,
            }),
            tool.parent.is_some(),
        );
        self.open_tools.retain(|(id, _)| *id != tool.id);
        if self.open_tools.len() < MOST_OPEN_TOOLS {
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
            Some(block) => self.change_tool(block, |tool| tool.output.add(text)),
            None => self.text(Tag::Tool, text, Flow::Message, None),
        }
    }

    fn tool_end(&mut self, end: &ToolEnd, at: Timestamp) {
        let Some(place) = self.open_tools.iter().position(|(open, _)| *open == end.id) else {
            return;
        };
        let (_, block) = self.open_tools.remove(place);
        self.change_tool(block, |tool| {
            let measured = units::since(tool.started, at);
            tool.state = ToolState::Ended {
                status: end.status,
                took: Some(end.duration_ms.map_or(measured, Duration::from_millis)),
            };
        });
    }

    fn lose_open_tools(&mut self) {
        for (_, block) in std::mem::take(&mut self.open_tools) {
            self.change_tool(block, |tool| tool.state = ToolState::Lost);
        }
    }

    fn meta(&mut self, told: &Meta, at: Timestamp, setting: &Setting) {
        match told {
            Meta::Plan { items } => {
                let items = &items[..items.len().min(MOST_PLAN_ITEMS)];
                if self.plan != items {
                    self.plan = items.to_vec();
                    self.note(Some(meta::of_plan(items)));
                }
                return;
            }
            Meta::Finished { text: Some(text), .. } if !text.trim().is_empty() => {
                // Most agents repeat their last message here; some say it only here.
                if !self.said.has(text) {
                    self.text(Tag::Ai, text, Flow::Message, None);
                }
            }
            Meta::Session { .. } => {
                // An agent may name its session again and again; only news is shown.
                let note = meta::of_meta(told, at, &setting.zone);
                if let Some(note) = note.filter(|note| !self.session_line.starts_with(&note.text)) {
                    self.session_line.clone_from(&note.text);
                    self.note(Some(note));
                }
                return;
            }
            Meta::Finished { .. }
            | Meta::Error { .. }
            | Meta::Retry { .. }
            | Meta::RateLimit { .. }
            | Meta::FileChange { .. }
            | Meta::PermissionDenied { .. }
            | Meta::ParseError { .. }
            | Meta::Cut { .. }
            | Meta::Other(_) => {}
        }
        self.note(meta::of_meta(told, at, &setting.zone));
    }

    fn note(&mut self, note: Option<Note>) {
        if let Some(mut note) = note {
            note.text.truncate(note.text.floor_char_boundary(FULL));
            self.push(Body::Note(note));
        }
    }

    fn push(&mut self, body: Body) -> u64 {
        self.push_nested(body, false)
    }

    fn push_nested(&mut self, body: Body, nested: bool) -> u64 {
        let id = self.dropped + self.blocks.len() as u64;
        self.open_text = None;
        self.bytes += body.bytes();
        self.blocks.push_back(Arc::new(Block {
            id,
            version: 0,
            nested,
            body,
        }));
        while self.blocks.len() > MOST_BLOCKS || (self.bytes > MOST_BYTES && self.blocks.len() > 1) {
            if let Some(gone) = self.blocks.pop_front() {
                self.bytes = self.bytes.saturating_sub(gone.body.bytes());
                self.dropped += 1;
            }
        }
        id
    }

    fn index(&self, id: u64) -> Option<usize> {
        usize::try_from(id.checked_sub(self.dropped)?).ok()
    }

    fn change_tool(&mut self, id: u64, act: impl FnOnce(&mut Tool)) {
        let Some(index) = self.index(id) else { return };
        self.change(index, |body| match body {
            Body::Tool(tool) => {
                act(tool);
                true
            }
            Body::Said(_) | Body::Gate(_) | Body::Note(_) => false,
        });
    }

    fn change_last(&mut self, act: impl FnOnce(&mut Body) -> bool) {
        if let Some(last) = self.blocks.len().checked_sub(1) {
            self.change(last, act);
        }
    }

    /// Changes a block for those who look from now on; who looks already keeps what was there.
    fn change(&mut self, index: usize, act: impl FnOnce(&mut Body) -> bool) {
        let Some(block) = self.blocks.get_mut(index).map(Arc::make_mut) else {
            return;
        };
        let before = block.body.bytes();
        if act(&mut block.body) {
            block.version += 1;
            self.bytes = (self.bytes + block.body.bytes()).saturating_sub(before);
        }
    }
}

fn kept_input(input: &Json) -> String {
    head(input.as_str(), MOST_INPUT).to_owned()
}
