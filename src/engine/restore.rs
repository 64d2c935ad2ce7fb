//! What a run had come to, rebuilt from its journal: a pure fold of records. An iteration without its end was cut off
//! and is run again; nothing that has ended is counted twice.

use std::time::Duration;

use jiff::Timestamp;

use super::progress::Progress;
use super::prompt::{Notes, Refused};
use super::user_messages::UserMessages;
use super::*;
use crate::event::{Meta, Record, Resumption};

/// The state of a run that is to go on.
#[derive(Debug, Default)]
pub struct RestoredRun {
    header: Option<RunHeader>,
    /// The number of the last record.
    seq: u64,
    iteration: u64,
    attempt: u64,
    iterations_ended: u64,
    failures_in_a_row: u64,
    limits_in_a_row: u64,
    spent: Usage,
    /// Used by attempts that were cut off before they could be counted; it was paid for all the same.
    abandoned: Usage,
    running: Usage,
    notes: Notes,
    next_notes: Option<Notes>,
    gate_command: String,
    letters: UserMessages,
    progress: Progress,
    hats: HatHistory,
    received: Vec<String>,
    completed: Option<String>,
    outcome: Option<RunOutcome>,
    resets_at: Option<Timestamp>,
    session: Option<String>,
    session_used: Usage,
    clock: Times,
}

/// The run's own clock: it stands still between the end of a run and its resumption.
#[derive(Debug, Default)]
struct Times {
    before: Duration,
    waited: Duration,
    began: Option<Timestamp>,
    last: Option<Timestamp>,
    resting_since: Option<Timestamp>,
}

impl Times {
    fn see(&mut self, at: Timestamp) {
        self.began.get_or_insert(at);
        self.last = self.last.max(Some(at));
    }

    fn rest(&mut self, at: Timestamp) {
        self.resting_since = Some(at);
    }

    fn wake(&mut self, at: Timestamp) {
        if let Some(since) = self.resting_since.take() {
            self.waited += between(since, at);
        }
    }

    /// Whoever wrote the journal so far has gone.
    fn stop(&mut self) {
        if let (Some(began), Some(last)) = (self.began.take(), self.last.take()) {
            self.before += between(began, last);
            self.wake(last);
        }
    }
}

fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

impl RestoredRun {
    /// Takes in the next record of the journal. Of what the agent said, only usage and sessions matter here.
    pub fn fold(&mut self, record: &Record) {
        if let RunEvent::RunResumed(_) = &record.event {
            self.cut_off();
        }
        self.seen(record.seq, record.at);
        self.letters.note(&record.event);
        self.progress.note(&record.event);
        self.hats.note(&record.event);
        match &record.event {
            RunEvent::RunStarted(header) => self.header = Some((**header).clone()),
            RunEvent::RunResumed(resumption) => {
                self.header = Some(resumption.header.clone());
                self.outcome = None;
            }
            RunEvent::IterationStarted {
                iteration, attempt, ..
            } => {
                (self.iteration, self.attempt) = (*iteration, *attempt + 1);
                (self.next_notes, self.resets_at) = (None, None);
            }
            RunEvent::Transcript { event, .. } => self.hear(event),
            RunEvent::AgentEnded { .. } => self.next_notes = Some(Notes::default()),
            RunEvent::MarkerIgnored { marker, reason, .. } => {
                let notes = self.next_notes.get_or_insert_default();
                notes.ignored = Some((marker.clone(), reason.clone().into()));
            }
            RunEvent::GateStarted { command, .. } => self.gate_command.clone_from(command),
            RunEvent::GateEnded {
                result,
                duration_ms,
                output,
                ..
            } => self.gate_ended(*result, *duration_ms, output),
            RunEvent::IterationEnded { outcome, usage, .. } => self.iteration_ended(outcome, usage),
            RunEvent::Waiting {
                why: Pause::RateLimit,
                ..
            }
            | RunEvent::Paused
            | RunEvent::Asking => self.clock.rest(record.at),
            RunEvent::WaitEnded => {
                self.clock.wake(record.at);
                self.resets_at = None;
            }
            RunEvent::CommandReceived { id, .. } => self.received.push(id.clone()),
            RunEvent::RunEnded { outcome, .. } => self.run_ended(outcome),
            RunEvent::Waiting {
                why: Pause::Cooldown | Pause::Backoff,
                ..
            }
            | RunEvent::AgentStarted { .. }
            | RunEvent::Stderr { .. }
            | RunEvent::Topic { .. }
            | RunEvent::TopicRerouted { .. }
            | RunEvent::Progress { .. }
            | RunEvent::Stopping { .. }
            | RunEvent::Notice { .. } => {}
        }
    }

    /// A record that was not looked into, except for its number and time.
    pub fn seen(&mut self, seq: u64, at: Timestamp) {
        self.seq = self.seq.max(seq);
        self.clock.see(at);
    }

    fn cut_off(&mut self) {
        self.clock.stop();
        self.abandoned.add(&std::mem::take(&mut self.running));
    }

    fn hear(&mut self, event: &TranscriptEvent) {
        match event {
            TranscriptEvent::Usage { usage } => {
                if usage.scope == UsageScope::Session {
                    self.session_used = (**usage).clone();
                }
                attempt::count(&mut self.running, usage);
            }
            TranscriptEvent::Meta {
                meta: Meta::Session { session_id, .. },
            } => self.session = Some(session_id.clone()),
            TranscriptEvent::Meta { .. }
            | TranscriptEvent::Text { .. }
            | TranscriptEvent::ToolStart { .. }
            | TranscriptEvent::ToolOutput { .. }
            | TranscriptEvent::ToolEnd { .. } => {}
        }
    }

    fn gate_ended(&mut self, result: GateResult, duration_ms: u64, output: &str) {
        if result != GateResult::Passed {
            self.next_notes.get_or_insert_default().refused = Some(Refused {
                command: self.gate_command.clone(),
                result,
                seconds: duration_ms / 1000,
                output: output.to_owned(),
            });
        }
    }

    fn iteration_ended(&mut self, outcome: &IterationOutcome, usage: &Usage) {
        self.running = Usage::default();
        self.spent.add(usage);
        let next_notes = self.next_notes.take();
        match outcome {
            // It did not come to an end of its own: the same again, with the same notes.
            IterationOutcome::Interrupted
            | IterationOutcome::AuthRequired { .. }
            | IterationOutcome::LimitReached { .. } => return,
            IterationOutcome::RateLimited { resets_at, .. } => {
                self.limits_in_a_row += 1;
                self.resets_at = *resets_at;
            }
            IterationOutcome::Completed { marker } => {
                self.completed = Some(marker.clone());
                self.next_iteration();
            }
            IterationOutcome::Continued { .. } => {
                (self.failures_in_a_row, self.limits_in_a_row) = (0, 0);
                self.next_iteration();
            }
            IterationOutcome::Skipped => self.next_iteration(),
            IterationOutcome::Failed { .. }
            | IterationOutcome::TimedOut { .. }
            | IterationOutcome::CouldNotStart { .. } => {
                self.failures_in_a_row += 1;
                self.next_iteration();
            }
        }
        if let Some(notes) = next_notes {
            self.notes = notes;
        }
        self.notes.strayed = strayed(outcome);
    }

    fn next_iteration(&mut self) {
        self.iterations_ended += 1;
        self.iteration += 1;
        self.attempt = 1;
    }

    fn run_ended(&mut self, outcome: &RunOutcome) {
        self.outcome = Some(outcome.clone());
        if let RunOutcome::Failed { .. } = outcome {
            // Whoever goes on after that wants it tried as if for the first time.
            self.failures_in_a_row = 0;
            self.progress.start_over();
        }
    }

    /// What is fixed for the run; `None` if not even that reached the disk.
    pub fn header(&self) -> Option<&RunHeader> {
        self.header.as_ref()
    }

    /// How the run ended, if it came to an end.
    pub fn outcome(&self) -> Option<&RunOutcome> {
        self.outcome.as_ref()
    }

    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The iteration that runs next.
    pub fn iteration(&self) -> u64 {
        self.iteration.max(1)
    }

    /// Attempts that left files behind, though not a word in the journal, are not overwritten.
    pub fn first_free_attempt(&mut self, attempt: u64) {
        self.attempt = self.attempt.max(attempt);
    }

    /// What was already taken out of the inbox.
    pub fn received(&self) -> &[String] {
        &self.received
    }

    /// Iterations that have ended.
    pub fn iterations(&self) -> u64 {
        self.iterations_ended
    }

    /// All that was used, attempts that were cut off and the one that runs now included.
    pub fn used(&self) -> Usage {
        let mut used = self.spent.clone();
        used.add(&self.abandoned);
        used.add(&self.running);
        used
    }

    /// How long the run has taken so far, on its own clock.
    pub fn elapsed(&self) -> Duration {
        let running = match (self.clock.began, self.clock.last) {
            (Some(began), Some(last)) => between(began, last),
            (None, _) | (_, None) => Duration::ZERO,
        };
        self.clock.before + running
    }
}

/// What an iteration changed that it may not change.
pub(super) fn strayed(outcome: &IterationOutcome) -> Vec<String> {
    match outcome {
        IterationOutcome::Failed {
            failure: Failure::OutsideAllowedPaths { files, .. },
        } => files.clone(),
        _ => Vec::new(),
    }
}

impl Engine {
    /// An engine that goes on where another one ended. Its clock goes on, too: see [`RestoredRun::elapsed`].
    pub fn resume(policy: Policy, mut restored: RestoredRun) -> Self {
        restored.cut_off();
        let mut engine = Self::new(policy);
        engine.iteration = restored.iteration();
        engine.attempt = restored.attempt.max(1);
        engine.iterations_ended = restored.iterations_ended;
        engine.failures_in_a_row = restored.failures_in_a_row;
        engine.limits_in_a_row = restored.limits_in_a_row;
        engine.spent = restored.spent;
        engine.abandoned = restored.abandoned;
        engine.waited = restored.clock.waited;
        engine.notes = restored.notes;
        engine.letters = restored.letters;
        engine.progress = restored.progress;
        engine.completed = restored.completed;
        engine.resets_at = restored.resets_at;
        engine
            .sessions
            .restore(restored.session.as_deref(), restored.session_used);
        engine.follow_hats(&restored.hats);
        engine
    }

    /// The run goes on: with its end if only that was missing, with a wait that is not over, or with an iteration.
    pub(super) fn resumed(
        &mut self,
        at: Duration,
        header: RunHeader,
        changed: Vec<String>,
        out: &mut Vec<Action>,
    ) {
        let resumption = Resumption {
            header,
            iteration: self.iteration,
            attempt: self.attempt,
            iterations: self.iterations_ended,
            usage: self.spent.clone(),
            elapsed_ms: iteration::millis(at),
            changed,
        };
        out.push(Action::Emit(RunEvent::RunResumed(Box::new(resumption))));
        if let Some(marker) = self.completed.take() {
            return self.finish(at, RunOutcome::Complete { marker }, out);
        }
        let left = self.resets_at.take().and_then(|reset| self.until(at, reset));
        match left {
            Some(left) => self.wait(at, Pause::RateLimit, left + AFTER_RESET, out),
            None => self.begin(at, out),
        }
    }
}
