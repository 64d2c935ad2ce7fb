//! Activates a hat before an iteration and queues its published events afterwards.

use std::time::Duration;

use super::{ActivationEnd, ReroutedEvent};
use crate::engine::{Action, Engine};
use crate::event::{IterationOutcome, RunEvent, RunOutcome};

impl Engine {
    /// Activates the hat of the coming iteration and returns its name, if there are hats. `None` if the run has ended
    /// because no hat is available.
    pub(in crate::engine) fn activate_next_hat(
        &mut self,
        at: Duration,
        out: &mut Vec<Action>,
    ) -> Option<Option<String>> {
        match self.hat_queue.activate_next() {
            Ok(rerouted) => self.emit_rerouted(rerouted, out),
            Err(reason) => {
                self.finish(at, RunOutcome::Failed { reason }, out);
                return None;
            }
        }
        self.notes.hat = self.hat_queue.prompt_section();
        Some(self.hat_queue.active_hat().map(|rule| rule.name.clone()))
    }

    /// Ends the activation and queues the events that the iteration published.
    pub(in crate::engine) fn end_hat_activation(
        &mut self,
        outcome: &IterationOutcome,
        out: &mut Vec<Action>,
    ) {
        let Some(ended) = ActivationEnd::after(outcome) else {
            return;
        };
        let result = self.hat_queue.end_activation(ended);
        let iteration = self.iteration;
        if let Some(event) = result.default_event {
            out.push(Action::Emit(RunEvent::Topic { iteration, event }));
        }
        self.emit_rerouted(result.rerouted, out);
    }

    fn emit_rerouted(&self, rerouted: Vec<ReroutedEvent>, out: &mut Vec<Action>) {
        let iteration = self.iteration;
        out.extend(rerouted.into_iter().map(|ReroutedEvent { topic, hat, reason }| {
            Action::Emit(RunEvent::TopicRerouted {
                iteration,
                topic,
                hat,
                reason,
            })
        }));
    }
}
