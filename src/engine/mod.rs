//! The engine: a pure state machine that makes every decision of a run.
//!
//! Its entry point is `Engine::step(at, Input) -> Vec<Action>`. An [`Input`] is one thing that happened: the
//! agent printed a line, a gate exited, the user pressed Ctrl-C, a deadline passed. An [`Action`] is one thing that
//! the caller (`crate::run`) has to do next: read the prompt, launch the agent, run a gate, stop a child, emit an event.
//! The result of an action comes back later as another input.
//!
//! The engine never accesses a clock, a file, a process or git. `at` is the time since the run started. After each
//! step the caller asks for [`Engine::deadline`] and sends [`Input::Tick`] when that time has come.
//!
//! The course of a typical run:
//!
//! ```text
//! state                 input                            actions
//! New                   Started                          Emit(RunStarted), TakeSnapshot, ScanWorkspace, ReadPrompt
//! ReadingPrompt         SnapshotTaken, …, Prompt         Emit(IterationStarted), Launch
//!   agent with a shared account                          RequestPlace                  -> AwaitingPlace
//! AwaitingPlace         PlaceAnswered                    Emit(IterationStarted), Launch, or Emit(Waiting)
//! AgentRunning          AgentStarted, Transcript         Emit(AgentStarted), Emit(Transcript)
//! AgentRunning          AgentEnded                       TakeSnapshot, CheckPaths, ResolveSession
//! Inspecting            PathsChecked, SessionResolved    Emit(AgentEnded), then one of:
//!   completion marker, gates configured                  Emit(GateStarted), RunGate        -> GateRunning
//!   completion marker, no gates                          Emit(IterationEnded), RunHook     -> Ending
//!   no marker                                            Emit(IterationEnded), ReadPrompt  -> ReadingPrompt
//!   failure or usage limit                               Emit(IterationEnded, Waiting)     -> Waiting
//!   interactive agent                                    AskUser                           -> AwaitingConfirmation
//! Checkpointing         GateEnded                        ReadPrompt, if a checkpoint command is configured
//! GateRunning           GateEnded                        RunGate (next gate), Finish (all passed) or ReadPrompt
//! Waiting               Tick or Command(Wake)            Emit(WaitEnded), ReadPrompt
//! Ending                HookEnded                        Emit(RunEnded), Finish
//! ```
//!
//! A resumed run starts with `Resumed` instead of `Started`. The state `Paused` precedes an iteration when the user
//! paused the run or has to be asked whether to continue. An input that does not fit the current state is ignored, so
//! late inputs (an answer after Ctrl-C) are harmless.
//!
//! Where to look: `iteration` runs the loop above, `attempt` evaluates one run of the agent, `limits` has deadlines,
//! budgets and interrupts, `gates` checks completion, `hats` queues events and activates hats, `restore` rebuilds the
//! state from a journal.

mod attempt;
mod backoff;
mod checkpoint;
mod commands;
mod cost;
mod ending;
mod final_message;
mod gates;
mod hats;
mod health;
mod inspection;
mod interactive;
mod iteration;
mod limits;
mod marker;
mod places;
mod policy;
mod progress;
mod prompt;
mod published;
mod rate_limit_phrases;
mod reset_time;
mod restore;
mod review;
mod rollback;
mod sessions;
mod snapshots;
mod status_block;
mod test_claim;
mod topic;
mod unknown_output;
mod user_messages;
mod waits;

#[cfg(test)]
mod tests;

pub use commands::AskPolicy;
pub use ending::HookKind;
pub use hats::{HatEdge, HatError, HatFinding, HatHistory, HatSeverity, Hats, check_hats, hat_edges};
pub use interactive::InteractiveKey;
pub use marker::{Markers, StatusBlock};
pub use places::{OwnWait, PlaceAnswer, PlaceEnd};
pub use policy::{
    AgentRules, Agents, Check, EndSignal, MessageBoundaries, Policy, QuestionInstructions, QuestionRules,
    SessionSource, TranscriptFeatures, WorkspaceChecks,
};
pub use restore::RestoredRun;
pub use review::{
    GateReviewer, ReviewMaterial, ReviewerLaunch, Reviewers, SingleReview, TouchedLines,
    decide_single_review, review_answer_in,
};
pub use unknown_output::AgentVersions;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use crate::event::{
    AgentEnd, AgentIdentity, Answer, CONFIRMED_BY_USER, Command, CommandRequest, GateResult, Interrupt,
    IterationFailure, IterationOutcome, LimitReport, Meta, NoticeLevel, ProcessEnd, RunEvent, RunHeader,
    RunLimit, RunOutcome, SnapshotMoment, SnapshotRecord, TimeLimit, TranscriptEvent, Usage, UsageScope,
    WaitReason,
};
use crate::policy::{CostAvailability, Gate, OnDeclaredFailure, OnLimit, Seconds, Session, Spend, Urgency};

use attempt::{Attempt, AttemptVerdict, DISK_CHECK_INTERVAL, Evaluation, PathCheck, StopCause, StopRequest};
use backoff::Backoff;
use gates::GateRun;
use hats::HatQueue;
use health::Health;
use places::{PlaceWait, Places, SpendMoment};
use progress::Progress;
use prompt::{GateRejection, OUTPUT_BUDGET, PromptNotes, Restored};
use review::{ReviewLog, ReviewRun};
use rollback::PassedSnapshots;
use sessions::Sessions;
use snapshots::Snapshots;
use unknown_output::{Recording, UnknownCounts};
use user_messages::UserMessages;

/// Composes the prompt of a run's first iteration.
pub fn first_prompt(task: &str, policy: &Policy) -> String {
    let gates = gates::visible_commands(&policy.gates);
    let mut queue = HatQueue::new(policy.hats.clone());
    // No hat has been activated yet, so none can be exhausted.
    let _ = queue.activate_next();
    let notes = PromptNotes {
        hat: queue.prompt_section(),
        ..PromptNotes::default()
    };
    let mut prompt = prompt::compose(task, policy.prompt_rules(), &gates, &notes);
    if policy.questions.instructions == QuestionInstructions::InPrompt {
        prompt::add_question_instructions(&mut prompt);
    }
    prompt
}

/// Something that happened.
#[derive(Debug)]
pub enum Input {
    Started(Box<RunHeader>),
    /// An ended run is resumed. `changed` lists the settings that differ from the previous start.
    Resumed {
        header: Box<RunHeader>,
        changed: Vec<String>,
    },
    /// A fingerprint of the workspace before an iteration, or the reason why there is none. Precedes `Prompt`.
    WorkspaceScanned {
        fingerprint: Result<String, String>,
    },
    /// The current content of the user's prompt, or the reason why it cannot be read.
    Prompt(Result<String, String>),
    AgentStarted {
        identity: AgentIdentity,
        command: Vec<String>,
    },
    CouldNotStart {
        error: String,
    },
    /// The agent's program does not exist any more. Precedes `CouldNotStart`.
    ProgramMissing,
    /// Bytes arrived from the agent.
    OutputSeen {
        bytes: u64,
    },
    /// The free space on the disk of the project or of the run's files, whichever is less.
    DiskChecked {
        free_bytes: u64,
    },
    /// The user typed into the agent's screen. The agent has already received the key.
    KeyTyped(InteractiveKey),
    Transcript(TranscriptEvent),
    Stderr(String),
    /// The agent has ended, and so have the processes that it left running.
    AgentEnded {
        end: AgentEnd,
        swept: u64,
    },
    /// The files outside the allowed paths that the agent changed, or the reason why they are unknown.
    PathsChecked(Result<Vec<String>, String>),
    /// A snapshot was taken, or could not be taken for this reason.
    SnapshotTaken {
        moment: SnapshotMoment,
        taken: Result<Box<SnapshotRecord>, String>,
    },
    /// The files of a snapshot were restored, or could not be for this reason.
    SnapshotRestored(Result<Box<SnapshotRecord>, String>),
    /// The session that the next iteration resumes.
    SessionResolved(Option<String>),
    /// A hook has ended; the text is a problem to report.
    HookEnded(Option<String>),
    GateEnded(GateEnd),
    /// The checkout for a review is ready, or cannot be prepared for this reason.
    ReviewPrepared(Result<Box<ReviewMaterial>, String>),
    /// The files of the checkout that the reviewer changed or removed.
    ReviewChecked {
        altered: Vec<String>,
    },
    /// Whether the run may use the account of the agent now.
    PlaceAnswered(PlaceAnswer),
    /// What all runs have spent.
    SpendRead(Spend),
    /// The project after all gates have passed, or the reason why it is unknown.
    TreeChecked(Result<CheckedTree, String>),
    /// A command of the user or the system. A command with the id of an earlier one is ignored.
    Command(CommandRequest),
    /// [`Engine::deadline`] has passed.
    Tick,
}

/// The end of a gate.
#[derive(Debug, Clone, Default)]
pub struct GateEnd {
    /// `None` for a gate that could not be started.
    pub end: Option<ProcessEnd>,
    /// The output, or the reason why the gate could not be started.
    pub output: String,
    /// The contents of the gate's report file.
    pub report: Option<String>,
    /// The snapshot that the gate checked.
    pub tree: Option<String>,
    /// The protected files that differ from the start of the run.
    pub protected_changes: Vec<String>,
    /// The protected files that changed while the gate ran.
    pub altered: Vec<String>,
}

/// Which version of the protected files a gate checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateVersion {
    AsLeft,
    /// From the start of the run.
    Protected,
}

/// The project after all gates have passed.
#[derive(Debug, Clone, Default)]
pub struct CheckedTree {
    pub tree: String,
    /// The files that differ from the tree that the gates checked.
    pub changed: Vec<String>,
    /// Tests, scripts of gates and configuration files that changed since the start of the run.
    pub changed_checks: Vec<String>,
}

/// Something that the caller has to do.
#[derive(Debug, PartialEq)]
#[must_use]
pub enum Action {
    Emit(RunEvent),
    /// Fingerprint the workspace.
    ScanWorkspace,
    ReadPrompt,
    Launch {
        iteration: u64,
        attempt: u64,
        hat: Option<String>,
        /// The index of the agent in [`Agents::rules`].
        agent: usize,
        prompt: String,
        /// The id of the agent session to resume.
        session: Option<String>,
    },
    /// Record the files of the project.
    TakeSnapshot {
        iteration: u64,
        moment: SnapshotMoment,
    },
    /// Determine the free disk space.
    CheckDisk,
    /// Restore the files of a snapshot and record them.
    RestoreSnapshot {
        iteration: u64,
        id: String,
    },
    /// Compare the workspace with the last scan.
    CheckPaths,
    /// Ask the driver for the session that the next iteration resumes.
    ResolveSession {
        agent: usize,
        /// The session that the agent reported.
        reported: Option<String>,
    },
    /// Ask for a place in the account of an agent, which all runs of the user share.
    RequestPlace {
        agent: usize,
        urgency: Urgency,
    },
    /// Release the place, or end the wait for it.
    ReleasePlace {
        agent: usize,
        end: PlaceEnd,
    },
    /// Tell the other runs of the account what the agent reported about a limit.
    ReportLimit {
        agent: usize,
        report: LimitReport,
    },
    /// Tell them that this run waits for its own limit.
    ReportWait(OwnWait),
    /// Add to what all runs have spent.
    ReportSpend {
        agent: usize,
        usd: f64,
    },
    RunGate(Gate),
    /// Run the checkpoint command. Its end arrives as `GateEnded`.
    RunCheckpoint(Gate),
    /// Run a gate again, with the protected files from the start of the run.
    RunProtectedGate(Gate),
    /// Prepare a checkout for the reviewers of a gate. The snapshots are those of earlier rounds.
    PrepareReview {
        gate: Box<Gate>,
        first_round: Option<String>,
        last_round: Option<String>,
    },
    LaunchReviewer(Box<ReviewerLaunch>),
    /// Compare the checkout of the review with the snapshot.
    CheckReview,
    /// Compare the project with the snapshot that the gates checked.
    CheckTree {
        tree: Option<String>,
    },
    /// Run a command of the user in parallel with the loop.
    RunHook {
        kind: HookKind,
        event: Box<RunEvent>,
    },
    /// Write the summary of the run that ends with this event.
    WriteSummary(Box<RunEvent>),
    /// Ask the running child's process tree to exit; kill the rest after `grace`.
    Stop {
        grace: Duration,
    },
    Kill,
    /// Ask the user whether to continue.
    AskUser,
    /// Ask the user the question of the agent.
    AskQuestion,
    Finish(RunOutcome),
}

/// First and longest wait after a failure; the wait doubles in between.
const FAILURE_BACKOFF: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(300));
/// First and longest wait for a usage limit without a stated reset time; the wait doubles in between.
const UNKNOWN_RESET_BACKOFF: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(3600));
/// Safety margin after a stated reset time.
const AFTER_RESET: Duration = Duration::from_secs(1);
/// A reset time in the past counts as "just reset" up to this age, and as unknown beyond it.
const RESET_TOLERANCE: Duration = Duration::from_secs(60);
/// How many stated reset times in a row are trusted. Without a bound, an agent that always reports "try again in 1s"
/// would be retried forever at that pace.
const MAX_TRUSTED_RESETS: u64 = 3;
/// A child that is still running this long after its grace period is killed again.
const KILL_AGAIN_AFTER: Duration = Duration::from_secs(10);

/// The state of one run.
#[derive(Debug)]
pub struct Engine {
    policy: Policy,
    state: EngineState,
    /// The agent of the current iteration, or of the last one.
    agent: usize,
    iteration: u64,
    attempt_number: u64,
    /// Excludes rate-limited attempts.
    iterations_ended: u64,
    failures_in_a_row: u64,
    limits_in_a_row: u64,
    /// How many waits for the current limit the user ended early, only to reach the same limit again.
    useless_wakes: u64,
    /// Usage of all ended iterations and of attempts that a crash interrupted.
    spent: Usage,
    /// Cost warnings that have been emitted; each is emitted once.
    cost_warnings: BTreeSet<String>,
    /// Time spent in pauses and rate-limit waits; excluded from the runtime limit.
    waited: Duration,
    notes: PromptNotes,
    hat_queue: HatQueue,
    sessions: Sessions,
    /// By agent.
    unknown_output: BTreeMap<usize, UnknownCounts>,
    health: Health,
    places: Places,
    interrupted: Option<Interrupt>,
    interrupted_at: Duration,
    failure_backoff: Backoff,
    unknown_reset_backoff: Backoff,
    user_messages: UserMessages,
    progress: Progress,
    snapshots: Snapshots,
    passed_snapshots: PassedSnapshots,
    published: published::PublishedTopics,
    commands: commands::CommandState,
    keyboard: interactive::KeyboardState,
    /// Resumed runs only: the marker of an iteration that completed before `RunEnded` was written.
    completed: Option<String>,
    /// Resumed runs only: the reset time of the usage limit that the run was waiting for.
    resets_at: Option<Timestamp>,
    /// Hooks that have not ended yet.
    hooks_running: u64,
    /// How many actions of the current step have been applied to the state that is derived from events.
    applied: usize,
    /// The project when the gates had passed.
    checked_tree: Option<CheckedTree>,
    reviews: ReviewLog,
    /// The task of the last prompt, for reviewers.
    task: String,
    /// How the run ends after the iteration that is ending.
    final_outcome: Option<RunOutcome>,
}

#[derive(Debug)]
enum EngineState {
    New,
    ReadingPrompt,
    /// The account of the agent has no place for the run yet.
    AwaitingPlace(Box<PlaceWait>),
    AgentRunning(Box<Attempt>),
    /// The agent has ended; its changes are checked.
    Inspecting(Box<inspection::Inspection>),
    GateRunning(Box<GateRun>),
    /// The iteration has ended; its checkpoint is being taken.
    Checkpointing(Box<checkpoint::Checkpoint>),
    /// The files are restored after a gate has failed.
    RollingBack(Box<rollback::Rollback>),
    /// The interactive agent has exited; the user is asked whether the work is done.
    AwaitingConfirmation(Box<interactive::PendingConfirmation>),
    Waiting {
        since: Duration,
        until: Duration,
        why: WaitReason,
        /// A wake that comes earlier ends the wait at this time.
        earliest: Duration,
    },
    /// The user paused the run, is asked whether to continue, or has to answer the agent.
    Paused {
        since: Duration,
        /// When a question of the agent expires.
        expires: Option<Duration>,
    },
    /// The run ends with this event as soon as its hooks have ended.
    Ending(Box<ending::Ending>),
    Finished,
}

impl EngineState {
    /// The attempt that is being made, if any.
    fn into_attempt(self) -> Option<Attempt> {
        match self {
            Self::AgentRunning(attempt) => Some(*attempt),
            Self::Inspecting(inspection) => Some(inspection.attempt),
            Self::GateRunning(gate_run) => gate_run.into_attempt(),
            Self::RollingBack(rollback) => Some(rollback.attempt),
            Self::AwaitingConfirmation(pending) => Some(pending.attempt),
            Self::New
            | Self::ReadingPrompt
            | Self::Checkpointing(_)
            | Self::AwaitingPlace(_)
            | Self::Waiting { .. }
            | Self::Paused { .. }
            | Self::Ending(_)
            | Self::Finished => None,
        }
    }
}

impl Engine {
    pub fn new(policy: Policy) -> Self {
        let (failure, unknown_reset) = (FAILURE_BACKOFF, UNKNOWN_RESET_BACKOFF);
        Self {
            failure_backoff: Backoff::new(failure.0, failure.1, policy.seed),
            unknown_reset_backoff: Backoff::new(unknown_reset.0, unknown_reset.1, policy.seed),
            hat_queue: HatQueue::new(policy.hats.clone()),
            policy,
            state: EngineState::New,
            agent: 0,
            iteration: 0,
            attempt_number: 1,
            iterations_ended: 0,
            failures_in_a_row: 0,
            limits_in_a_row: 0,
            useless_wakes: 0,
            spent: Usage::default(),
            cost_warnings: BTreeSet::new(),
            waited: Duration::ZERO,
            notes: PromptNotes::default(),
            sessions: Sessions::default(),
            unknown_output: BTreeMap::new(),
            health: Health::default(),
            places: Places::default(),
            interrupted: None,
            interrupted_at: Duration::ZERO,
            user_messages: UserMessages::default(),
            progress: Progress::default(),
            snapshots: Snapshots::default(),
            passed_snapshots: PassedSnapshots::default(),
            published: published::PublishedTopics::default(),
            commands: commands::CommandState::default(),
            keyboard: interactive::KeyboardState::default(),
            completed: None,
            resets_at: None,
            hooks_running: 0,
            applied: 0,
            checked_tree: None,
            reviews: ReviewLog::default(),
            task: String::new(),
            final_outcome: None,
        }
    }

    /// The rules of the current agent.
    fn agent(&self) -> &AgentRules {
        &self.policy.agents.rules[self.agent]
    }

    /// The time at which [`Input::Tick`] is due, unless another input arrives first.
    pub fn deadline(&self) -> Option<Duration> {
        let runtime = self.runtime_deadline();
        match &self.state {
            EngineState::New
            | EngineState::ReadingPrompt
            | EngineState::Inspecting(_)
            | EngineState::RollingBack(_)
            | EngineState::AwaitingConfirmation(_)
            | EngineState::Finished => None,
            EngineState::AwaitingPlace(wait) => wait.ask_at,
            EngineState::Paused { expires, .. } => *expires,
            EngineState::Ending(ending) => ending.give_up,
            EngineState::Waiting {
                until,
                why: WaitReason::RateLimit | WaitReason::Overload | WaitReason::Quota,
                ..
            } => Some(*until),
            EngineState::Waiting { until, .. } => Some((*until).min(runtime)),
            EngineState::AgentRunning(attempt) => match attempt.stop_request {
                Some(stop_request) => Some(self.kill_deadline(stop_request)),
                None => attempt
                    .deadline(&self.policy.timing)
                    .map(|(when, _)| when)
                    .into_iter()
                    .chain([runtime])
                    .chain(self.checks_disk().then_some(attempt.disk_check_at))
                    .min(),
            },
            EngineState::Checkpointing(checkpoint) => match checkpoint.stop_request {
                Some(stop_request) => Some(self.kill_deadline(stop_request)),
                None => Some(checkpoint.due),
            },
            EngineState::GateRunning(gate_run) => match gate_run.stop_request {
                Some(stop_request) => Some(self.kill_deadline(stop_request)),
                None => {
                    let gate = self.policy.gates.get(gate_run.index);
                    if let (Some(review), Some(gate)) = (&gate_run.review, gate) {
                        return Some(self.review_deadline(review, gate.timeout.duration()).0);
                    }
                    let due = gate.map(|gate| gate_run.started + gate.timeout.duration());
                    Some(due.map_or(runtime, |due| runtime.min(due)))
                }
            },
        }
    }

    fn kill_deadline(&self, stop_request: StopRequest) -> Duration {
        stop_request.at + self.policy.timing.stop_grace + KILL_AGAIN_AFTER
    }

    /// Processes one input and returns the actions to execute, in order.
    pub fn step(&mut self, at: Duration, input: Input) -> Vec<Action> {
        let mut out = Vec::new();
        self.step_into(at, input, &mut out);
        out
    }

    /// Like `step`, but appends to a caller-owned buffer.
    pub fn step_into(&mut self, at: Duration, input: Input, out: &mut Vec<Action>) {
        self.applied = out.len();
        match input {
            Input::Started(header) => {
                out.push(Action::Emit(RunEvent::RunStarted(header)));
                self.warn_about_unenforceable_budget(out);
                self.iteration = 1;
                self.check_gates_first(at, out);
            }
            Input::Resumed { header, changed } => self.resumed(at, *header, changed, out),
            Input::WorkspaceScanned { fingerprint } => self.workspace_scanned(at, fingerprint, out),
            Input::Prompt(prompt) => self.prompt_read(at, prompt, out),
            Input::AgentStarted { identity, command } => {
                if let EngineState::AgentRunning(_) = &self.state {
                    out.push(Action::Emit(RunEvent::AgentStarted {
                        iteration: self.iteration,
                        pid: identity.pid(),
                        identity: Some(identity),
                        command,
                    }));
                }
            }
            Input::CouldNotStart { error } => self.could_not_start(at, error, out),
            Input::ProgramMissing => self.program_missing(),
            Input::OutputSeen { bytes } => self.output_seen(at, bytes, out),
            Input::DiskChecked { free_bytes } => self.disk_checked(at, free_bytes, out),
            Input::KeyTyped(key) => self.key_typed(at, key, out),
            Input::Transcript(event) => self.transcript_event(at, event, out),
            Input::Stderr(text) => self.stderr_line(text, out),
            Input::AgentEnded { end, swept } => self.agent_ended(at, end, swept, out),
            Input::PathsChecked(violations) => self.paths_checked(at, violations, out),
            Input::SnapshotTaken { moment, taken } => self.snapshot_taken(at, moment, taken, out),
            Input::SnapshotRestored(restored) => self.snapshot_restored(at, restored, out),
            Input::SessionResolved(id) => self.session_resolved(at, id.as_deref(), out),
            Input::PlaceAnswered(answer) => self.place_answered(at, answer, out),
            Input::SpendRead(spend) => self.spend_read(at, spend, out),
            Input::HookEnded(problem) => self.hook_ended(problem, out),
            Input::GateEnded(ended) => self.gate_ended(at, ended, out),
            Input::ReviewPrepared(prepared) => self.review_prepared(at, prepared, out),
            Input::ReviewChecked { altered } => self.review_checked(at, &altered, out),
            Input::TreeChecked(checked) => self.tree_checked(at, checked, out),
            Input::Command(request) => self.command_received(at, request, out),
            Input::Tick => self.tick(at, out),
        }
        self.release_unused_place(out);
        self.apply_emitted(out);
        self.run_hooks(out);
        self.end_if_hooks_ended(out);
    }

    fn could_not_start(&mut self, at: Duration, error: String, out: &mut Vec<Action>) {
        match &self.state {
            EngineState::AgentRunning(_) => {
                self.end_iteration(at, IterationOutcome::CouldNotStart { error }, out);
            }
            EngineState::GateRunning(_) => self.reviewer_could_not_start(at, &error, out),
            _ => {}
        }
    }

    fn stderr_line(&mut self, text: String, out: &mut Vec<Action>) {
        match &mut self.state {
            EngineState::AgentRunning(attempt) => {
                attempt.push_stderr_line(&text);
                let iteration = self.iteration;
                out.push(Action::Emit(RunEvent::Stderr { iteration, text }));
            }
            EngineState::GateRunning(_) => self.reviewer_stderr(&text),
            _ => {}
        }
    }

    /// Updates the state that is derived from emitted events, so that a resumed run can rebuild it from the journal.
    fn apply_emitted(&mut self, actions: &[Action]) {
        for action in &actions[self.applied..] {
            if let Action::Emit(event) = action {
                self.user_messages.apply(event);
                self.progress.apply(event);
                self.passed_snapshots.apply(event);
                self.published.apply(event);
                self.reviews.apply(event);
            }
        }
        self.applied = actions.len();
    }
}
