//! What the screen knows of a run: a fold over its records, pure, bounded, and cheap to share: a copy for the one
//! who draws is a handful of pointers, so that drawing never holds up what happens.

mod block;
mod meta;
mod notes;
mod transcript;

pub(super) use block::{Block, Body, Gate, Note, Said, Tool, ToolState};
pub(super) use transcript::{Setting, Transcript};

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use jiff::{Timestamp, tz::TimeZone};

use super::run_files::Attempt;
use crate::event::{
    Command, IterationOutcome, Meta, Pause, Record, Resumption, RunEvent, RunHeader, RunOutcome,
    TranscriptEvent, Usage, UsageScope,
};
use crate::ui::{Tone, iteration_verdict, units};

/// Events beyond this many are in the journal only.
const MOST_EVENTS: usize = 2000;

#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) header: Option<Arc<RunHeader>>,
    pub(super) setting: Setting,
    pub(super) started: Timestamp,
    pub(super) activity: Activity,
    /// It was told to pause, and has not been told to go on.
    pub(super) pausing: bool,
    /// Every try of every iteration, in order.
    pub(super) entries: Arc<Vec<Entry>>,
    /// The transcript of the newest one. The others are read back when somebody wants to see them.
    pub(super) transcript: Arc<Transcript>,
    pub(super) events: Arc<VecDeque<Event>>,
    /// What the ended iterations used.
    used: Usage,
    session: Session,
}

/// What the run is doing.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Activity {
    Starting,
    Working {
        since: Timestamp,
    },
    Gate {
        name: Arc<str>,
        since: Timestamp,
    },
    Waiting {
        why: Pause,
        until: Timestamp,
    },
    /// Until the user lets it go on.
    Paused {
        since: Timestamp,
    },
    /// The user is asked whether it is to go on.
    Asking {
        since: Timestamp,
    },
    Stopping {
        since: Timestamp,
    },
    Ended {
        outcome: RunOutcome,
        took: Duration,
    },
    /// Its process is gone, and left no word about the end.
    Lost,
}

/// One try of one iteration, as it stands in the list.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) which: Attempt,
    pub(super) hat: Option<String>,
    pub(super) model: Option<String>,
    pub(super) started: Timestamp,
    /// The records that belong to it.
    pub(super) first_seq: u64,
    pub(super) last_seq: u64,
    pub(super) usage: Usage,
    pub(super) tool_calls: u64,
    pub(super) end: Option<End>,
}

#[derive(Debug, Clone)]
pub(super) struct End {
    pub(super) mark: &'static str,
    pub(super) tone: Tone,
    pub(super) took: Duration,
}

/// Something for the list of events.
#[derive(Debug, Clone)]
pub(super) struct Event {
    pub(super) id: u64,
    pub(super) at: Timestamp,
    pub(super) note: Note,
}

#[derive(Debug, Clone, Default)]
struct Session {
    id: String,
    before: Usage,
    latest: Usage,
}

impl State {
    pub(super) fn new(zone: TimeZone) -> Self {
        Self {
            header: None,
            setting: Setting {
                workspace: Arc::from(""),
                zone,
            },
            started: Timestamp::UNIX_EPOCH,
            activity: Activity::Starting,
            pausing: false,
            entries: Arc::default(),
            transcript: Arc::default(),
            events: Arc::default(),
            used: Usage::default(),
            session: Session::default(),
        }
    }

    /// What was used so far, the running iteration included.
    pub(super) fn used(&self) -> Usage {
        let mut used = self.used.clone();
        if let Some(entry) = self.entries.last().filter(|entry| entry.end.is_none()) {
            used.add(&entry.usage);
        }
        used
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.activity, Activity::Ended { .. } | Activity::Lost)
    }

    /// Whether there is an iteration that could be stopped.
    pub(super) fn is_working(&self) -> bool {
        matches!(self.activity, Activity::Working { .. } | Activity::Gate { .. })
    }

    /// Whoever drove the run is gone.
    pub(super) fn lose(&mut self) {
        if !self.is_over() {
            self.activity = Activity::Lost;
        }
    }

    /// Folds one record in.
    pub(super) fn apply(&mut self, record: &Record) {
        let at = record.at;
        match &record.event {
            RunEvent::RunStarted(header) => self.run_started(header, at),
            RunEvent::RunResumed(resumption) => self.run_resumed(resumption, at),
            RunEvent::IterationStarted {
                iteration,
                attempt,
                hat,
                ..
            } => {
                let which = Attempt {
                    iteration: *iteration,
                    attempt: *attempt,
                };
                self.iteration_started(which, hat.clone(), record);
            }
            RunEvent::Transcript { event, .. } => self.count(event),
            RunEvent::GateStarted { name, .. } => {
                self.activity = Activity::Gate {
                    name: Arc::from(name.as_str()),
                    since: at,
                };
            }
            RunEvent::GateEnded { .. } => self.activity = Activity::Working { since: at },
            RunEvent::IterationEnded {
                outcome,
                duration_ms,
                usage,
                ..
            } => {
                self.iteration_ended(outcome, *duration_ms, usage, at);
            }
            RunEvent::Waiting { why, wait_ms } => {
                let until = notes::later(at, Duration::from_millis(*wait_ms));
                self.activity = Activity::Waiting { why: *why, until };
            }
            RunEvent::WaitEnded => self.wait_ended(),
            RunEvent::CommandReceived { order, .. } => self.told(order),
            RunEvent::Paused => self.activity = Activity::Paused { since: at },
            RunEvent::Asking => self.activity = Activity::Asking { since: at },
            RunEvent::Stopping { .. } => self.activity = Activity::Stopping { since: at },
            RunEvent::RunEnded {
                outcome, duration_ms, ..
            } => {
                self.activity = Activity::Ended {
                    outcome: outcome.clone(),
                    took: Duration::from_millis(*duration_ms),
                };
            }
            RunEvent::AgentStarted { .. }
            | RunEvent::Stderr { .. }
            | RunEvent::MarkerIgnored { .. }
            | RunEvent::Topic { .. }
            | RunEvent::TopicRerouted { .. }
            | RunEvent::Progress { .. }
            | RunEvent::AgentEnded { .. }
            | RunEvent::Notice { .. } => {}
        }
        Arc::make_mut(&mut self.transcript).apply(record, &self.setting);
        self.remember(record);
    }

    fn run_started(&mut self, header: &RunHeader, at: Timestamp) {
        self.setting.workspace = Arc::from(header.workspace.as_str());
        // A run that goes on after an end counts from its first beginning.
        if self.header.is_none() {
            self.started = at;
        }
        self.header = Some(Arc::new(header.clone()));
        self.activity = Activity::Starting;
    }

    /// The time in between does not count, and neither does what was left unfinished.
    fn run_resumed(&mut self, resumption: &Resumption, at: Timestamp) {
        let paused_since = self.events.back().map(|last| last.at);
        let missing = self.header.is_none();
        self.run_started(&resumption.header, at);
        if let Some(since) = paused_since.filter(|_| !missing) {
            self.started = notes::later(self.started, units::since(since, at));
        }
        self.used = resumption.usage.clone();
        self.pausing = false;
    }

    fn wait_ended(&mut self) {
        if let Activity::Paused { .. } | Activity::Asking { .. } = self.activity {
            self.pausing = false;
        }
        self.activity = Activity::Starting;
    }

    fn told(&mut self, order: &Command) {
        match order {
            Command::Pause => self.pausing = true,
            Command::Resume => self.pausing = false,
            Command::Message { .. } | Command::Wake | Command::StopIteration => {}
        }
    }

    fn iteration_started(&mut self, which: Attempt, hat: Option<String>, record: &Record) {
        self.session.before = self.session.latest.clone();
        self.activity = Activity::Working { since: record.at };
        self.transcript = Arc::default();
        // What happens between two iterations belongs to the one before.
        self.change_entry(|entry| entry.last_seq = record.seq.saturating_sub(1));
        Arc::make_mut(&mut self.entries).push(Entry {
            which,
            hat,
            model: None,
            started: record.at,
            first_seq: record.seq,
            last_seq: record.seq,
            usage: Usage::default(),
            tool_calls: 0,
            end: None,
        });
    }

    fn iteration_ended(
        &mut self,
        outcome: &IterationOutcome,
        duration_ms: u64,
        usage: &Usage,
        at: Timestamp,
    ) {
        let verdict = iteration_verdict(outcome, at, &self.setting.zone);
        self.used.add(usage);
        self.change_entry(|entry| {
            entry.usage.clone_from(usage);
            entry.end = Some(End {
                mark: verdict.mark,
                tone: verdict.tone,
                took: Duration::from_millis(duration_ms),
            });
        });
    }

    /// Figures of the running iteration.
    fn count(&mut self, event: &TranscriptEvent) {
        match event {
            TranscriptEvent::Usage { usage } => {
                let session = usage.since(&self.session.before);
                if usage.scope == UsageScope::Session {
                    self.session.latest = (**usage).clone();
                }
                self.change_entry(|entry| match usage.scope {
                    UsageScope::Step => entry.usage.add(usage),
                    UsageScope::Iteration => entry.usage = (**usage).clone(),
                    UsageScope::Session => entry.usage = session,
                });
            }
            TranscriptEvent::ToolStart { .. } => self.change_entry(|entry| entry.tool_calls += 1),
            TranscriptEvent::Meta {
                meta: Meta::Session {
                    session_id, model, ..
                },
            } => {
                if self.session.id != *session_id {
                    self.session = Session {
                        id: session_id.clone(),
                        ..Session::default()
                    };
                }
                if let Some(model) = model {
                    self.change_entry(|entry| entry.model = Some(model.clone()));
                }
            }
            TranscriptEvent::Text { .. }
            | TranscriptEvent::ToolOutput { .. }
            | TranscriptEvent::ToolEnd { .. }
            | TranscriptEvent::Meta { .. } => {}
        }
    }

    fn remember(&mut self, record: &Record) {
        let note = notes::of_course(&record.event).or_else(|| {
            let gates = &self.transcript.passed_gates;
            notes::of_run(&record.event, record.at, &self.setting.zone, gates)
        });
        let Some(note) = note else { return };
        let events = Arc::make_mut(&mut self.events);
        if events.len() >= MOST_EVENTS {
            events.pop_front();
        }
        events.push_back(Event {
            id: record.seq,
            at: record.at,
            note,
        });
    }

    fn change_entry(&mut self, act: impl FnOnce(&mut Entry)) {
        if self.entries.is_empty() {
            return;
        }
        if let Some(entry) = Arc::make_mut(&mut self.entries).last_mut() {
            act(entry);
        }
    }
}
