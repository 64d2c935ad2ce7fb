//! The story of a run: chapter by chapter what was said and done, each tool call with its output in one place, whatever
//! came between. Only one chapter is held at a time.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

use crate::event::{
    Command, Flow, GateResult, IterationOutcome, Json, Level, Meta, PlanStatus, Record, RunEvent, Tag,
    ToolStart, ToolStatus, TranscriptEvent,
};
use crate::ui::plain::first_argument;
use crate::ui::{Verdict, describe, gate_words, iteration_verdict, units};

/// What of one text or of one tool's output is written down; the raw files have all of it.
const LONGEST_TEXT: usize = 256 * 1024;

/// What happened in one try of an iteration, or before the first.
#[derive(Debug, Default)]
pub(super) struct Section {
    /// Absent for what came before the first iteration.
    pub(super) iteration: Option<(u64, u64)>,
    pub(super) hat: Option<String>,
    pub(super) began: Timestamp,
    pub(super) blocks: Vec<Block>,
}

#[derive(Debug)]
pub(super) enum Block {
    Said {
        tag: Tag,
        text: Text,
        nested: bool,
    },
    Tool(Tool),
    Gate(Gate),
    /// How the iteration ended.
    Verdict(Verdict),
    /// What ralph, or the agent about itself, had to tell.
    Note {
        label: &'static str,
        text: Text,
    },
}

#[derive(Debug, Default)]
pub(super) struct Tool {
    id: String,
    pub(super) name: String,
    /// What the call is about, in one line.
    pub(super) about: String,
    pub(super) input: Text,
    pub(super) output: Text,
    pub(super) status: Option<ToolStatus>,
    pub(super) took: Option<Duration>,
    pub(super) nested: bool,
}

#[derive(Debug)]
pub(super) struct Gate {
    pub(super) name: String,
    pub(super) result: GateResult,
    pub(super) took: Duration,
    pub(super) output: Text,
}

impl Gate {
    /// `exit code 1`, where it did not pass.
    pub(super) fn why(&self) -> Option<String> {
        gate_words(self.result)
    }
}

/// A text that is cut where it becomes too long.
#[derive(Debug, Default)]
pub(super) struct Text {
    kept: String,
    cut: u64,
}

impl Text {
    fn new(text: &str) -> Self {
        let mut new = Self::default();
        new.push(text);
        new
    }

    fn push(&mut self, text: &str) {
        let mut room = LONGEST_TEXT.saturating_sub(self.kept.len()).min(text.len());
        while !text.is_char_boundary(room) {
            room -= 1;
        }
        self.kept.push_str(&text[..room]);
        self.cut += (text.len() - room) as u64;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.kept.trim().is_empty()
    }

    /// Cleaned, and with a word about what is missing.
    pub(super) fn shown(&self) -> String {
        let text = crate::ui::clean::clean(self.kept.trim_matches('\n')).into_owned();
        match self.cut {
            0 => text,
            cut => format!("{text}\n… {} more in the run's own files", units::bytes(cut)),
        }
    }
}

/// Turns records into chapters.
#[derive(Debug, Default)]
pub(super) struct Sections {
    chapter: Section,
    workspace: String,
    said_something: bool,
}

impl Sections {
    /// Takes in a record; returns the chapter that it brought to an end.
    pub(super) fn hear(&mut self, record: &Record) -> Option<Section> {
        match &record.event {
            RunEvent::RunStarted(header) => self.workspace.clone_from(&header.workspace),
            RunEvent::RunResumed(_) => self.note("NOTE", "the run goes on"),
            RunEvent::IterationStarted {
                iteration,
                attempt,
                hat,
                ..
            } => {
                return self.turn_page(Section {
                    iteration: Some((*iteration, *attempt)),
                    hat: hat.clone(),
                    began: record.at,
                    ..Section::default()
                });
            }
            RunEvent::Transcript { event, .. } => self.transcript(event),
            RunEvent::Stderr { text, .. } => self.note("ERR", text),
            RunEvent::MarkerIgnored { marker, reason, .. } => {
                self.note("WARN", &format!("{marker} does not count: {reason}"));
            }
            RunEvent::Topic { event, .. } => {
                self.note("TOPIC", &format!("{} {}", event.topic, event.payload));
            }
            RunEvent::TopicRerouted { topic, reason, .. } => {
                self.note("TOPIC", &format!("{topic}: {reason}"))
            }
            RunEvent::AgentEnded { end, .. } if !end.success() => {
                self.note("SYS", &describe::end_words(*end))
            }
            RunEvent::GateEnded {
                name,
                result,
                duration_ms,
                output,
                ..
            } => self.gate(name, *result, *duration_ms, output),
            RunEvent::IterationEnded { outcome, .. } => self.ended(outcome, record.at),
            RunEvent::Waiting { why, wait_ms } => {
                let wait = units::duration(Duration::from_millis(*wait_ms));
                self.note(
                    "WAIT",
                    &format!("{}: waiting {wait}", describe::pause_words(*why)),
                );
            }
            RunEvent::CommandReceived { order, .. } => self.told(order),
            RunEvent::Stopping { reason } => self.note("WARN", &format!("stopping: {reason}")),
            RunEvent::Notice { level, text } => self.note(level_label(*level), text),
            // The cover tells how the run ended.
            RunEvent::RunEnded { .. }
            | RunEvent::AgentStarted { .. }
            | RunEvent::AgentEnded { .. }
            | RunEvent::GateStarted { .. }
            | RunEvent::WaitEnded
            | RunEvent::Progress { .. }
            | RunEvent::Paused
            | RunEvent::Asking => {}
        }
        None
    }

    fn turn_page(&mut self, fresh: Section) -> Option<Section> {
        self.said_something = false;
        let before = std::mem::replace(&mut self.chapter, fresh);
        Some(before).filter(Section::has_something)
    }

    fn gate(&mut self, name: &str, result: GateResult, duration_ms: u64, output: &str) {
        self.chapter.blocks.push(Block::Gate(Gate {
            name: name.to_owned(),
            result,
            took: Duration::from_millis(duration_ms),
            output: Text::new(output),
        }));
    }

    pub(super) fn finish(&mut self) -> Option<Section> {
        Some(std::mem::take(&mut self.chapter)).filter(Section::has_something)
    }

    fn ended(&mut self, outcome: &IterationOutcome, at: Timestamp) {
        let verdict = iteration_verdict(outcome, at, &TimeZone::system());
        self.chapter.blocks.push(Block::Verdict(verdict));
    }

    /// Lines under the same label are one note.
    fn note(&mut self, label: &'static str, text: &str) {
        match self.chapter.blocks.last_mut() {
            Some(Block::Note {
                label: same,
                text: before,
            }) if *same == label => {
                before.push("\n");
                before.push(text.trim_end_matches('\n'));
            }
            _ => self.chapter.blocks.push(Block::Note {
                label,
                text: Text::new(text.trim_end_matches('\n')),
            }),
        }
    }

    fn told(&mut self, order: &Command) {
        match order {
            Command::Message { text } => self.note("YOU", text),
            Command::Pause => self.note("YOU", "pause"),
            Command::Resume => self.note("YOU", "go on"),
            Command::Wake => self.note("YOU", "wait no longer"),
            Command::StopIteration => self.note("YOU", "stop this iteration"),
        }
    }

    fn transcript(&mut self, event: &TranscriptEvent) {
        match event {
            TranscriptEvent::Text {
                tag,
                text,
                flow,
                parent,
            } => self.said(*tag, text, *flow, parent.is_some()),
            TranscriptEvent::ToolStart { tool } => self.tool_began(tool),
            TranscriptEvent::ToolOutput { tool, text } => {
                if let Some(open) = self.tool(&tool.id) {
                    open.output.push(text);
                }
            }
            TranscriptEvent::ToolEnd { tool } => {
                let (status, took) = (tool.status, tool.duration_ms.map(Duration::from_millis));
                if let Some(open) = self.tool(&tool.id) {
                    (open.status, open.took) = (Some(status), took);
                }
            }
            TranscriptEvent::Usage { usage: _ } => {}
            TranscriptEvent::Meta { meta } => self.meta(meta),
        }
    }

    fn said(&mut self, tag: Tag, text: &str, flow: Flow, nested: bool) {
        self.said_something |= tag == Tag::Ai && !nested && !text.trim().is_empty();
        if flow != Flow::Message
            && let Some(Block::Said {
                tag: same,
                text: before,
                nested: same_depth,
            }) = self.chapter.blocks.last_mut()
            && (*same, *same_depth) == (tag, nested)
        {
            if flow == Flow::Line {
                before.push("\n");
            }
            return before.push(text);
        }
        if !text.is_empty() {
            let text = Text::new(text);
            self.chapter.blocks.push(Block::Said { tag, text, nested });
        }
    }

    fn tool_began(&mut self, tool: &ToolStart) {
        let input = tool.input.as_ref();
        self.chapter.blocks.push(Block::Tool(Tool {
            id: tool.id.clone(),
            name: tool.name.clone(),
            about: input
                .map(|input| first_argument(input, &self.workspace))
                .unwrap_or_default(),
            input: Text::new(&input.map(readable).unwrap_or_default()),
            nested: tool.parent.is_some(),
            ..Tool::default()
        }));
    }

    fn tool(&mut self, id: &str) -> Option<&mut Tool> {
        self.chapter
            .blocks
            .iter_mut()
            .rev()
            .find_map(|block| match block {
                Block::Tool(tool) if tool.id == id => Some(tool),
                _ => None,
            })
    }

    fn meta(&mut self, meta: &Meta) {
        match meta {
            Meta::Finished { text: Some(text), .. } if !self.said_something => {
                self.said(Tag::Ai, text, Flow::Message, false);
            }
            Meta::Error { class, message, .. } => {
                self.note("ERROR", &format!("{}: {message}", describe::error_words(*class)));
            }
            Meta::Retry { attempt, message, .. } => {
                self.note("SYS", &format!("the agent tries again ({attempt}): {message}"));
            }
            Meta::Plan { items } => {
                let line = |status, text: &str| match status {
                    PlanStatus::Pending => format!("· {text}"),
                    PlanStatus::Active => format!("▸ {text}"),
                    PlanStatus::Done => format!("✓ {text}"),
                };
                let lines: Vec<String> = items.iter().map(|item| line(item.status, &item.text)).collect();
                self.chapter.blocks.push(Block::Note {
                    label: "PLAN",
                    text: Text::new(&lines.join("\n")),
                });
            }
            Meta::PermissionDenied { tool } => self.note("WARN", &format!("{tool} was not allowed")),
            Meta::Session { .. }
            | Meta::Finished { .. }
            | Meta::RateLimit { .. }
            | Meta::FileChange { .. }
            | Meta::ParseError { .. }
            | Meta::Cut { .. }
            | Meta::Other(_) => {}
        }
    }
}

impl Section {
    fn has_something(&self) -> bool {
        self.iteration.is_some() || !self.blocks.is_empty()
    }

    /// `Iteration 3 · attempt 2 · reviewer`
    pub(super) fn title(&self) -> String {
        let Some((iteration, attempt)) = self.iteration else {
            return "Before the first iteration".to_owned();
        };
        let attempt = (attempt > 1).then(|| format!(" · attempt {attempt}"));
        let hat = self.hat.as_ref().map(|hat| format!(" · {hat}"));
        format!(
            "Iteration {iteration}{}{}",
            attempt.unwrap_or_default(),
            hat.unwrap_or_default()
        )
    }
}

/// A call's input for a reader: a field a line, texts as they are.
fn readable(input: &Json) -> String {
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

fn level_label(level: Level) -> &'static str {
    match level {
        Level::Info => "NOTE",
        Level::Warning => "WARN",
        Level::Error => "ERROR",
    }
}

/// How a call ended, as a mark and figures: `✓ 12ms`.
pub(super) fn tool_end(tool: &Tool) -> (&'static str, String) {
    let mark = match tool.status {
        Some(ToolStatus::Ok) => "✓",
        Some(ToolStatus::Fail) => "✗",
        Some(ToolStatus::Unknown) | None => "·",
    };
    (mark, tool.took.map(units::duration).unwrap_or_default())
}
