//! Interactive mode: keys that the user types into the agent's screen, and the completion question after it exits.
//!
//! The screen mixes the wrapped prompt, typed text and tool output, so a marker on it proves nothing. The engine
//! therefore ignores markers in this mode and asks the user whether the work is done.

use super::*;

/// A typed key, reduced to its meaning for ralph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InteractiveKey {
    Other,
    /// Ctrl-C.
    Interrupt,
}

/// Two Ctrl-C within this time stop the run; a single one belongs to the agent.
const DOUBLE_INTERRUPT_WINDOW: Duration = Duration::from_secs(1);
/// If the agent exits this soon after a Ctrl-C, the user quit it, so its exit code is not a failure.
const USER_EXIT_WINDOW: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct KeyboardState {
    last_interrupt: Option<Duration>,
    question: CompletionQuestion,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum CompletionQuestion {
    #[default]
    Enabled,
    /// The user chose to continue without being asked.
    Disabled,
}

/// An ended iteration whose completion the user has to confirm.
#[derive(Debug)]
pub(super) struct PendingConfirmation {
    pub(super) attempt: Attempt,
    outcome_if_not_done: IterationOutcome,
    since: Duration,
}

impl Engine {
    /// Handles a typed key. Every key resets the idle timer. One Ctrl-C belongs to the agent, two in quick succession
    /// stop the run, and a further one kills the agent.
    pub(super) fn key_typed(&mut self, at: Duration, key: InteractiveKey, out: &mut Vec<Action>) {
        let EngineState::AgentRunning(attempt) = &mut self.state else {
            return;
        };
        attempt.reset_idle_timer(at);
        match key {
            InteractiveKey::Other => {}
            InteractiveKey::Interrupt => {
                let before = self.keyboard.last_interrupt.replace(at);
                let twice = before.is_some_and(|before| at - before <= DOUBLE_INTERRUPT_WINDOW);
                if twice || self.interrupted.is_some() {
                    self.interrupt(at, Interrupt::Int, out);
                }
            }
        }
    }

    /// Ends the iteration. If an interactive agent exited without a failure or was idle for too long, it may have
    /// completed the work, so the user is asked first.
    pub(super) fn end_iteration_or_ask(
        &mut self,
        at: Duration,
        outcome: IterationOutcome,
        out: &mut Vec<Action>,
    ) {
        let has_screen = self.agent().transcript.messages == MessageBoundaries::Screen;
        let user_exited = self
            .keyboard
            .last_interrupt
            .take()
            .is_some_and(|interrupt| at - interrupt <= USER_EXIT_WINDOW);
        let outcome = match outcome {
            IterationOutcome::Failed {
                failure: IterationFailure::Exit { .. },
            } if has_screen && user_exited => IterationOutcome::Continued { rejected_by: None },
            outcome => outcome,
        };
        let may_be_done = match &outcome {
            IterationOutcome::Continued { .. }
            | IterationOutcome::TimedOut {
                limit: TimeLimit::Idle,
                ..
            } => true,
            IterationOutcome::TimedOut {
                limit: TimeLimit::Wall,
                ..
            }
            | IterationOutcome::Completed { .. }
            | IterationOutcome::Failed { .. }
            | IterationOutcome::RateLimited { .. }
            | IterationOutcome::Overloaded { .. }
            | IterationOutcome::AuthRequired { .. }
            | IterationOutcome::LimitReached { .. }
            | IterationOutcome::Interrupted
            | IterationOutcome::Skipped
            | IterationOutcome::CouldNotStart { .. } => false,
        };
        if !has_screen || !may_be_done || self.keyboard.question == CompletionQuestion::Disabled {
            return self.end_iteration(at, outcome, out);
        }
        let EngineState::AgentRunning(attempt) = std::mem::replace(&mut self.state, EngineState::Finished)
        else {
            return;
        };
        self.state = EngineState::AwaitingConfirmation(Box::new(PendingConfirmation {
            attempt: *attempt,
            outcome_if_not_done: outcome,
            since: at,
        }));
        let level = NoticeLevel::Info;
        let text =
            "if the work is done, press d and Enter; ralph cannot detect it in interactive mode".to_owned();
        out.push(Action::Emit(RunEvent::Notice { level, text }));
        out.push(Action::Emit(RunEvent::Asking));
        out.push(Action::AskUser);
    }

    pub(super) fn completion_answered(&mut self, at: Duration, answer: Answer, out: &mut Vec<Action>) {
        match answer {
            Answer::Done => {
                if let Some(pending) = self.take_pending_confirmation(at, out) {
                    self.state = EngineState::AgentRunning(Box::new(pending.attempt));
                    self.start_gates(at, CONFIRMED_BY_USER.to_owned(), out);
                }
            }
            Answer::Continue => self.decline_completion(at, out),
            Answer::ContinueWithoutAsking => {
                self.keyboard.question = CompletionQuestion::Disabled;
                self.decline_completion(at, out);
            }
            Answer::Quit => {
                self.interrupted = Some(Interrupt::Quit);
                self.decline_completion(at, out);
            }
        }
    }

    /// The work is not done: ends the iteration with its original outcome.
    pub(super) fn decline_completion(&mut self, at: Duration, out: &mut Vec<Action>) {
        if let Some(PendingConfirmation {
            attempt,
            outcome_if_not_done,
            ..
        }) = self.take_pending_confirmation(at, out)
        {
            self.state = EngineState::AgentRunning(Box::new(attempt));
            self.mark_boundary_answered();
            self.end_iteration(at, outcome_if_not_done, out);
        }
    }

    fn take_pending_confirmation(
        &mut self,
        at: Duration,
        out: &mut Vec<Action>,
    ) -> Option<PendingConfirmation> {
        match std::mem::replace(&mut self.state, EngineState::Finished) {
            EngineState::AwaitingConfirmation(pending) => {
                self.waited += at - pending.since;
                out.push(Action::Emit(RunEvent::WaitEnded));
                Some(*pending)
            }
            state => {
                self.state = state;
                None
            }
        }
    }
}
