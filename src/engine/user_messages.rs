//! Messages from the user that wait for the next prompt.
//!
//! All state comes from run events, so a resumed run restores pending messages from the journal.

use crate::event::{Answer, Command, IterationFailure, IterationOutcome, RunEvent};
use crate::policy::QUESTION_TOPIC;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UserMessages {
    /// The sections of the next prompt.
    pending: Vec<String>,
    /// How many of them are part of the running iteration's prompt.
    in_prompt: usize,
    /// The questions that the running iteration has asked.
    asked: Vec<String>,
    /// The question that the user has to answer before the next iteration.
    open_question: Option<String>,
}

impl UserMessages {
    pub(crate) fn apply(&mut self, event: &RunEvent) {
        match event {
            RunEvent::CommandReceived { command, .. } => self.command(command),
            RunEvent::QuestionExpired { answer } => self.answer(answer),
            RunEvent::IterationStarted { .. } => {
                self.in_prompt = self.pending.len();
                self.asked.clear();
            }
            RunEvent::Topic { event, .. } if event.topic == QUESTION_TOPIC => {
                self.asked.push(event.payload.trim().to_owned());
            }
            RunEvent::IterationEnded { outcome, .. } => {
                if agent_read_prompt(outcome) {
                    self.pending.drain(..std::mem::take(&mut self.in_prompt));
                }
                let asked = std::mem::take(&mut self.asked);
                // Any other iteration is repeated, and asks again.
                if let IterationOutcome::Continued { .. } | IterationOutcome::TimedOut { .. } = outcome
                    && !asked.is_empty()
                {
                    self.open_question = Some(asked.join("\n\n"));
                }
            }
            _ => {}
        }
    }

    fn command(&mut self, command: &Command) {
        match command {
            Command::Message { text } | Command::AnswerQuestion { text } => match self.open_question {
                Some(_) => self.answer(text),
                None => self.pending.push(format!(
                    "Message from the user, sent while you were running:\n\n{}\n",
                    text.trim_end()
                )),
            },
            Command::Answer { answer } => {
                if let (Some(_), Some(text)) = (&self.open_question, word(*answer)) {
                    self.answer(text);
                }
            }
            Command::Pause
            | Command::Resume
            | Command::Wake
            | Command::StopIteration
            | Command::Stop { .. }
            | Command::Kill
            | Command::Publish { .. } => {}
        }
    }

    fn answer(&mut self, text: &str) {
        if let Some(question) = self.open_question.take() {
            let question = question.replace('\n', "\n> ");
            self.pending.push(format!(
                "You asked the user:\n\n> {question}\n\nThe answer:\n\n{}\n",
                text.trim_end()
            ));
        }
    }

    /// The question that the user has to answer before the next iteration.
    pub(crate) fn open_question(&self) -> Option<&str> {
        self.open_question.as_deref()
    }

    /// Whether the running iteration has asked a question.
    pub(crate) fn has_asked(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Appends pending messages to a prompt. They come last because agents weigh the end of a prompt most.
    pub(crate) fn add_to(&self, prompt: &mut String) {
        for text in &self.pending {
            let gap = if prompt.ends_with('\n') { "\n" } else { "\n\n" };
            prompt.push_str(gap);
            prompt.push_str(text);
        }
    }
}

/// An answer to a question of ralph as an answer to a question of the agent; `None` if it ends the run.
fn word(answer: Answer) -> Option<&'static str> {
    match answer {
        Answer::Continue => Some("continue"),
        Answer::ContinueWithoutAsking => Some("always"),
        Answer::Done => Some("done"),
        Answer::Quit => None,
    }
}

/// Whether the agent may have acted on its prompt. If not, the next prompt repeats the messages.
fn agent_read_prompt(outcome: &IterationOutcome) -> bool {
    match outcome {
        IterationOutcome::Completed { .. }
        | IterationOutcome::Continued { .. }
        | IterationOutcome::TimedOut { .. }
        | IterationOutcome::Skipped => true,
        IterationOutcome::Failed { failure } => match failure {
            IterationFailure::Declared { .. }
            | IterationFailure::DisallowedTool { .. }
            | IterationFailure::TooMuchOutput { .. }
            | IterationFailure::OutsideAllowedPaths { .. } => true,
            IterationFailure::Exit { .. }
            | IterationFailure::AgentError { .. }
            | IterationFailure::Refused { .. }
            | IterationFailure::NoOutput
            | IterationFailure::NoTerminalEvent
            | IterationFailure::PathsNotChecked { .. } => false,
        },
        IterationOutcome::RateLimited { .. }
        | IterationOutcome::Overloaded { .. }
        | IterationOutcome::AuthRequired { .. }
        | IterationOutcome::LimitReached { .. }
        | IterationOutcome::Interrupted
        | IterationOutcome::CouldNotStart { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Usage;

    fn message(text: &str) -> RunEvent {
        RunEvent::CommandReceived {
            id: text.into(),
            command: Command::Message { text: text.into() },
        }
    }

    fn started() -> RunEvent {
        RunEvent::IterationStarted {
            iteration: 1,
            attempt: 1,
            hat: None,
            agent: None,
            prompt_bytes: 0,
        }
    }

    fn ended(outcome: IterationOutcome) -> RunEvent {
        RunEvent::IterationEnded {
            iteration: 1,
            attempt: 1,
            outcome,
            duration_ms: 0,
            usage: Box::new(Usage::default()),
        }
    }

    fn prompt(events: &[RunEvent]) -> String {
        let mut messages = UserMessages::default();
        events.iter().for_each(|event| messages.apply(event));
        let mut prompt = "task".to_owned();
        messages.add_to(&mut prompt);
        prompt
    }

    #[test]
    fn messages_appear_in_order_in_exactly_one_prompt() {
        let both = prompt(&[message("first"), message("second")]);
        assert!(both.find("first") < both.find("second"), "{both}");
        let continued = IterationOutcome::Continued { rejected_by: None };
        assert_eq!(
            prompt(&[message("first"), started(), ended(continued.clone())]),
            "task"
        );
        let late = prompt(&[message("first"), started(), message("late"), ended(continued)]);
        assert!(late.contains("late") && !late.contains("first"), "{late}");
    }

    #[test]
    fn repeated_iteration_repeats_the_messages() {
        let limited = IterationOutcome::RateLimited {
            resets_at: None,
            message: String::new(),
        };
        assert!(prompt(&[message("hello"), started(), ended(limited)]).contains("hello"));
        assert!(prompt(&[message("hello"), started()]).contains("hello"), "killed");
    }
}
