//! What the user does to a run under way: tells it something, lets it rest, stops one iteration; and the question
//! between two iterations.

use super::*;
use crate::event::Command;

/// Whether the user is asked between iterations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Asking {
    #[default]
    Never,
    BetweenIterations,
}

/// What the user says to the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    GoOn,
    GoOnWithoutAsking,
    /// The work is done: an answer only where a screen was watched.
    Done,
    Quit,
}

/// What the user wants of the pauses between iterations.
#[derive(Debug, Default)]
pub(super) struct PendingRequests {
    asking: Asking,
    pause: PendingRequest,
    /// An iteration has ended since the last rest.
    between: Between,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum PendingRequest {
    #[default]
    GoOn,
    Pause,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Between {
    #[default]
    No,
    Yes,
    /// And the user has been asked about it.
    Answered,
}

impl Engine {
    /// Lets the engine ask between iterations.
    #[must_use]
    pub fn asking(mut self, asking: Asking) -> Self {
        self.wishes.asking = asking;
        self
    }

    pub(super) fn told(&mut self, at: Duration, id: String, order: Command, out: &mut Vec<Action>) {
        out.push(Action::Emit(RunEvent::CommandReceived {
            id,
            order: order.clone(),
        }));
        match order {
            Command::Message { .. } => {}
            Command::Pause => {
                self.wishes.pause = PendingRequest::Pause;
                if let State::Reading = self.state {
                    let _ = self.rested(at, out);
                }
            }
            Command::Resume => {
                self.wishes.pause = PendingRequest::GoOn;
                self.go_on(at, out);
            }
            Command::Wake => self.wake(at, out),
            Command::StopIteration => self.stop(at, StopCause::Skip, out),
        }
    }

    /// Whatever is being waited for is waited for no longer.
    pub(super) fn wake(&mut self, at: Duration, out: &mut Vec<Action>) {
        self.end_wait(at, out);
        self.go_on(at, out);
    }

    pub(super) fn answered(&mut self, at: Duration, answer: Answer, out: &mut Vec<Action>) {
        if let State::Confirming(_) = self.state {
            return self.confirmed(at, answer, out);
        }
        let State::Resting { .. } = self.state else { return };
        match answer {
            Answer::Done => {}
            Answer::GoOn => self.go_on(at, out),
            Answer::GoOnWithoutAsking => {
                self.wishes.asking = Asking::Never;
                self.go_on(at, out);
            }
            Answer::Quit => {
                let by = Interrupt::Quit;
                self.finish(at, RunOutcome::Interrupted { by }, out);
            }
        }
    }

    /// The next iteration has another number than the last.
    pub(super) fn is_between_iterations(&mut self) {
        self.wishes.between = match self.wishes.between {
            Between::Answered => Between::No,
            Between::No | Between::Yes => Between::Yes,
        };
    }

    /// What came between two iterations has been settled with the user.
    pub(super) fn is_answered(&mut self) {
        self.wishes.between = Between::Answered;
    }

    /// Rests before an iteration if the user wants that.
    pub(super) fn rested(&mut self, at: Duration, out: &mut Vec<Action>) -> Option<()> {
        let ask = self.wishes.asking == Asking::BetweenIterations && self.wishes.between == Between::Yes;
        if self.wishes.pause == PendingRequest::Pause {
            out.push(Action::Emit(RunEvent::Paused));
        } else if ask {
            out.push(Action::Emit(RunEvent::Asking));
            out.push(Action::Ask);
        } else {
            return None;
        }
        self.state = State::Resting { since: at };
        Some(())
    }

    fn go_on(&mut self, at: Duration, out: &mut Vec<Action>) {
        let State::Resting { since } = self.state else {
            return;
        };
        self.waited += at - since;
        self.wishes.pause = PendingRequest::GoOn;
        self.wishes.between = Between::No;
        out.push(Action::Emit(RunEvent::WaitEnded));
        self.begin(at, out);
    }

    /// The workspace as it looks before the iteration that is about to begin.
    pub(super) fn look(&mut self, at: Duration, fingerprint: String, out: &mut Vec<Action>) {
        let State::Reading = self.state else { return };
        let iteration = self.iteration;
        let Some(unchanged) = self.progress.judge(iteration, &fingerprint) else {
            return;
        };
        out.push(Action::Emit(RunEvent::Progress {
            iteration,
            fingerprint,
            unchanged,
        }));
        let most = self.policy.limits.no_progress;
        if most > 0 && unchanged >= most {
            let refusing = self.progress.refusing_gate();
            let reason = format!(
                "nothing has changed in {unchanged} {} (max_no_progress): no file, no commit, no gate result, no topic{}",
                if unchanged == 1 {
                    "iteration"
                } else {
                    "iterations in a row"
                },
                refusing.map_or(String::new(), |gate| format!("; the gate {gate} still refuses")),
            );
            self.finish(at, RunOutcome::Failed { reason }, out);
        }
    }
}
