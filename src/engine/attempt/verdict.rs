//! The verdict on an iteration whose agent has ended.

use std::time::Duration;

use super::classify::WallClock;
use super::{Attempt, StopCause};
use crate::engine::marker::Claim;
use crate::engine::policy::{Ending, Policy};
use crate::event::{Failure, IterationOutcome, ProcessEnd, TopicEvent};

/// Files that are named one by one.
const MOST_NAMES: usize = 20;

/// The verdict on an iteration.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub(crate) enum Verdict {
    /// The agent claims to be done; the gates have the last word.
    Claimed {
        marker: String,
    },
    Settled(IterationOutcome),
}

/// All that the end of an agent brings to light.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) verdict: Verdict,
    pub(crate) topics: Vec<TopicEvent>,
    pub(crate) ignored: Option<(String, &'static str)>,
}

impl Attempt {
    /// The process has ended: what was this iteration? Also: topics of the last message, and a marker that was
    /// seen but does not count, with the reason.
    pub(crate) fn judge(&mut self, at: Duration, end: ProcessEnd, policy: &Policy) -> Judged {
        let repeated = self.finished.as_ref().and_then(|finished| finished.text.clone());
        let (claim, topics) = self
            .said
            .finish(repeated.as_deref(), &policy.markers, &self.prompt);
        let ignored = match &claim {
            Claim::Ignored { marker, reason } => Some((marker.clone(), *reason)),
            Claim::None | Claim::Done { .. } | Claim::Failed { .. } => None,
        };
        let verdict = self.stopped(at).unwrap_or_else(|| match self.failure(end) {
            None if !self.strayed.is_empty() => failed(self.out_of_bounds()),
            Some(failure) => {
                let clock = WallClock {
                    now: policy.started_at.checked_add(at).unwrap_or(policy.started_at),
                    zone: &policy.zone,
                    phrases: &policy.limit_phrases,
                };
                Verdict::Settled(self.classify(failure, &clock))
            }
            None => match claim {
                Claim::Done { marker } => Verdict::Claimed { marker },
                Claim::Failed { marker } => failed(Failure::Declared { marker }),
                Claim::None | Claim::Ignored { .. } => {
                    Verdict::Settled(IterationOutcome::Continued { rejected_by: None })
                }
            },
        });
        Judged {
            verdict,
            topics,
            ignored,
        }
    }

    /// The verdict when it was ralph who ended the agent.
    fn stopped(&self, at: Duration) -> Option<Verdict> {
        let after_seconds = (at - self.started).as_secs();
        let outcome = match self.stopping?.cause {
            StopCause::Interrupt => IterationOutcome::Interrupted,
            StopCause::Skip => IterationOutcome::Skipped,
            StopCause::Limit(limit) => IterationOutcome::LimitReached { limit },
            StopCause::Timeout(limit) => IterationOutcome::TimedOut { limit, after_seconds },
            StopCause::Lingering => return None,
        };
        Some(Verdict::Settled(outcome))
    }

    /// Enough of the names to find the rest.
    fn out_of_bounds(&self) -> Failure {
        let files: Vec<String> = self.strayed.iter().take(MOST_NAMES).cloned().collect();
        let more = (self.strayed.len() - files.len()) as u64;
        Failure::OutsideAllowedPaths { files, more }
    }

    /// Exit code and terminal event together: either can fail an iteration, neither alone can save it.
    fn failure(&self, end: ProcessEnd) -> Option<Failure> {
        let lingered = self
            .stopping
            .is_some_and(|stopping| stopping.cause == StopCause::Lingering);
        match &self.finished {
            Some(finished) if !finished.success => {
                let error = self.last_error.as_ref();
                let reason = error
                    .map(|error| error.message.clone())
                    .or_else(|| finished.reason.clone());
                return Some(Failure::AgentError {
                    message: reason.unwrap_or_else(|| "the agent reported an error".into()),
                });
            }
            Some(_) if lingered => return None,
            Some(_) | None => {}
        }
        if !end.success() {
            let message = self.error_message();
            return Some(Failure::Exit { end, message });
        }
        if !self.any_output
            && self
                .finished
                .as_ref()
                .is_none_or(|finished| finished.text.is_none())
        {
            return Some(Failure::NoOutput);
        }
        let cut_off = self.reading.ending == Ending::TerminalEvent && self.finished.is_none();
        cut_off.then_some(Failure::NoTerminalEvent)
    }

    /// The agent's own words for what went wrong.
    pub(super) fn error_message(&self) -> String {
        let last_line = || self.stderr.back().cloned().unwrap_or_default();
        match &self.last_error {
            Some(error) => error.message.clone(),
            None => last_line(),
        }
    }
}

fn failed(failure: Failure) -> Verdict {
    Verdict::Settled(IterationOutcome::Failed { failure })
}
