//! Restores the hat queue of a resumed run from the journal, including queued events.

use crate::event::{IterationOutcome, RunEvent, TopicEvent};

use super::{ActivationEnd, HatQueue};
use crate::engine::Engine;

/// The journal events that affect the hat queue, in order.
#[derive(Debug, Clone, Default)]
pub struct HatHistory {
    steps: Vec<HatStep>,
}

#[derive(Debug, Clone)]
enum HatStep {
    /// An iteration started. A previous one without an end was interrupted.
    IterationStarted,
    Published(TopicEvent),
    IterationEnded(ActivationEnd),
}

impl HatHistory {
    /// Applies the next event of the journal.
    pub fn apply(&mut self, event: &RunEvent) {
        if let RunEvent::IterationStarted { hat: Some(_), .. } = event {
            self.steps.push(HatStep::IterationStarted);
        }
        if let RunEvent::Topic { event, .. } = event {
            self.steps.push(HatStep::Published(event.clone()));
        }
        if let RunEvent::IterationEnded { outcome, .. } = event {
            self.steps
                .extend(ActivationEnd::after(outcome).map(HatStep::IterationEnded));
        }
    }
}

impl ActivationEnd {
    /// `None` if the run is complete.
    pub(in crate::engine) fn after(outcome: &IterationOutcome) -> Option<Self> {
        match outcome {
            IterationOutcome::Completed { .. } => None,
            IterationOutcome::Continued { rejected_by: None } => Some(Self::Done),
            IterationOutcome::Continued { rejected_by: Some(_) } => Some(Self::Rejected),
            IterationOutcome::Failed { .. }
            | IterationOutcome::TimedOut { .. }
            | IterationOutcome::RateLimited { .. }
            | IterationOutcome::Overloaded { .. }
            | IterationOutcome::AuthRequired { .. }
            | IterationOutcome::LimitReached { .. }
            | IterationOutcome::Interrupted
            | IterationOutcome::Skipped
            | IterationOutcome::CouldNotStart { .. } => Some(Self::Failed),
        }
    }
}

impl Engine {
    /// Replays the history, so that a resumed run continues with the same queue.
    pub fn restore_hats(&mut self, history: &HatHistory) {
        self.hat_queue = HatQueue::new(self.policy.hats.clone());
        for step in &history.steps {
            match step {
                HatStep::IterationStarted => {
                    self.hat_queue.end_activation(ActivationEnd::Failed);
                    // Rerouted events were already reported by the original run.
                    let _ = self.hat_queue.activate_next();
                }
                HatStep::Published(event) if self.policy.claims_completion(&event.topic) => {}
                HatStep::Published(event) => self.hat_queue.publish(event),
                HatStep::IterationEnded(ended) => drop(self.hat_queue.end_activation(*ended)),
            }
        }
        self.hat_queue.end_activation(ActivationEnd::Failed);
    }
}
