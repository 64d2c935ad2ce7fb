//! Applies commands to the run, and asks the question between two iterations.

use std::collections::HashSet;

use super::*;

/// Whether the user is asked between iterations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AskPolicy {
    #[default]
    Never,
    BetweenIterations,
}

/// The received commands, and those that take effect between iterations.
#[derive(Debug, Default)]
pub(super) struct CommandState {
    /// The ids of all commands that the run has received, also before it was resumed.
    received: HashSet<String>,
    ask_policy: AskPolicy,
    pause: PauseRequest,
    boundary_question: BoundaryQuestion,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum PauseRequest {
    #[default]
    None,
    Pause,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum BoundaryQuestion {
    #[default]
    NotDue,
    Due,
    /// The user has already answered for this boundary.
    Answered,
}

impl Engine {
    /// Sets whether the user is asked between iterations.
    #[must_use]
    pub fn with_ask_policy(mut self, ask_policy: AskPolicy) -> Self {
        self.commands.ask_policy = ask_policy;
        self
    }

    /// Whether the run has received a command with this id.
    pub fn has_received(&self, id: &str) -> bool {
        self.commands.received.contains(id)
    }

    pub(super) fn restore_received(&mut self, ids: Vec<String>) {
        self.commands.received = ids.into_iter().collect();
    }

    pub(super) fn command_received(&mut self, at: Duration, request: CommandRequest, out: &mut Vec<Action>) {
        let CommandRequest { id, command } = request;
        let is_over = matches!(self.state, EngineState::Finished);
        if is_over || !self.commands.received.insert(id.clone()) {
            return;
        }
        out.push(Action::Emit(RunEvent::CommandReceived {
            id,
            command: command.clone(),
        }));
        match command {
            // The emitted event adds it to the pending messages.
            Command::Message { .. } | Command::AnswerQuestion { .. } => self.end_question(at, out),
            Command::Publish { event, iteration } => self.publish_command(event, iteration, out),
            Command::Pause => {
                self.commands.pause = PauseRequest::Pause;
                if let EngineState::ReadingPrompt | EngineState::AwaitingPlace(_) = self.state {
                    self.pause_or_ask(at, out);
                }
            }
            Command::Resume => {
                self.commands.pause = PauseRequest::None;
                self.end_pause(at, out);
            }
            Command::Wake => self.wake(at, out),
            Command::StopIteration => self.stop(at, StopCause::Skip, out),
            Command::Stop { by } => self.interrupt(at, by, out),
            Command::Kill => self.kill(at, out),
            Command::Answer { answer } => self.user_answered(at, answer, out),
        }
    }

    /// Ends the current wait or pause.
    fn wake(&mut self, at: Duration, out: &mut Vec<Action>) {
        self.wake_from_wait(at, out);
        self.end_review_wait(at, out);
        self.wake_place_wait(out);
        self.end_pause(at, out);
    }

    fn user_answered(&mut self, at: Duration, answer: Answer, out: &mut Vec<Action>) {
        if let EngineState::AwaitingConfirmation(_) = self.state {
            return self.completion_answered(at, answer, out);
        }
        let EngineState::Paused { .. } = self.state else {
            return;
        };
        if self.user_messages.open_question().is_some() && answer != Answer::Quit {
            return self.end_question(at, out);
        }
        match answer {
            Answer::Done => {}
            Answer::Continue => self.end_pause(at, out),
            Answer::ContinueWithoutAsking => {
                self.commands.ask_policy = AskPolicy::Never;
                self.end_pause(at, out);
            }
            Answer::Quit => {
                let by = Interrupt::Quit;
                self.finish(at, RunOutcome::Interrupted { by }, out);
            }
        }
    }

    /// Notes that a new iteration number is about to begin, so the user may have to be asked.
    pub(super) fn mark_iteration_boundary(&mut self) {
        self.commands.boundary_question = match self.commands.boundary_question {
            BoundaryQuestion::Answered => BoundaryQuestion::NotDue,
            BoundaryQuestion::NotDue | BoundaryQuestion::Due => BoundaryQuestion::Due,
        };
    }

    /// Notes that the user has already answered for the coming iteration boundary.
    pub(super) fn mark_boundary_answered(&mut self) {
        self.commands.boundary_question = BoundaryQuestion::Answered;
    }

    /// Pauses before an iteration if the user requested it or has to be asked. Returns whether the run is paused.
    pub(super) fn pause_or_ask(&mut self, at: Duration, out: &mut Vec<Action>) -> bool {
        self.apply_emitted(out);
        if let Some(question) = self.user_messages.open_question() {
            out.push(Action::Emit(RunEvent::QuestionAsked {
                iteration: self.iteration,
                question: question.to_owned(),
            }));
            out.push(Action::AskQuestion);
            let timeout = self.policy.questions.timeout;
            self.state = EngineState::Paused {
                since: at,
                expires: timeout.map(|timeout| at.saturating_add(timeout)),
            };
            return true;
        }
        let ask = self.commands.ask_policy == AskPolicy::BetweenIterations
            && self.commands.boundary_question == BoundaryQuestion::Due;
        if self.commands.pause == PauseRequest::Pause {
            out.push(Action::Emit(RunEvent::Paused));
        } else if ask {
            out.push(Action::Emit(RunEvent::Asking));
            out.push(Action::AskUser);
        } else {
            return false;
        }
        self.state = EngineState::Paused {
            since: at,
            expires: None,
        };
        true
    }

    /// Ends the pause for a question that the command just emitted answers.
    fn end_question(&mut self, at: Duration, out: &mut Vec<Action>) {
        if let EngineState::Paused { .. } = self.state
            && self.user_messages.open_question().is_some()
        {
            self.end_pause(at, out);
        }
    }

    /// The question was not answered in time.
    pub(super) fn question_expired(&mut self, at: Duration, out: &mut Vec<Action>) {
        let question = self.user_messages.open_question().unwrap_or_default().to_owned();
        match self.policy.questions.default.clone() {
            Some(answer) => {
                out.push(Action::Emit(RunEvent::QuestionExpired { answer }));
                self.end_pause(at, out);
            }
            None => {
                let timeout = Seconds(self.policy.questions.timeout.unwrap_or_default().as_secs());
                let reason = format!(
                    "no answer within {timeout} (event_loop.ask_timeout) to the question: {question}"
                );
                self.finish(at, RunOutcome::Failed { reason }, out);
            }
        }
    }

    fn end_pause(&mut self, at: Duration, out: &mut Vec<Action>) {
        let EngineState::Paused { since, .. } = self.state else {
            return;
        };
        self.waited += at - since;
        self.commands.pause = PauseRequest::None;
        self.commands.boundary_question = BoundaryQuestion::NotDue;
        out.push(Action::Emit(RunEvent::WaitEnded));
        self.begin_iteration(at, out);
    }

    /// Compares the workspace with its last scan, and ends the run after too many iterations without a change.
    pub(super) fn workspace_scanned(
        &mut self,
        at: Duration,
        fingerprint: Result<String, String>,
        out: &mut Vec<Action>,
    ) {
        let EngineState::ReadingPrompt = self.state else {
            return;
        };
        let fingerprint = match fingerprint {
            Ok(fingerprint) => fingerprint,
            Err(reason) => {
                let level = NoticeLevel::Warning;
                let text = format!("cannot tell what has changed in the workspace: {reason}");
                return out.push(Action::Emit(RunEvent::Notice { level, text }));
            }
        };
        if self.policy.workspace_checks.progress == Check::Off {
            return;
        }
        let iteration = self.iteration;
        let Some(unchanged) = self.progress.unchanged_iterations(iteration, &fingerprint) else {
            return;
        };
        out.push(Action::Emit(RunEvent::Progress {
            iteration,
            fingerprint,
            unchanged,
        }));
        let max = self.policy.limits.no_progress;
        if max > 0 && unchanged >= max {
            let failing = self.progress.failing_gate();
            let reason = format!(
                "nothing has changed in {unchanged} {} (max_no_progress): no file, commit, gate result or topic{}",
                if unchanged == 1 {
                    "iteration"
                } else {
                    "iterations in a row"
                },
                failing.map_or(String::new(), |gate| format!("; the gate `{gate}` still fails")),
            );
            self.finish(at, RunOutcome::Failed { reason }, out);
        }
    }
}
