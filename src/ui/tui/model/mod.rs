//! The state of a run as the TUI shows it: a pure, bounded fold over its records.
//!
//! A clone costs a few reference counts, so the render thread works on a snapshot and never blocks the fold.

mod attempt;
mod block;
mod notes;
mod transcript;

pub(super) use attempt::{AttemptChanges, AttemptEnd, AttemptEntry, EarlierTranscripts};
pub(super) use block::{
    BlockBody, GateBlock, Note, OutputExcerpt, TextBlock, ToolCall, ToolState, TranscriptBlock,
};
pub(super) use transcript::{Transcript, TranscriptContext};

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use jiff::{Timestamp, tz::TimeZone};

use super::run_files::AttemptId;
use crate::event::{
    Command, Detail, IterationOutcome, Meta, Record, Resumption, RunEvent, RunHeader, RunOutcome,
    SnapshotMoment, SnapshotRecord, TranscriptEvent, Usage, later, pause_label,
};
use crate::ui::{iteration_verdict, units};

/// Older events are only in the journal.
const MAX_EVENTS: usize = 2000;

#[derive(Debug, Clone)]
pub(super) struct TuiState {
    pub(super) header: Option<Arc<RunHeader>>,
    pub(super) context: TranscriptContext,
    pub(super) started: Timestamp,
    pub(super) activity: RunActivity,
    /// The user requested a pause and has not resumed the run.
    pub(super) pausing: bool,
    /// Every attempt of every iteration, in order.
    pub(super) entries: Arc<Vec<AttemptEntry>>,
    /// What happened before the first attempt.
    pub(super) prelude: Arc<Transcript>,
    /// Transcripts of earlier attempts. Those that do not fit in memory are read from the journal on demand.
    pub(super) earlier: Arc<EarlierTranscripts>,
    /// The transcript of the newest attempt.
    pub(super) transcript: Arc<Transcript>,
    /// The names of the first and of the newest snapshot.
    pub(super) snapshots: [Option<Arc<str>>; 2],
    pub(super) events: Arc<VecDeque<EventLine>>,
    /// The number of attempts of which only some records are known, because an earlier process drove them.
    partial: usize,
    /// Usage of the ended iterations.
    used: Usage,
}

/// The current activity of the run.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RunActivity {
    Starting,
    Working {
        since: Timestamp,
    },
    Gate {
        name: Arc<str>,
        since: Timestamp,
    },
    Waiting {
        /// The reason in words.
        why: Arc<str>,
        /// `None` if it is unknown how long the wait takes.
        until: Option<Timestamp>,
    },
    /// The agent asked the user a question.
    Asked {
        since: Timestamp,
    },
    /// Paused until the user resumes it.
    Paused {
        since: Timestamp,
    },
    /// Waiting for the user to confirm the next iteration.
    AwaitingConfirmation {
        since: Timestamp,
    },
    Stopping {
        since: Timestamp,
    },
    Ended {
        outcome: RunOutcome,
        took: Duration,
    },
    /// The process that drove the run died without recording an end.
    Died,
}

/// A line of the events tab.
#[derive(Debug, Clone)]
pub(super) struct EventLine {
    pub(super) id: u64,
    pub(super) at: Timestamp,
    pub(super) note: Note,
}

impl TuiState {
    pub(super) fn new(zone: TimeZone) -> Self {
        Self {
            header: None,
            context: TranscriptContext {
                workspace: Arc::from(""),
                zone,
            },
            started: Timestamp::UNIX_EPOCH,
            activity: RunActivity::Starting,
            pausing: false,
            entries: Arc::default(),
            prelude: Arc::default(),
            earlier: Arc::default(),
            transcript: Arc::default(),
            snapshots: [None, None],
            events: Arc::default(),
            partial: 0,
            used: Usage::default(),
        }
    }

    /// Applies a record of an earlier process of the same run. The agent's output is not among them.
    pub(super) fn backfill(&mut self, record: &Record) {
        self.apply(record);
        self.partial = self.entries.len();
    }

    /// Usage so far, including the running iteration.
    pub(super) fn used(&self) -> Usage {
        let mut used = self.used.clone();
        if let Some(entry) = self.entries.last().filter(|entry| entry.end.is_none()) {
            used.add(&entry.usage);
        }
        used
    }

    /// The transcript of an attempt, if it is in memory.
    pub(super) fn transcript_of(&self, index: usize) -> Option<&Transcript> {
        if index + 1 == self.entries.len() {
            return Some(&self.transcript);
        }
        self.earlier.get(index)
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.activity, RunActivity::Ended { .. } | RunActivity::Died)
    }

    /// Whether an iteration is running that can be stopped.
    pub(super) fn is_working(&self) -> bool {
        matches!(
            self.activity,
            RunActivity::Working { .. } | RunActivity::Gate { .. }
        )
    }

    /// Marks the run as died, unless it has ended.
    pub(super) fn mark_died(&mut self) {
        if !self.is_over() {
            self.activity = RunActivity::Died;
        }
    }

    /// Applies one record.
    pub(super) fn apply(&mut self, record: &Record) {
        let at = record.at;
        match &record.event {
            RunEvent::RunStarted(header) => self.run_started(header, at),
            RunEvent::RunResumed(resumption) => self.run_resumed(resumption, at),
            RunEvent::IterationStarted {
                iteration,
                attempt,
                hat,
                agent,
                ..
            } => {
                let id = AttemptId {
                    iteration: *iteration,
                    attempt: *attempt,
                };
                self.iteration_started(id, [hat.clone(), agent.clone()], record);
            }
            RunEvent::Transcript { event, .. } => self.apply_transcript_event(event),
            RunEvent::GateStarted { .. } | RunEvent::GateEnded { .. } | RunEvent::ReviewStarted { .. } => {
                self.gate(&record.event, at);
            }
            RunEvent::Snapshot(snapshot) => self.snapshot_taken(snapshot),
            RunEvent::IterationEnded {
                outcome,
                duration_ms,
                usage,
                ..
            } => {
                self.iteration_ended(outcome, *duration_ms, usage, at);
            }
            RunEvent::Waiting { why, wait_ms, reason } => {
                let until = (*wait_ms > 0).then(|| later(at, Duration::from_millis(*wait_ms)));
                let why = Arc::from(reason.as_deref().unwrap_or_else(|| pause_label(*why)));
                self.activity = RunActivity::Waiting { why, until };
            }
            RunEvent::WaitEnded => self.wait_ended(),
            RunEvent::CommandReceived { command: order, .. } => self.command_received(order),
            RunEvent::Paused => self.activity = RunActivity::Paused { since: at },
            RunEvent::QuestionAsked { .. } => self.activity = RunActivity::Asked { since: at },
            RunEvent::Asking => self.activity = RunActivity::AwaitingConfirmation { since: at },
            RunEvent::Stopping { .. } => self.activity = RunActivity::Stopping { since: at },
            RunEvent::RunEnded {
                outcome, duration_ms, ..
            } => {
                self.activity = RunActivity::Ended {
                    outcome: outcome.clone(),
                    took: Duration::from_millis(*duration_ms),
                };
            }
            // All others only add lines.
            _ => {}
        }
        Arc::make_mut(&mut self.transcript).apply(record, &self.context);
        self.add_event_line(record);
    }

    fn gate(&mut self, event: &RunEvent, at: Timestamp) {
        match event {
            RunEvent::GateStarted { name, .. } | RunEvent::ReviewStarted { gate: name, .. } => {
                self.activity = RunActivity::Gate {
                    name: Arc::from(name.as_str()),
                    since: at,
                };
            }
            RunEvent::GateEnded {
                name,
                result,
                details,
                ..
            } => {
                self.activity = RunActivity::Working { since: at };
                let failed_tests = details.report.as_ref().map_or(0, |report| report.failed);
                self.update_entry(|entry| entry.gate_ended(name, *result, failed_tests));
            }
            _ => {}
        }
    }

    fn run_started(&mut self, header: &RunHeader, at: Timestamp) {
        self.context.workspace = Arc::from(header.workspace.as_str());
        // The elapsed time of a resumed run counts from its first start.
        if self.header.is_none() {
            self.started = at;
        }
        self.header = Some(Arc::new(header.clone()));
        self.activity = RunActivity::Starting;
    }

    /// Excludes the time between the two processes and the usage of the unfinished iteration.
    fn run_resumed(&mut self, resumption: &Resumption, at: Timestamp) {
        let stopped_at = self.events.back().map(|last| last.at);
        let first_record = self.header.is_none();
        self.run_started(&resumption.header, at);
        if let Some(since) = stopped_at.filter(|_| !first_record) {
            self.started = later(self.started, units::since(since, at));
        }
        self.used = resumption.usage.clone();
        self.pausing = false;
    }

    fn wait_ended(&mut self) {
        if let RunActivity::Paused { .. }
        | RunActivity::Asked { .. }
        | RunActivity::AwaitingConfirmation { .. } = self.activity
        {
            self.pausing = false;
        }
        self.activity = RunActivity::Starting;
    }

    fn command_received(&mut self, order: &Command) {
        match order {
            Command::Pause => self.pausing = true,
            Command::Resume => self.pausing = false,
            Command::Message { .. }
            | Command::Publish { .. }
            | Command::AnswerQuestion { .. }
            | Command::Wake
            | Command::StopIteration
            | Command::Stop { .. }
            | Command::Kill
            | Command::Answer { .. } => {}
        }
    }

    fn iteration_started(&mut self, id: AttemptId, [hat, agent]: [Option<String>; 2], record: &Record) {
        self.activity = RunActivity::Working { since: record.at };
        let before = std::mem::take(&mut self.transcript);
        match self.entries.len().checked_sub(1) {
            None => self.prelude = before,
            Some(index) if index < self.partial => {}
            Some(index) => Arc::make_mut(&mut self.earlier).push(index, before),
        }
        // Records between two iterations belong to the earlier one.
        self.update_entry(|entry| entry.last_seq = record.seq.saturating_sub(1));
        let entry = AttemptEntry::new(id, [hat, agent], record);
        Arc::make_mut(&mut self.entries).push(entry);
    }

    /// The changes of an attempt are those since the snapshot before it.
    fn snapshot_taken(&mut self, snapshot: &SnapshotRecord) {
        let id: Arc<str> = Arc::from(snapshot.id.as_str());
        let [first, last] = &mut self.snapshots;
        let before = last.replace(Arc::clone(&id));
        first.get_or_insert(id);
        if let (SnapshotMoment::End, Some(before)) = (snapshot.moment, before) {
            let changes = Arc::new(AttemptChanges::new(before, snapshot));
            self.update_entry(|entry| entry.changes = Some(changes));
        }
    }

    fn iteration_ended(
        &mut self,
        outcome: &IterationOutcome,
        duration_ms: u64,
        usage: &Usage,
        at: Timestamp,
    ) {
        let verdict = iteration_verdict(outcome, at, &self.context.zone);
        self.used.add(usage);
        self.update_entry(|entry| {
            entry.usage.clone_from(usage);
            entry.end = Some(AttemptEnd {
                mark: verdict.mark,
                tone: verdict.tone,
                reason: entry.reason(outcome),
                took: Duration::from_millis(duration_ms),
            });
        });
    }

    /// Updates usage, tool calls and model of the running iteration.
    fn apply_transcript_event(&mut self, event: &TranscriptEvent) {
        match event {
            TranscriptEvent::Usage { usage } => {
                self.update_entry(|entry| entry.usage.accumulate(usage));
            }
            TranscriptEvent::ToolStart { .. } => self.update_entry(|entry| entry.tool_calls += 1),
            TranscriptEvent::Meta {
                meta: Meta::Session {
                    model: Some(model), ..
                },
            } => self.update_entry(|entry| entry.model = Some(model.clone())),
            TranscriptEvent::Text { .. }
            | TranscriptEvent::ToolOutput { .. }
            | TranscriptEvent::ToolEnd { .. }
            | TranscriptEvent::Meta { .. } => {}
        }
    }

    fn add_event_line(&mut self, record: &Record) {
        if let RunEvent::Transcript { .. } = record.event {
            return;
        }
        let context = self.context.describe(record.at, &self.transcript.passed_gates);
        let description = record.event.describe(&context);
        let Some(note) = description
            .filter(|description| description.detail <= Detail::Lifecycle)
            .map(|description| notes::note(&description))
        else {
            return;
        };
        let events = Arc::make_mut(&mut self.events);
        if events.len() >= MAX_EVENTS {
            events.pop_front();
        }
        events.push_back(EventLine {
            id: record.seq,
            at: record.at,
            note,
        });
    }

    fn update_entry(&mut self, update: impl FnOnce(&mut AttemptEntry)) {
        if self.entries.is_empty() {
            return;
        }
        if let Some(entry) = Arc::make_mut(&mut self.entries).last_mut() {
            update(entry);
        }
    }
}
