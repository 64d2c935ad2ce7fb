//! What the user has told the run: messages on their way into a prompt. Learns everything from the run's events, so
//! that a resumed run knows what the interrupted one knew.

use crate::event::{Command, Failure, IterationOutcome, RunEvent};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UserMessages {
    waiting: Vec<String>,
    /// How many of them are in the prompt of the iteration that runs.
    sent: usize,
}

impl UserMessages {
    pub(crate) fn note(&mut self, event: &RunEvent) {
        match event {
            RunEvent::CommandReceived {
                order: Command::Message { text },
                ..
            } => self.waiting.push(text.clone()),
            RunEvent::IterationStarted { .. } => self.sent = self.waiting.len(),
            RunEvent::IterationEnded { outcome, .. } if reached_the_agent(outcome) => {
                self.waiting.drain(..std::mem::take(&mut self.sent));
            }
            _ => {}
        }
    }

    /// Adds what was told to the end of a prompt: the latest words are the ones best heard.
    pub(crate) fn add_to(&self, prompt: &mut String) {
        for text in &self.waiting {
            let gap = if prompt.ends_with('\n') { "\n" } else { "\n\n" };
            prompt.push_str(gap);
            prompt.push_str("A message from the user, sent while you were at work:\n\n");
            prompt.push_str(text.trim_end());
            prompt.push('\n');
        }
    }
}

/// Whether the agent can have read its prompt to some effect. If not, the next prompt says it again.
fn reached_the_agent(outcome: &IterationOutcome) -> bool {
    match outcome {
        IterationOutcome::Completed { .. }
        | IterationOutcome::Continued { .. }
        | IterationOutcome::TimedOut { .. }
        | IterationOutcome::Skipped => true,
        IterationOutcome::Failed { failure } => match failure {
            Failure::Declared { .. } | Failure::OutsideAllowedPaths { .. } => true,
            Failure::Exit { .. }
            | Failure::AgentError { .. }
            | Failure::NoOutput
            | Failure::NoTerminalEvent => false,
        },
        IterationOutcome::RateLimited { .. }
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

    fn told(text: &str) -> RunEvent {
        RunEvent::CommandReceived {
            id: text.into(),
            order: Command::Message { text: text.into() },
        }
    }

    fn started() -> RunEvent {
        RunEvent::IterationStarted {
            iteration: 1,
            attempt: 1,
            hat: None,
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
        let mut letters = UserMessages::default();
        events.iter().for_each(|event| letters.note(event));
        let mut prompt = "task".to_owned();
        letters.add_to(&mut prompt);
        prompt
    }

    #[test]
    fn messages_are_in_one_prompt_in_order_and_in_no_later_one() {
        let both = prompt(&[told("first"), told("second")]);
        assert!(both.find("first") < both.find("second"), "{both}");
        let continued = IterationOutcome::Continued { rejected_by: None };
        assert_eq!(
            prompt(&[told("first"), started(), ended(continued.clone())]),
            "task"
        );
        let late = prompt(&[told("first"), started(), told("late"), ended(continued)]);
        assert!(late.contains("late") && !late.contains("first"), "{late}");
    }

    #[test]
    fn an_iteration_that_is_run_again_is_told_again() {
        let limited = IterationOutcome::RateLimited {
            resets_at: None,
            message: String::new(),
        };
        assert!(prompt(&[told("hello"), started(), ended(limited)]).contains("hello"));
        assert!(prompt(&[told("hello"), started()]).contains("hello"), "killed");
    }
}
