//! The end of a run: the summary, the last hook, then `RunEnded`. Every end takes this path.

use super::*;
use crate::policy::NotifyEvent;

/// After an interrupt, hooks have at least this long.
const HOOKS_AFTER_INTERRUPT: Duration = Duration::from_secs(1);
/// More hooks than this are not queued.
const MAX_QUEUED_HOOKS: u64 = 32;

/// A wait for the limit of an account, which another run has reached, runs the hook from this length on.
const LONG_WAIT_MS: u64 = 600_000;

/// A run that ends as soon as its hooks have ended.
#[derive(Debug)]
pub(super) struct Ending {
    event: RunEvent,
    /// When the run ends although hooks are still running.
    pub(super) give_up: Option<Duration>,
}

/// The kinds of events on which a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookKind {
    Start,
    Iteration,
    Complete,
    Fail,
    RateLimit,
    Ask,
}

impl HookKind {
    /// The kinds of which the user can be notified.
    pub const NOTIFIED: [(Self, NotifyEvent); 4] = [
        (Self::Complete, NotifyEvent::Done),
        (Self::Fail, NotifyEvent::Failed),
        (Self::Ask, NotifyEvent::Ask),
        (Self::RateLimit, NotifyEvent::Limit),
    ];

    /// The hook that an event triggers.
    fn of(event: &RunEvent) -> Option<Self> {
        match event {
            RunEvent::RunStarted(_) | RunEvent::RunResumed(_) => Some(Self::Start),
            RunEvent::IterationEnded {
                outcome: IterationOutcome::RateLimited { .. },
                ..
            } => Some(Self::RateLimit),
            RunEvent::IterationEnded { .. } => Some(Self::Iteration),
            RunEvent::Waiting {
                why: WaitReason::Quota,
                wait_ms: LONG_WAIT_MS..,
                ..
            } => Some(Self::RateLimit),
            RunEvent::QuestionAsked { .. } => Some(Self::Ask),
            RunEvent::RunEnded {
                outcome: RunOutcome::Complete { .. },
                ..
            } => Some(Self::Complete),
            RunEvent::RunEnded { .. } => Some(Self::Fail),
            _ => None,
        }
    }

    /// The name in the document that the hook receives, and in the key `hooks.on_NAME`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Iteration => "iteration",
            Self::Complete => "complete",
            Self::Fail => "fail",
            Self::RateLimit => "rate_limit",
            Self::Ask => "ask",
        }
    }
}

impl Engine {
    pub(super) fn finish(&mut self, at: Duration, outcome: RunOutcome, out: &mut Vec<Action>) {
        if let RunOutcome::Complete { .. } = &outcome {
            out.push(Action::Emit(self.verification()));
        }
        for (agent, unknown) in &self.unknown_output {
            let rules = &self.policy.agents.rules[*agent];
            out.extend(unknown.report(&rules.name, &rules.versions).map(Action::Emit));
        }
        let ended = self.run_ended(at, outcome);
        out.push(Action::WriteSummary(Box::new(ended.clone())));
        // A user who interrupts a run does not want to wait for hooks.
        let give_up = self.interrupted.map(|_| {
            let stopped = self.interrupted_at + self.policy.timing.stop_grace;
            stopped.max(at + HOOKS_AFTER_INTERRUPT)
        });
        self.state = EngineState::Ending(Box::new(Ending {
            event: ended.clone(),
            give_up,
        }));
        self.run_hook_of(&ended, out);
    }

    /// Ends the run because ralph itself failed, for example because a file cannot be written. The caller kills an agent
    /// that is still running, and does not report hooks that were started before.
    pub fn abort(&mut self, at: Duration, reason: String) -> Vec<Action> {
        let mut out = Vec::new();
        let running = match &self.state {
            EngineState::AgentRunning(attempt) => Some(attempt.usage.clone()),
            EngineState::Inspecting(inspection) => Some(inspection.attempt.usage.clone()),
            EngineState::GateRunning(gate_run) => Some(gate_run.usage()),
            EngineState::RollingBack(rollback) => Some(rollback.attempt.usage.clone()),
            EngineState::AwaitingConfirmation(pending) => Some(pending.attempt.usage.clone()),
            EngineState::New
            | EngineState::ReadingPrompt
            | EngineState::Checkpointing(_)
            | EngineState::AwaitingPlace(_)
            | EngineState::Waiting { .. }
            | EngineState::Paused { .. }
            | EngineState::Ending(_)
            | EngineState::Finished => None,
        };
        if let Some(usage) = running {
            self.spent.add(&usage);
        }
        self.hooks_running = 0;
        self.finish(at, RunOutcome::Failed { reason }, &mut out);
        self.end_if_hooks_ended(&mut out);
        out
    }

    /// Ends the run without waiting for hooks that are still running.
    pub(super) fn end_now(&mut self, out: &mut Vec<Action>) {
        match std::mem::replace(&mut self.state, EngineState::Finished) {
            EngineState::Ending(ending) => {
                if let RunEvent::RunEnded { outcome, .. } = &ending.event {
                    let outcome = outcome.clone();
                    out.push(Action::Emit(ending.event));
                    out.push(Action::Finish(outcome));
                }
            }
            state => self.state = state,
        }
    }

    /// Ends an ending run that waits for no hook. Called at the end of each step, when the hooks of all its events count.
    pub(super) fn end_if_hooks_ended(&mut self, out: &mut Vec<Action>) {
        if self.hooks_running == 0 {
            self.end_now(out);
        }
    }

    /// `problem` describes a failure of the hook.
    pub(super) fn hook_ended(&mut self, problem: Option<String>, out: &mut Vec<Action>) {
        if let EngineState::Finished = self.state {
            return;
        }
        self.hooks_running = self.hooks_running.saturating_sub(1);
        if let Some(text) = problem {
            out.push(Action::Emit(RunEvent::Notice {
                level: NoticeLevel::Warning,
                text,
            }));
        }
    }

    /// Starts the hooks of the emitted events.
    pub(super) fn run_hooks(&mut self, out: &mut Vec<Action>) {
        let mut index = 0;
        while let Some(action) = out.get(index) {
            index += 1;
            if let Action::Emit(event) = action
                && !matches!(event, RunEvent::RunEnded { .. })
                && HookKind::of(event).is_some_and(|kind| self.policy.hooks.contains(&kind))
            {
                let (event, mut hook) = (event.clone(), Vec::new());
                self.run_hook_of(&event, &mut hook);
                out.splice(index..index, hook);
            }
        }
    }

    fn run_hook_of(&mut self, event: &RunEvent, out: &mut Vec<Action>) {
        let Some(kind) = HookKind::of(event).filter(|kind| self.policy.hooks.contains(kind)) else {
            return;
        };
        if self.hooks_running >= MAX_QUEUED_HOOKS {
            let name = kind.name();
            return out.push(Action::Emit(RunEvent::Notice {
                level: NoticeLevel::Warning,
                text: format!("the hook on_{name} was skipped: {MAX_QUEUED_HOOKS} hooks are still waiting"),
            }));
        }
        self.hooks_running += 1;
        out.push(Action::RunHook {
            kind,
            event: Box::new(event.clone()),
        });
    }

    fn run_ended(&self, at: Duration, outcome: RunOutcome) -> RunEvent {
        RunEvent::RunEnded {
            outcome,
            iterations: self.iterations_ended,
            duration_ms: iteration::millis(at),
            usage: Box::new(self.spent.clone()),
        }
    }
}
