//! Decides the verdict of an attempt after the agent has exited.

use std::time::Duration;

use super::classify::ClassifyContext;
use super::{Attempt, PathCheck, StopCause, error_text};
use crate::engine::marker::Claim;
use crate::engine::policy::{AgentRules, EndSignal, Policy};
use crate::event::{AgentEnd, IterationFailure, IterationOutcome, TopicEvent};

/// How many violated paths are listed by name.
const MAX_LISTED_FILES: usize = 20;

/// The verdict of an attempt.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub(crate) enum AttemptVerdict {
    /// The agent claims to be done; the gates decide.
    CompletionClaimed {
        marker: String,
    },
    Ended(IterationOutcome),
}

/// The result of evaluating an exited agent.
#[derive(Debug)]
pub(crate) struct Evaluation {
    pub(crate) verdict: AttemptVerdict,
    /// Topics of the last message.
    pub(crate) topics: Vec<TopicEvent>,
    /// A marker that does not count, and the reason.
    pub(crate) ignored: Option<(String, &'static str)>,
}

impl Attempt {
    /// Evaluates the attempt after the process has exited.
    pub(crate) fn evaluate(
        &mut self,
        at: Duration,
        end: &AgentEnd,
        policy: &Policy,
        agent: &AgentRules,
    ) -> Evaluation {
        let (claim, topics) = self.final_message.finish(&policy.markers, &self.prompt);
        let ignored = match &claim {
            Claim::Ignored { marker, reason } => Some((marker.clone(), *reason)),
            Claim::None | Claim::Done { .. } | Claim::Failed { .. } => None,
        };
        let verdict = self
            .verdict_if_stopped(at)
            .unwrap_or_else(|| match self.failure(end) {
                Some(failure) => {
                    let context = ClassifyContext {
                        now: policy.started_at.checked_add(at).unwrap_or(policy.started_at),
                        zone: &policy.zone,
                        phrases: &agent.limit_phrases,
                    };
                    AttemptVerdict::Ended(self.classify(failure, &context))
                }
                None => match (self.rule_failure(), claim) {
                    (Some(failure), _) => failed(failure),
                    (None, claim) => match claim {
                        Claim::Done { marker } => AttemptVerdict::CompletionClaimed { marker },
                        Claim::Failed { marker } => failed(IterationFailure::Declared { marker }),
                        Claim::None | Claim::Ignored { .. } => {
                            AttemptVerdict::Ended(IterationOutcome::Continued { rejected_by: None })
                        }
                    },
                },
            });
        Evaluation {
            verdict,
            topics,
            ignored,
        }
    }

    /// The verdict if ralph stopped the agent.
    fn verdict_if_stopped(&self, at: Duration) -> Option<AttemptVerdict> {
        let after_seconds = (at - self.started).as_secs();
        let outcome = match self.stop_request?.cause {
            StopCause::Interrupt => IterationOutcome::Interrupted,
            StopCause::Skip => IterationOutcome::Skipped,
            StopCause::Limit(limit) => IterationOutcome::LimitReached { limit },
            StopCause::Timeout(limit) => IterationOutcome::TimedOut { limit, after_seconds },
            StopCause::Output { max_bytes } => {
                let failure = IterationFailure::TooMuchOutput { max_bytes };
                IterationOutcome::Failed { failure }
            }
            StopCause::Lingering => return None,
        };
        Some(AttemptVerdict::Ended(outcome))
    }

    /// The violation of a rule about the agent's actions.
    fn rule_failure(&self) -> Option<IterationFailure> {
        let tool = self.used_disallowed_tool.clone();
        tool.map(|tool| IterationFailure::DisallowedTool { tool })
            .or_else(|| self.path_failure())
    }

    fn path_failure(&self) -> Option<IterationFailure> {
        match &self.paths {
            PathCheck::Passed => None,
            PathCheck::Impossible { reason } => Some(IterationFailure::PathsNotChecked {
                reason: reason.clone(),
            }),
            PathCheck::Violated { files } => {
                let listed: Vec<String> = files.iter().take(MAX_LISTED_FILES).cloned().collect();
                let more = (files.len() - listed.len()) as u64;
                Some(IterationFailure::OutsideAllowedPaths { files: listed, more })
            }
        }
    }

    /// A failed exit code or a failed terminal event fails the iteration; success needs both.
    fn failure(&self, end: &AgentEnd) -> Option<IterationFailure> {
        let lingered = self
            .stop_request
            .is_some_and(|stop| stop.cause == StopCause::Lingering);
        match &self.finished {
            Some(finished) if !finished.success => {
                let error = self.last_error.as_ref();
                let reason = error
                    .map(|error| error.message.clone())
                    .or_else(|| finished.reason.clone());
                return Some(IterationFailure::AgentError {
                    message: reason.unwrap_or_else(|| "the agent reported an error".into()),
                });
            }
            Some(_) if lingered => return None,
            Some(_) | None => {}
        }
        if !end.success() {
            let message = self.error_message();
            return Some(IterationFailure::Exit {
                end: end.clone(),
                message,
            });
        }
        if !self.any_output {
            return Some(IterationFailure::NoOutput);
        }
        let cut_off = self.transcript.end == EndSignal::TerminalEvent && self.finished.is_none();
        cut_off.then_some(IterationFailure::NoTerminalEvent)
    }

    /// The agent's last error message, or the line of its error output that names the cause.
    pub(super) fn error_message(&self) -> String {
        match &self.last_error {
            Some(error) => error.message.clone(),
            None => self.cause_line().unwrap_or_default().to_owned(),
        }
    }

    /// The line of stderr that names the cause, or of stdout if nothing was printed to stderr.
    pub(super) fn cause_line(&self) -> Option<&str> {
        let lines = if self.stderr.is_empty() {
            &self.output_lines
        } else {
            &self.stderr
        };
        error_text::cause_line(lines.iter().map(String::as_str))
    }
}

fn failed(failure: IterationFailure) -> AttemptVerdict {
    AttemptVerdict::Ended(IterationOutcome::Failed { failure })
}
