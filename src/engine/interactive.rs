//! The user in front of the agent's own screen: what the keys mean, and the question when the screen has gone.
//!
//! A screen is no evidence. The prompt stands on it, wrapped wherever the window ends; so does what the user typed,
//! and what the tools printed. A marker among all that proves nothing, so none is looked for: who watched is asked.

use super::*;

/// What was typed, as far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Any,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-\, which the agent does not get.
    Kill,
}

/// Two Ctrl-C within this time are meant for ralph.
const TWICE: Duration = Duration::from_secs(1);
/// An agent that ends so soon after a Ctrl-C was left by its user, whatever it says when it goes.
const LEFT: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct Typing {
    interrupt: Option<Duration>,
    questions: Questions,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Questions {
    #[default]
    Asked,
    /// The user does not want to be asked any more.
    Unwanted,
}

/// An iteration that has ended, but for the user's word.
#[derive(Debug)]
pub(super) struct Confirming {
    pub(super) work: Attempt,
    /// What it was if the work is not done.
    otherwise: IterationOutcome,
    since: Duration,
}

impl Engine {
    /// Whatever is typed, the agent is not alone. One Ctrl-C is the agent's; two in a row stop the run, and once it is
    /// stopping, one more kills.
    pub(super) fn typed(&mut self, at: Duration, key: Key, out: &mut Vec<Action>) {
        let State::Working(work) = &mut self.state else {
            return;
        };
        work.heard_something(at);
        match key {
            Key::Any => {}
            Key::Interrupt => {
                let before = self.typing.interrupt.replace(at);
                let twice = before.is_some_and(|before| at - before <= TWICE);
                if twice || self.interrupted.is_some() {
                    self.interrupt(at, Interrupt::Int, out);
                }
            }
            Key::Kill => self.kill_at_once(at, out),
        }
    }

    fn kill_at_once(&mut self, at: Duration, out: &mut Vec<Action>) {
        if self.interrupted.replace(Interrupt::Int).is_none() {
            let reason = "killed by Ctrl-\\".to_owned();
            out.push(Action::Emit(RunEvent::Stopping { reason }));
        }
        if let State::Working(work) = &mut self.state {
            let cause = StopCause::Interrupt;
            work.stopping = Some(Stopping { cause, at });
        }
        out.push(Action::Kill);
    }

    /// An iteration that ended well, or just rested too long, may have done the work.
    pub(super) fn settle_or_ask(&mut self, at: Duration, outcome: IterationOutcome, out: &mut Vec<Action>) {
        let watched = self.policy.reading.messages == Messages::Watched;
        let left = self
            .typing
            .interrupt
            .take()
            .is_some_and(|interrupt| at - interrupt <= LEFT);
        let outcome = match outcome {
            IterationOutcome::Failed {
                failure: Failure::Exit { .. },
            } if watched && left => IterationOutcome::Continued { rejected_by: None },
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
            | IterationOutcome::AuthRequired { .. }
            | IterationOutcome::LimitReached { .. }
            | IterationOutcome::Interrupted
            | IterationOutcome::Skipped
            | IterationOutcome::CouldNotStart { .. } => false,
        };
        if !watched || !may_be_done || self.typing.questions == Questions::Unwanted {
            return self.settle(at, outcome, out);
        }
        let State::Working(work) = std::mem::replace(&mut self.state, State::Over) else {
            return;
        };
        self.state = State::Confirming(Box::new(Confirming {
            work: *work,
            otherwise: outcome,
            since: at,
        }));
        let level = Level::Info;
        let text = "only you know what the agent came to: d and Enter if the work is done".to_owned();
        out.push(Action::Emit(RunEvent::Notice { level, text }));
        out.push(Action::Emit(RunEvent::Asking));
        out.push(Action::Ask);
    }

    pub(super) fn confirmed(&mut self, at: Duration, answer: Answer, out: &mut Vec<Action>) {
        match answer {
            Answer::Done => {
                if let Some(confirming) = self.take_question(at, out) {
                    self.state = State::Working(Box::new(confirming.work));
                    self.ask_gates(at, USERS_WORD.to_owned(), out);
                }
            }
            Answer::GoOn => self.leave_question(at, out),
            Answer::GoOnWithoutAsking => {
                self.typing.questions = Questions::Unwanted;
                self.leave_question(at, out);
            }
            Answer::Quit => {
                self.interrupted = Some(Interrupt::Quit);
                self.leave_question(at, out);
            }
        }
    }

    /// The work is not done: the iteration is what it was.
    pub(super) fn leave_question(&mut self, at: Duration, out: &mut Vec<Action>) {
        if let Some(Confirming { work, otherwise, .. }) = self.take_question(at, out) {
            self.state = State::Working(Box::new(work));
            self.is_answered();
            self.settle(at, otherwise, out);
        }
    }

    fn take_question(&mut self, at: Duration, out: &mut Vec<Action>) -> Option<Confirming> {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Confirming(confirming) => {
                self.waited += at - confirming.since;
                out.push(Action::Emit(RunEvent::WaitEnded));
                Some(*confirming)
            }
            state => {
                self.state = state;
                None
            }
        }
    }
}
