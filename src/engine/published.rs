//! The events that the agent publishes, in its text or with `ralph emit`: queues them for hats, recognizes claims of
//! completion, and checks which required ones are missing.

use std::collections::BTreeSet;

use super::*;
use crate::event::TopicEvent;

/// More topics than any set of hats has; further ones are a sign of runaway output.
const MAX_TOPICS: usize = 10_000;

/// The topics that the run has published so far. They come from run events, so a resumed run restores them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PublishedTopics {
    topics: BTreeSet<String>,
}

impl PublishedTopics {
    pub(super) fn apply(&mut self, event: &RunEvent) {
        if let RunEvent::Topic { event, .. } = event {
            self.add(&event.topic);
        }
    }

    fn add(&mut self, topic: &str) {
        if self.topics.len() < MAX_TOPICS {
            self.topics.insert(topic.to_owned());
        }
    }

    fn first_missing<'a>(&self, required: &'a [String]) -> Option<&'a str> {
        let mut missing = required.iter().filter(|topic| !self.topics.contains(*topic));
        missing.next().map(String::as_str)
    }
}

impl Engine {
    /// Publishes events of the running iteration. An event that claims completion is not queued for a hat.
    pub(super) fn publish(&mut self, events: Vec<TopicEvent>, out: &mut Vec<Action>) {
        let iteration = self.iteration;
        for event in events {
            self.published.add(&event.topic);
            if self.policy.claims_completion(&event.topic) {
                if let Some(attempt) = self.running_attempt() {
                    attempt.completion_topic = Some(event.topic.clone());
                }
            } else {
                self.hat_queue.publish(&event);
            }
            out.push(Action::Emit(RunEvent::Topic { iteration, event }));
        }
    }

    fn running_attempt(&mut self) -> Option<&mut Attempt> {
        match &mut self.state {
            EngineState::AgentRunning(attempt) => Some(attempt),
            EngineState::Inspecting(inspection) => Some(&mut inspection.attempt),
            EngineState::New
            | EngineState::ReadingPrompt
            | EngineState::Checkpointing(_)
            | EngineState::AwaitingPlace(_)
            | EngineState::GateRunning(_)
            | EngineState::RollingBack(_)
            | EngineState::AwaitingConfirmation(_)
            | EngineState::Waiting { .. }
            | EngineState::Paused { .. }
            | EngineState::Ending(_)
            | EngineState::Finished => None,
        }
    }

    pub(super) fn take_completion_topic(&mut self) -> Option<String> {
        self.running_attempt()?.completion_topic.take()
    }

    /// Publishes an event that a command contains. An event of an iteration that has ended is not delivered.
    pub(super) fn publish_command(&mut self, event: TopicEvent, sent_in: Option<u64>, out: &mut Vec<Action>) {
        let is_late = sent_in.is_some_and(|iteration| iteration != self.iteration);
        if is_late || self.running_attempt().is_none() {
            let text = format!(
                "the event `{}` was not delivered: the iteration that published it has ended",
                event.topic
            );
            let level = NoticeLevel::Warning;
            return out.push(Action::Emit(RunEvent::Notice { level, text }));
        }
        self.publish(vec![event], out);
    }

    /// Turns an iteration that ended without a claim into a claim if the agent published a completion marker as a topic.
    pub(super) fn claim_by_topic(&self, verdict: AttemptVerdict, topic: Option<String>) -> AttemptVerdict {
        match (verdict, topic) {
            (AttemptVerdict::Ended(IterationOutcome::Continued { rejected_by: None }), Some(marker)) => {
                AttemptVerdict::CompletionClaimed { marker }
            }
            (verdict, _) => verdict,
        }
    }

    /// Rejects a completion claim while an event is still queued or a required one is missing.
    pub(super) fn reject_premature_claim(
        &mut self,
        verdict: AttemptVerdict,
        out: &mut Vec<Action>,
    ) -> AttemptVerdict {
        self.apply_emitted(out);
        let pending = self.hat_queue.first_pending_topic();
        let missing = self.published.first_missing(&self.policy.required_events);
        let reason = match (pending, missing) {
            (Some(topic), _) => format!("the event `{topic}` is still queued for a hat"),
            (None, Some(topic)) => format!(
                "the event `{topic}`, which event_loop.required_events requires, has not been published yet"
            ),
            (None, None) if self.user_messages.has_asked() => {
                "the same message asks the user a question".to_owned()
            }
            (None, None) => return verdict,
        };
        let AttemptVerdict::CompletionClaimed { marker } = verdict else {
            return verdict;
        };
        self.notes.ignored_marker = Some((marker.clone(), reason.clone().into()));
        out.push(Action::Emit(RunEvent::MarkerIgnored {
            iteration: self.iteration,
            marker,
            reason,
        }));
        AttemptVerdict::Ended(IterationOutcome::Continued { rejected_by: None })
    }
}
