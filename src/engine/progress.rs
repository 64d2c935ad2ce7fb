//! Whether anything moves: the workspace as fingerprints, gate results and topics, from one iteration to the next.
//! Learns everything from the run's events, so that a resumed run counts on.

use crate::event::{GateResult, RunEvent, TopicEvent};

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Progress {
    /// The iteration before which the workspace was last looked at, and how it looked.
    seen: Option<(u64, String)>,
    unchanged: u64,
    running: Results,
    /// Of the iteration before; unknown at first.
    last: Option<Results>,
}

/// What an iteration brought about besides files.
#[derive(Debug, Clone, Default, PartialEq)]
struct Results {
    gates: Vec<(String, GateResult)>,
    topics: Vec<TopicEvent>,
}

impl Progress {
    /// The workspace as the given iteration begins: for how many iterations in a row has nothing changed? `None` if
    /// no iteration has ended since the last look.
    pub(crate) fn judge(&self, iteration: u64, fingerprint: &str) -> Option<u64> {
        let Some((before, seen)) = &self.seen else {
            return Some(0);
        };
        if *before >= iteration {
            return None;
        }
        let same = seen == fingerprint && self.last.as_ref().is_none_or(|last| *last == self.running);
        Some(if same { self.unchanged + 1 } else { 0 })
    }

    /// The gate that was not content with the iteration that ended last.
    pub(crate) fn refusing_gate(&self) -> Option<&str> {
        let (name, result) = self.running.gates.last()?;
        (*result != GateResult::Passed).then_some(name.as_str())
    }

    pub(crate) fn note(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Progress {
                iteration,
                fingerprint,
                unchanged,
            } => {
                if self.seen.is_some() {
                    self.last = Some(std::mem::take(&mut self.running));
                }
                self.seen = Some((*iteration, fingerprint.clone()));
                self.unchanged = *unchanged;
            }
            RunEvent::IterationStarted { .. } => self.running = Results::default(),
            RunEvent::GateEnded { name, result, .. } => self.running.gates.push((name.clone(), *result)),
            RunEvent::Topic { event, .. } => self.running.topics.push(event.clone()),
            _ => {}
        }
    }

    /// Somebody wants to see whether it moves after all.
    pub(crate) fn start_over(&mut self) {
        self.unchanged = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One iteration after the other, each with the tree before it and a gate's result in it.
    fn counts(iterations: &[(&str, Option<GateResult>)]) -> Vec<u64> {
        let mut progress = Progress::default();
        let mut counts = Vec::new();
        for (index, (tree, gate)) in iterations.iter().enumerate() {
            let iteration = index as u64 + 1;
            let unchanged = progress.judge(iteration, tree).expect("a later iteration");
            counts.push(unchanged);
            progress.note(&RunEvent::Progress {
                iteration,
                fingerprint: (*tree).to_owned(),
                unchanged,
            });
            assert_eq!(progress.judge(iteration, "other"), None, "tried again");
            progress.note(&RunEvent::IterationStarted {
                iteration,
                attempt: 1,
                hat: None,
                prompt_bytes: 0,
            });
            if let Some(result) = gate {
                progress.note(&RunEvent::GateEnded {
                    iteration,
                    name: "test".into(),
                    result: *result,
                    duration_ms: 0,
                    output: String::new(),
                });
            }
        }
        counts
    }

    #[test]
    fn iterations_that_change_nothing_are_counted_in_a_row() {
        let trees = ["a", "a", "a", "b", "b", "a"].map(|tree| (tree, None));
        assert_eq!(counts(&trees), [0, 1, 2, 0, 1, 0]);
    }

    #[test]
    fn another_gate_result_is_a_change() {
        let (passed, timed_out) = (Some(GateResult::Passed), Some(GateResult::TimedOut));
        let trees = [
            ("a", passed),
            ("a", passed),
            ("a", timed_out),
            ("a", timed_out),
            ("a", None),
        ];
        assert_eq!(counts(&trees), [0, 1, 2, 0, 1]);
    }
}
