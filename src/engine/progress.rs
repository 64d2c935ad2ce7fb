//! Detects iterations without progress: compares workspace fingerprints, gate results and topics.
//!
//! All state comes from run events, so a resumed run continues the count.

use crate::event::{GateResult, RunEvent, TopicEvent};

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Progress {
    /// The iteration before which the workspace was last scanned, and its fingerprint.
    last_scan: Option<(u64, String)>,
    unchanged: u64,
    current: IterationResults,
    /// Results of the previous iteration; `None` before the second scan.
    previous: Option<IterationResults>,
}

/// Results of an iteration other than changed files.
#[derive(Debug, Clone, Default, PartialEq)]
struct IterationResults {
    gates: Vec<(String, GateResult)>,
    topics: Vec<TopicEvent>,
}

impl Progress {
    /// The number of consecutive iterations without a change, given the fingerprint before `iteration`. `None` if no
    /// iteration has ended since the last scan.
    pub(crate) fn unchanged_iterations(&self, iteration: u64, fingerprint: &str) -> Option<u64> {
        let Some((before, last_scan)) = &self.last_scan else {
            return Some(0);
        };
        if *before >= iteration {
            return None;
        }
        let same = last_scan == fingerprint
            && self
                .previous
                .as_ref()
                .is_none_or(|previous| *previous == self.current);
        Some(if same { self.unchanged + 1 } else { 0 })
    }

    /// The gate that failed in the last iteration.
    pub(crate) fn failing_gate(&self) -> Option<&str> {
        let (name, result) = self.current.gates.last()?;
        (*result != GateResult::Passed).then_some(name.as_str())
    }

    pub(crate) fn apply(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Progress {
                iteration,
                fingerprint,
                unchanged,
            } => {
                if self.last_scan.is_some() {
                    self.previous = Some(std::mem::take(&mut self.current));
                }
                self.last_scan = Some((*iteration, fingerprint.clone()));
                self.unchanged = *unchanged;
            }
            RunEvent::IterationStarted { .. } => self.current = IterationResults::default(),
            RunEvent::GateEnded { name, result, .. } => self.current.gates.push((name.clone(), *result)),
            RunEvent::Topic { event, .. } => self.current.topics.push(event.clone()),
            _ => {}
        }
    }

    /// Restarts the count; a user who resumes a stalled run wants another try.
    pub(crate) fn reset(&mut self) {
        self.unchanged = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays iterations, each with the fingerprint before it and the result of its gate.
    fn counts(iterations: &[(&str, Option<GateResult>)]) -> Vec<u64> {
        let mut progress = Progress::default();
        let mut counts = Vec::new();
        for (index, (tree, gate)) in iterations.iter().enumerate() {
            let iteration = index as u64 + 1;
            let unchanged = progress
                .unchanged_iterations(iteration, tree)
                .expect("a later iteration");
            counts.push(unchanged);
            progress.apply(&RunEvent::Progress {
                iteration,
                fingerprint: (*tree).to_owned(),
                unchanged,
            });
            assert_eq!(
                progress.unchanged_iterations(iteration, "other"),
                None,
                "repeated iteration"
            );
            progress.apply(&RunEvent::IterationStarted {
                iteration,
                attempt: 1,
                hat: None,
                agent: None,
                prompt_bytes: 0,
            });
            if let Some(result) = gate {
                progress.apply(&RunEvent::GateEnded {
                    iteration,
                    name: "test".into(),
                    result: *result,
                    duration_ms: 0,
                    output: String::new(),
                    details: Box::default(),
                });
            }
        }
        counts
    }

    #[test]
    fn consecutive_iterations_without_change_are_counted() {
        let trees = ["a", "a", "a", "b", "b", "a"].map(|tree| (tree, None));
        assert_eq!(counts(&trees), [0, 1, 2, 0, 1, 0]);
    }

    #[test]
    fn changed_gate_result_is_progress() {
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
