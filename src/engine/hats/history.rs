//! What of a journal concerns the hats: enough to put a run that goes on where it stood, events that wait included.

use crate::event::{IterationOutcome, RunEvent, TopicEvent};

use super::{Ended, HatQueue};
use crate::engine::Engine;

/// The course of the hats through a run, in order.
#[derive(Debug, Clone, Default)]
pub struct HatHistory {
    steps: Vec<Step>,
}

#[derive(Debug, Clone)]
enum Step {
    /// An iteration began; one before it that has no end was cut off.
    Began,
    Published(TopicEvent),
    Ended(Ended),
}

impl HatHistory {
    /// Takes in the next event of the journal.
    pub fn note(&mut self, event: &RunEvent) {
        if let RunEvent::IterationStarted { hat: Some(_), .. } = event {
            self.steps.push(Step::Began);
        }
        if let RunEvent::Topic { event, .. } = event {
            self.steps.push(Step::Published(event.clone()));
        }
        if let RunEvent::IterationEnded { outcome, .. } = event {
            self.steps.extend(Ended::after(outcome).map(Step::Ended));
        }
    }
}

impl Ended {
    /// `None` when everything is over, for the hats too.
    pub(in crate::engine) fn after(outcome: &IterationOutcome) -> Option<Self> {
        match outcome {
            IterationOutcome::Completed { .. } => None,
            IterationOutcome::Continued { rejected_by: None } => Some(Self::Done),
            IterationOutcome::Continued { rejected_by: Some(_) } => Some(Self::Refused),
            IterationOutcome::Failed { .. }
            | IterationOutcome::TimedOut { .. }
            | IterationOutcome::RateLimited { .. }
            | IterationOutcome::AuthRequired { .. }
            | IterationOutcome::LimitReached { .. }
            | IterationOutcome::Interrupted
            | IterationOutcome::Skipped
            | IterationOutcome::CouldNotStart { .. } => Some(Self::Failed),
        }
    }
}

impl Engine {
    /// Before a run goes on: the hats stand where the trail ends.
    pub fn follow_hats(&mut self, trail: &HatHistory) {
        self.post = HatQueue::new(self.policy.hats.clone());
        for step in &trail.steps {
            match step {
                Step::Began => {
                    self.post.settle(Ended::Failed);
                    // Who could not be worn then is not worn now; what is told of it was told then.
                    let _ = self.post.deliver();
                }
                Step::Published(event) => self.post.publish(event),
                Step::Ended(ended) => drop(self.post.settle(*ended)),
            }
        }
        self.post.settle(Ended::Failed);
    }
}
