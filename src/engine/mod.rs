//! Judgement: what happened in, what to do out. A pure state machine; it never reads a clock, a disk or a process.
//! Time is an argument: the duration since the run began.

mod attempt;
mod backoff;
mod commands;
mod cost;
mod final_message;
mod hats;
mod interactive;
mod iteration;
mod limits;
mod marker;
mod policy;
mod prices;
mod progress;
mod prompt;
mod rate_limit_phrases;
mod reset_time;
mod restore;
mod sessions;
mod topic;
mod user_messages;

#[cfg(test)]
mod tests;

pub use commands::{Answer, Asking};
pub use hats::{Edge, HatError, HatFinding, HatHistory, HatRule, HatSeverity, Hats, check, edges};
pub use interactive::Key;
pub use marker::{Markers, Placement};
pub use policy::{
    CostFigures, CostRules, Ending, GateRule, Limits, Messages, OnDeclaredFailure, Policy, Reading,
    SessionRule, Timing,
};
pub use prices::{Price, Prices};
pub use restore::RestoredRun;

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

use crate::event::{
    Command, Failure, GateResult, Interrupt, IterationOutcome, Level, Limit, Meta, Pause, ProcessEnd,
    RunEvent, RunHeader, RunOutcome, TimeLimit, TranscriptEvent, USERS_WORD, Usage, UsageScope,
};

use attempt::{Attempt, Judged, StopCause, Stopping, Verdict};
use backoff::Backoff;
use hats::HatQueue;
use progress::Progress;
use prompt::{Notes, OUTPUT_BUDGET, Refused};
use sessions::Sessions;
use user_messages::UserMessages;

/// The prompt of a run's first iteration.
pub fn compose_first(task: &str, policy: &Policy) -> String {
    let gates: Vec<&str> = policy.gates.iter().map(|gate| gate.command.as_str()).collect();
    let mut post = HatQueue::new(policy.hats.clone());
    // Nobody has been worn yet, so nobody can be worn out.
    let _ = post.deliver();
    let notes = Notes {
        hat: post.section(),
        ..Notes::default()
    };
    prompt::compose(task, &policy.markers, &gates, &notes)
}

/// Something happened.
#[derive(Debug)]
pub enum Input {
    Started(Box<RunHeader>),
    /// A run that had ended goes on; what is different now, for the record.
    Resumed {
        header: Box<RunHeader>,
        changed: Vec<String>,
    },
    /// How the workspace looks before an iteration; comes before its prompt, if at all.
    WorkspaceScanned {
        fingerprint: String,
    },
    /// The user's prompt as it reads now, or why it cannot be read.
    Prompt(Result<String, String>),
    Launched {
        pid: u32,
        command: Vec<String>,
    },
    CouldNotStart {
        error: String,
    },
    /// Bytes arrived from the agent.
    OutputSeen,
    /// The user typed into the agent's screen; the agent has it already, but for what kills it.
    KeyTyped(Key),
    Transcript(TranscriptEvent),
    Stderr(String),
    /// The agent changed files that it may not change; comes before its exit.
    PathsViolated {
        files: Vec<String>,
    },
    Exited {
        end: ProcessEnd,
        swept: u64,
    },
    /// `None` for a gate that could not be started.
    GateEnded {
        end: Option<ProcessEnd>,
        output: String,
    },
    Interrupted(Interrupt),
    /// The user wants to wait no longer.
    WakeUp,
    /// Something was left in the run's inbox.
    Command {
        id: String,
        order: Command,
    },
    Answered(Answer),
    /// The deadline has come.
    Tick,
}

/// Something is to be done.
#[derive(Debug, PartialEq)]
#[must_use]
pub enum Action {
    Emit(RunEvent),
    ReadPrompt,
    Launch {
        iteration: u64,
        attempt: u64,
        hat: Option<String>,
        prompt: String,
        /// The agent's own session to go on with.
        session: Option<String>,
    },
    RunGate(GateRule),
    /// Ask the running child's whole tree to end; kill what is left after the grace.
    Stop {
        grace: Duration,
    },
    Kill,
    /// Ask the user whether to go on.
    Ask,
    Finish(RunOutcome),
}

/// Waits after failures: 2 s, doubling, at most 5 minutes.
const RETRY: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(300));
/// Waits for a usage limit that does not say when it ends: 1 minute, doubling, at most an hour.
const UNSTATED_LIMIT: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(3600));
/// A stated reset is met a little late rather than a little early.
const AFTER_RESET: Duration = Duration::from_secs(1);
/// A reset that lies no further back than this is one that has come.
const JUST_PASSED: Duration = Duration::from_secs(60);
/// How often in a row a stated reset is believed. "Try again in 1s", said for ever, would be a loop that nothing ends.
const BELIEVED: u64 = 3;
/// A child that outlives its stop ladder by this much is killed once more.
const OVERDUE: Duration = Duration::from_secs(10);

/// The state of one run.
#[derive(Debug)]
pub struct Engine {
    policy: Policy,
    state: State,
    iteration: u64,
    attempt: u64,
    /// Rate-limited tries do not count.
    iterations_ended: u64,
    failures_in_a_row: u64,
    limits_in_a_row: u64,
    /// Of the iterations that have ended.
    spent: Usage,
    /// What the user was told about costs; each thing is said once.
    told_about_costs: BTreeSet<String>,
    /// Time that does not count as the run's own.
    waited: Duration,
    notes: Notes,
    post: HatQueue,
    sessions: Sessions,
    interrupted: Option<Interrupt>,
    retry: Backoff,
    unstated_limit: Backoff,
    /// Used by attempts that a crash cut off; counts against the budget only.
    abandoned: Usage,
    letters: UserMessages,
    progress: Progress,
    wishes: commands::PendingRequests,
    typing: interactive::Typing,
    /// Of a resumed run: complete but for its last word; waiting for a limit.
    completed: Option<String>,
    resets_at: Option<Timestamp>,
}

#[derive(Debug)]
enum State {
    New,
    Reading,
    Working(Box<Attempt>),
    Gating(Box<Gating>),
    /// The agent's screen has gone; the user is being asked whether the work is done.
    Confirming(Box<interactive::Confirming>),
    Waiting {
        since: Duration,
        until: Duration,
        why: Pause,
    },
    /// The user paused the run, or is being asked.
    Resting {
        since: Duration,
    },
    Over,
}

/// The agent says that it is done; a gate is running.
#[derive(Debug)]
struct Gating {
    work: Attempt,
    marker: String,
    index: usize,
    started: Duration,
    stopping: Option<Stopping>,
}

impl Engine {
    pub fn new(policy: Policy) -> Self {
        let (retry, unstated) = (RETRY, UNSTATED_LIMIT);
        Self {
            retry: Backoff::new(retry.0, retry.1, policy.seed),
            unstated_limit: Backoff::new(unstated.0, unstated.1, policy.seed),
            post: HatQueue::new(policy.hats.clone()),
            policy,
            state: State::New,
            iteration: 0,
            attempt: 1,
            iterations_ended: 0,
            failures_in_a_row: 0,
            limits_in_a_row: 0,
            spent: Usage::default(),
            told_about_costs: BTreeSet::new(),
            waited: Duration::ZERO,
            notes: Notes::default(),
            sessions: Sessions::default(),
            interrupted: None,
            abandoned: Usage::default(),
            letters: UserMessages::default(),
            progress: Progress::default(),
            wishes: commands::PendingRequests::default(),
            typing: interactive::Typing::default(),
            completed: None,
            resets_at: None,
        }
    }

    /// When `Input::Tick` is due, if nothing else happens before.
    pub fn deadline(&self) -> Option<Duration> {
        let runtime = self.runtime_deadline();
        match &self.state {
            State::New | State::Reading | State::Resting { .. } | State::Confirming(_) | State::Over => None,
            State::Waiting {
                until,
                why: Pause::RateLimit,
                ..
            } => Some(*until),
            State::Waiting { until, .. } => Some((*until).min(runtime)),
            State::Working(work) => match work.stopping {
                Some(stopping) => Some(self.overdue(stopping)),
                None => work
                    .deadline(&self.policy.timing)
                    .map(|(when, _)| when)
                    .into_iter()
                    .chain([runtime])
                    .min(),
            },
            State::Gating(gating) => match gating.stopping {
                Some(stopping) => Some(self.overdue(stopping)),
                None => Some(runtime.min(gating.started + self.policy.gates[gating.index].timeout)),
            },
        }
    }

    fn overdue(&self, stopping: Stopping) -> Duration {
        stopping.at + self.policy.timing.stop_grace + OVERDUE
    }

    /// Takes in one thing that happened; says what is to be done about it, in order.
    pub fn step(&mut self, at: Duration, input: Input) -> Vec<Action> {
        let mut out = Vec::new();
        self.step_into(at, input, &mut out);
        out
    }

    /// The same for who has room for the answer.
    pub fn step_into(&mut self, at: Duration, input: Input, out: &mut Vec<Action>) {
        match input {
            Input::Started(header) => {
                out.push(Action::Emit(RunEvent::RunStarted(header)));
                self.warn_of_a_blind_budget(out);
                self.iteration = 1;
                self.begin(at, out);
            }
            Input::Resumed { header, changed } => self.resumed(at, *header, changed, out),
            Input::WorkspaceScanned { fingerprint } => self.look(at, fingerprint, out),
            Input::Prompt(prompt) => self.prompt_read(at, prompt, out),
            Input::Launched { pid, command } => {
                let iteration = self.iteration;
                out.push(Action::Emit(RunEvent::AgentStarted {
                    iteration,
                    pid,
                    command,
                }));
            }
            Input::CouldNotStart { error } => {
                if let State::Working(_) = &self.state {
                    self.settle(at, IterationOutcome::CouldNotStart { error }, out);
                }
            }
            Input::OutputSeen => {
                if let State::Working(work) = &mut self.state {
                    work.heard_something(at);
                }
            }
            Input::KeyTyped(key) => self.typed(at, key, out),
            Input::Transcript(event) => self.hear(at, event, out),
            Input::Stderr(text) => {
                if let State::Working(work) = &mut self.state {
                    work.hear_stderr(&text);
                    out.push(Action::Emit(RunEvent::Stderr {
                        iteration: self.iteration,
                        text,
                    }));
                }
            }
            Input::PathsViolated { files } => {
                if let State::Working(work) = &mut self.state {
                    work.strayed = files;
                }
            }
            Input::Exited { end, swept } => self.exited(at, end, swept, out),
            Input::GateEnded { end, output } => self.gate_ended(at, end, &output, out),
            Input::Interrupted(by) => self.interrupt(at, by, out),
            Input::WakeUp => self.wake(at, out),
            Input::Command { id, order } => self.told(at, id, order, out),
            Input::Answered(answer) => self.answered(at, answer, out),
            Input::Tick => self.tick(at, out),
        }
        self.note(out);
    }

    /// What was told to the world is also known here.
    fn note(&mut self, actions: &[Action]) {
        for action in actions {
            if let Action::Emit(event) = action {
                self.letters.note(event);
                self.progress.note(event);
            }
        }
    }
}
