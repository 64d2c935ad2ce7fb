//! Resumes a run: rebuilds its state from its journal records.
//!
//! An iteration without an `IterationEnded` record was interrupted and runs again. An ended iteration is counted once.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::progress::Progress;
use super::prompt::{GateRejection, PromptNotes, Restored};
use super::published::PublishedTopics;
use super::user_messages::UserMessages;
use super::*;
use crate::event::{ForkOrigin, Meta, Record, Resumption};

/// The state of a run that is to be resumed.
#[derive(Debug, Default)]
pub struct RestoredRun {
    header: Option<RunHeader>,
    /// The hashes of every `run.json` that the run has had.
    settings_hashes: Vec<String>,
    /// The sequence number of the last record.
    seq: u64,
    iteration: u64,
    attempt: u64,
    iterations_ended: u64,
    failures_in_a_row: u64,
    limits_in_a_row: u64,
    spent: Usage,
    /// Usage of interrupted attempts, which cost money although they are not counted.
    abandoned: Usage,
    running: Usage,
    /// Usage of the reviewers of the running iteration: of those that have ended, and of the running one.
    reviewed: Usage,
    reviewing: Usage,
    reviews: ReviewLog,
    notes: PromptNotes,
    next_notes: Option<PromptNotes>,
    gate_command: String,
    user_messages: UserMessages,
    progress: Progress,
    passed_snapshots: PassedSnapshots,
    published: PublishedTopics,
    hats: HatHistory,
    received_commands: Vec<String>,
    completed: Option<String>,
    outcome: Option<RunOutcome>,
    /// Agents that were replaced because of a usage limit, and when it resets.
    limits: BTreeMap<String, Timestamp>,
    resets_at: Option<Timestamp>,
    /// The agent of the last iteration; `None` if the run has one agent.
    agent: Option<String>,
    /// The last session of each agent.
    sessions: BTreeMap<Option<String>, RestoredSession>,
    clock: RunClock,
}

#[derive(Debug, Default)]
struct RestoredSession {
    id: Option<String>,
    /// Usage of the session before the running iteration.
    usage_before: Usage,
}

/// The run's clock; it stops between the end of a run and its resumption.
#[derive(Debug, Default)]
struct RunClock {
    before_resume: Duration,
    waited: Duration,
    started: Option<Timestamp>,
    last: Option<Timestamp>,
    paused_since: Option<Timestamp>,
}

impl RunClock {
    fn advance(&mut self, at: Timestamp) {
        self.started.get_or_insert(at);
        self.last = self.last.max(Some(at));
    }

    fn begin_pause(&mut self, at: Timestamp) {
        self.paused_since = Some(at);
    }

    fn end_pause(&mut self, at: Timestamp) {
        if let Some(since) = self.paused_since.take() {
            self.waited += between(since, at);
        }
    }

    /// Stops the clock at the last record of the process that wrote the journal.
    fn stop(&mut self) {
        if let (Some(started), Some(last)) = (self.started.take(), self.last.take()) {
            self.before_resume += between(started, last);
            self.end_pause(last);
        }
    }
}

fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

impl RestoredRun {
    /// Applies the next record of the journal. Of transcript events, only usage and sessions matter.
    pub fn fold(&mut self, record: &Record) {
        if let RunEvent::RunResumed(_) = &record.event {
            self.abandon_running();
        }
        self.skip(record.seq, record.at);
        self.fold_parts(&record.event);
        self.apply_to_notes(&record.event);
        match &record.event {
            RunEvent::RunStarted(header) => self.set_header(header),
            RunEvent::RunResumed(resumption) => {
                self.continue_as(resumption.header.forked_from.as_ref());
                self.set_header(&resumption.header);
                self.outcome = None;
            }
            RunEvent::IterationStarted {
                iteration,
                attempt,
                agent,
                ..
            } => {
                self.agent.clone_from(agent);
                (self.iteration, self.attempt) = (*iteration, *attempt + 1);
                (self.next_notes, self.resets_at) = (None, None);
            }
            RunEvent::Transcript { event, .. } => self.apply_transcript(event),
            RunEvent::IterationEnded { outcome, usage, .. } => self.iteration_ended(outcome, usage),
            RunEvent::Waiting {
                why: WaitReason::RateLimit | WaitReason::Overload | WaitReason::Quota,
                ..
            }
            | RunEvent::Paused
            | RunEvent::Asking
            | RunEvent::QuestionAsked { .. } => self.clock.begin_pause(record.at),
            RunEvent::WaitEnded => {
                self.clock.end_pause(record.at);
                self.resets_at = None;
            }
            RunEvent::AgentChanged {
                from,
                until: Some(until),
                ..
            } => {
                self.resets_at = None;
                self.limits.insert(from.clone(), *until);
            }
            RunEvent::CommandReceived { id, .. } => self.received_commands.push(id.clone()),
            RunEvent::RunEnded { outcome, .. } => self.run_ended(outcome),
            // Without effect on what is restored.
            _ => {}
        }
    }

    /// Applies an event to the parts that follow events on their own.
    fn fold_parts(&mut self, event: &RunEvent) {
        self.user_messages.apply(event);
        self.progress.apply(event);
        self.passed_snapshots.apply(event);
        self.published.apply(event);
        self.reviews.apply(event);
        self.hats.apply(event);
        match event {
            RunEvent::ReviewTranscript {
                event: TranscriptEvent::Usage { usage },
                ..
            } => self.reviewing.accumulate(usage),
            RunEvent::ReviewEnded { usage, .. } => {
                self.reviewing = Usage::default();
                self.reviewed.add(usage);
            }
            _ => {}
        }
    }

    /// Collects what the prompt of the next iteration explains.
    fn apply_to_notes(&mut self, event: &RunEvent) {
        match event {
            RunEvent::AgentEnded { .. } => self.next_notes = Some(PromptNotes::default()),
            RunEvent::MarkerIgnored { marker, reason, .. } => {
                let notes = self.next_notes.get_or_insert_default();
                notes.ignored_marker = Some((marker.clone(), reason.clone().into()));
            }
            RunEvent::GateStarted { command, .. } => self.gate_command.clone_from(command),
            RunEvent::GateEnded { .. } => {
                if let Some(rejection) = GateRejection::of(event, &self.gate_command) {
                    self.next_notes.get_or_insert_default().gate_rejection = Some(rejection);
                }
            }
            RunEvent::Snapshot(snapshot) if snapshot.moment == SnapshotMoment::Restored => {
                self.next_notes.get_or_insert_default().files_restored = Restored::Yes;
            }
            // Without effect on the next prompt.
            _ => {}
        }
    }

    /// Forgets what belongs to the run from which this one was forked: its sessions, its completion and its waits.
    pub fn continue_as(&mut self, forked_from: Option<&ForkOrigin>) {
        let known = self
            .header
            .as_ref()
            .and_then(|header| header.forked_from.as_ref());
        if forked_from == known {
            return;
        }
        self.sessions.clear();
        self.limits.clear();
        self.progress.reset();
        (self.completed, self.outcome, self.resets_at) = (None, None, None);
        (self.failures_in_a_row, self.limits_in_a_row) = (0, 0);
    }

    /// Skips a record that was not parsed, except for its number and time.
    pub fn skip(&mut self, seq: u64, at: Timestamp) {
        self.seq = self.seq.max(seq);
        self.clock.advance(at);
    }

    fn session(&mut self) -> &mut RestoredSession {
        self.sessions.entry(self.agent.clone()).or_default()
    }

    fn set_header(&mut self, header: &RunHeader) {
        self.settings_hashes.extend(header.settings_sha256.clone());
        self.header = Some(header.clone());
    }

    fn abandon_running(&mut self) {
        self.clock.stop();
        let running = std::mem::take(&mut self.running);
        self.session().usage_before.add(&running);
        self.abandoned.add(&running);
        for usage in [
            std::mem::take(&mut self.reviewed),
            std::mem::take(&mut self.reviewing),
        ] {
            self.abandoned.add(&usage);
        }
    }

    fn apply_transcript(&mut self, event: &TranscriptEvent) {
        match event {
            TranscriptEvent::Usage { usage } => self.running.accumulate(usage),
            TranscriptEvent::Meta {
                meta: Meta::Session { session_id, .. },
            } => {
                let session = self.session();
                if session.id.as_ref() != Some(session_id) {
                    *session = RestoredSession {
                        id: Some(session_id.clone()),
                        usage_before: Usage::default(),
                    };
                }
            }
            TranscriptEvent::Meta { .. }
            | TranscriptEvent::Text { .. }
            | TranscriptEvent::ToolStart { .. }
            | TranscriptEvent::ToolOutput { .. }
            | TranscriptEvent::ToolEnd { .. } => {}
        }
    }

    fn iteration_ended(&mut self, outcome: &IterationOutcome, usage: &Usage) {
        self.running = Usage::default();
        self.reviewing = Usage::default();
        // The reviewers work in sessions of their own.
        let reviewed = std::mem::take(&mut self.reviewed);
        let own = match reviewed.is_empty() {
            true => usage.clone(),
            false => usage.since(&reviewed),
        };
        self.session().usage_before.add(&own);
        self.spent.add(usage);
        let next_notes = self.next_notes.take();
        match outcome {
            // The iteration was stopped from outside: repeat it with the same notes.
            IterationOutcome::Interrupted
            | IterationOutcome::AuthRequired { .. }
            | IterationOutcome::LimitReached { .. } => return,
            IterationOutcome::RateLimited { resets_at, .. } => {
                self.limits_in_a_row += 1;
                self.resets_at = *resets_at;
            }
            IterationOutcome::Overloaded { .. } => self.limits_in_a_row += 1,
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
        self.notes.violated_paths = violated_paths(outcome);
    }

    fn next_iteration(&mut self) {
        self.iterations_ended += 1;
        self.iteration += 1;
        self.attempt = 1;
    }

    fn run_ended(&mut self, outcome: &RunOutcome) {
        self.outcome = Some(outcome.clone());
        if let RunOutcome::Failed { .. } = outcome {
            // A user who resumes a failed run wants a fresh set of retries.
            self.failures_in_a_row = 0;
            self.progress.reset();
        }
    }

    /// The run's header; `None` if it was never written.
    pub fn header(&self) -> Option<&RunHeader> {
        self.header.as_ref()
    }

    /// Whether a `run.json` with this hash belongs to the run. Runs of earlier versions have no hashes.
    pub fn knows_settings(&self, sha256: &str) -> bool {
        self.settings_hashes.is_empty() || self.settings_hashes.iter().any(|known| known == sha256)
    }

    /// The run's outcome, if it ended.
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

    /// Sets the lowest number for the next attempt, so that files of an attempt without a record are not overwritten.
    pub fn set_min_attempt(&mut self, attempt: u64) {
        self.attempt = self.attempt.max(attempt);
    }

    /// The number of ended iterations.
    pub fn iterations(&self) -> u64 {
        self.iterations_ended
    }

    /// Total usage, including interrupted attempts and the running one.
    pub fn used(&self) -> Usage {
        let mut used = self.spent.clone();
        used.add(&self.abandoned);
        used.add(&self.running);
        used.add(&self.reviewed);
        used.add(&self.reviewing);
        used
    }

    /// The run's duration so far, without the time between its end and its resumption.
    pub fn elapsed(&self) -> Duration {
        let running = match (self.clock.started, self.clock.last) {
            (Some(started), Some(last)) => between(started, last),
            (None, _) | (_, None) => Duration::ZERO,
        };
        self.clock.before_resume + running
    }
}

/// The files that an iteration changed outside the allowed paths.
pub(super) fn violated_paths(outcome: &IterationOutcome) -> Vec<String> {
    match outcome {
        IterationOutcome::Failed {
            failure: IterationFailure::OutsideAllowedPaths { files, .. },
        } => files.clone(),
        _ => Vec::new(),
    }
}

impl Engine {
    /// Creates an engine that continues a restored run. The caller's clock must start at [`RestoredRun::elapsed`].
    pub fn resume(policy: Policy, mut restored: RestoredRun) -> Self {
        restored.abandon_running();
        let mut engine = Self::new(policy);
        engine.iteration = restored.iteration();
        engine.attempt_number = restored.attempt.max(1);
        engine.iterations_ended = restored.iterations_ended;
        engine.failures_in_a_row = restored.failures_in_a_row;
        engine.limits_in_a_row = restored.limits_in_a_row;
        engine.spent = restored.spent;
        engine.spent.add(&restored.abandoned);
        engine.waited = restored.clock.waited;
        engine.notes = restored.notes;
        engine.user_messages = restored.user_messages;
        engine.restore_received(restored.received_commands);
        engine.progress = restored.progress;
        engine.passed_snapshots = restored.passed_snapshots;
        engine.published = restored.published;
        engine.reviews = restored.reviews;
        engine.completed = restored.completed;
        engine.resets_at = restored.resets_at;
        // A journal without labels belongs to a run with one agent, which another one may have replaced since.
        let first = restored.header.as_ref().map(|header| header.agent.as_str());
        let is_same_agent = first == Some(engine.policy.agents.rules[0].name.as_str());
        for (label, session) in restored.sessions {
            let agent = engine.policy.agents.find(label.as_deref());
            let agent = agent.filter(|_| label.is_some() || is_same_agent);
            if let (Some(agent), Some(id)) = (agent, session.id) {
                engine.sessions.restore(agent, &id, session.usage_before);
            }
        }
        engine.restore_hats(&restored.hats);
        engine.agent = engine.policy.agents.find(restored.agent.as_deref()).unwrap_or(0);
        for (label, until) in restored.limits {
            let until = until.duration_since(engine.policy.started_at);
            if let (Some(agent), Ok(until)) = (engine.policy.agents.find(Some(&label)), until.try_into()) {
                engine.health.limit(agent, until);
            }
        }
        engine
    }

    /// Continues the run: finishes it if only `RunEnded` is missing, else resumes a rate-limit wait or begins an
    /// iteration.
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
            attempt: self.attempt_number,
            iterations: self.iterations_ended,
            usage: self.spent.clone(),
            elapsed_ms: iteration::millis(at),
            changed,
        };
        out.push(Action::Emit(RunEvent::RunResumed(Box::new(resumption))));
        if let Some(marker) = self.completed.take() {
            return self.finish(at, RunOutcome::Complete { marker }, out);
        }
        // The caller for which the run ended at a usage limit decides when it continues.
        let left = self
            .resets_at
            .take()
            .filter(|_| self.policy.on_limit == OnLimit::Wait)
            .and_then(|reset| self.time_until_reset(at, reset));
        match left {
            Some(left) if self.falls_back_from_limit(at, left) => self.begin_iteration(at, out),
            Some(left) => {
                self.report_own_wait(at, left, out);
                self.wait_for_reset(at, left, out);
            }
            None if self.is_untouched() => self.check_gates_first(at, out),
            None => self.begin_iteration(at, out),
        }
    }
}
