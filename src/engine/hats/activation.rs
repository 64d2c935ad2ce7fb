//! Hats in the course of a run: who is put on before an iteration, and what goes out after it.

use std::time::Duration;

use super::{Ended, Rerouted};
use crate::engine::attempt::Verdict;
use crate::engine::{Action, Engine};
use crate::event::{IterationOutcome, RunEvent, RunOutcome};

impl Engine {
    /// Puts on the hat of the coming iteration, if there are hats. `None` when the run has ended over it.
    pub(in crate::engine) fn put_on_hat(
        &mut self,
        at: Duration,
        out: &mut Vec<Action>,
    ) -> Option<Option<String>> {
        match self.post.deliver() {
            Ok(rerouted) => self.tell_rerouted(rerouted, out),
            Err(reason) => {
                self.finish(at, RunOutcome::Failed { reason }, out);
                return None;
            }
        }
        self.notes.hat = self.post.section();
        Some(self.post.worn().map(|rule| rule.name.clone()))
    }

    /// The work is not done as long as an event waits for somebody.
    pub(in crate::engine) fn unless_events_wait(&self, verdict: Verdict, out: &mut Vec<Action>) -> Verdict {
        match (verdict, self.post.undelivered()) {
            (Verdict::Claimed { marker }, Some(topic)) => {
                out.push(Action::Emit(RunEvent::MarkerIgnored {
                    iteration: self.iteration,
                    marker,
                    reason: format!("the event `{topic}` is still waiting for a hat"),
                }));
                Verdict::Settled(IterationOutcome::Continued { rejected_by: None })
            }
            (verdict, _) => verdict,
        }
    }

    /// After an iteration: what it published goes where it belongs.
    pub(in crate::engine) fn send_events(&mut self, outcome: &IterationOutcome, out: &mut Vec<Action>) {
        let Some(ended) = Ended::after(outcome) else {
            return;
        };
        let sent = self.post.settle(ended);
        let iteration = self.iteration;
        if let Some(event) = sent.default {
            out.push(Action::Emit(RunEvent::Topic { iteration, event }));
        }
        self.tell_rerouted(sent.rerouted, out);
    }

    fn tell_rerouted(&self, rerouted: Vec<Rerouted>, out: &mut Vec<Action>) {
        let iteration = self.iteration;
        out.extend(rerouted.into_iter().map(|Rerouted { topic, hat, reason }| {
            Action::Emit(RunEvent::TopicRerouted {
                iteration,
                topic,
                hat,
                reason,
            })
        }));
    }
}
