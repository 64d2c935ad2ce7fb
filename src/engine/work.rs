//! One iteration at work: what has been heard from the agent so far, which deadline comes next, and the verdict
//! when it has ended.

use std::collections::HashSet;
use std::time::Duration;

use jiff::Timestamp;

use crate::event::{
    ErrorClass, Failure, IterationOutcome, Limit, Meta, ProcessEnd, RateLimitStatus, TimeLimit, TopicEvent,
    TranscriptEvent, Usage, UsageScope,
};

use super::bill::Bill;
use super::marker::{Claim, Markers};
use super::policy::{CostRules, Ending, Messages, Policy, Reading, Timing};
use super::said::Said;

/// Why an agent that was still running was told to stop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum StopCause {
    Timeout(TimeLimit),
    /// It had given its result and did not go.
    Lingering,
    Limit(Limit),
    Interrupt,
}

/// A child that was told to stop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopping {
    pub(crate) cause: StopCause,
    /// When it was last told.
    pub(crate) at: Duration,
}

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

#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) started: Duration,
    pub(crate) stopping: Option<Stopping>,
    pub(crate) usage: Usage,
    pub(crate) bill: Bill,
    prompt: String,
    reading: Reading,
    heard: Duration,
    said: Said,
    any_output: bool,
    running_tools: HashSet<String>,
    finished: Option<Finished>,
    last_error: Option<(ErrorClass, String)>,
    rejected: Option<Rejection>,
    last_stderr: String,
}

#[derive(Debug)]
struct Finished {
    success: bool,
    reason: Option<String>,
    text: Option<String>,
}

#[derive(Debug, Clone, Copy)]
struct Rejection {
    resets_at: Option<Timestamp>,
}

/// A stderr line is quoted in a reason; more of it than this helps nobody.
const LONGEST_QUOTE: usize = 400;

impl Work {
    pub(crate) fn new(at: Duration, prompt: String, reading: Reading) -> Self {
        Self {
            started: at,
            stopping: None,
            usage: Usage::default(),
            bill: Bill::default(),
            prompt,
            reading,
            heard: at,
            said: Said::new(reading.messages == Messages::Delimited),
            any_output: false,
            running_tools: HashSet::new(),
            finished: None,
            last_error: None,
            rejected: None,
            last_stderr: String::new(),
        }
    }

    /// The agent has given its result: it ends by itself.
    pub(crate) fn has_finished(&self) -> bool {
        self.finished.is_some()
    }

    /// Bytes arrived, whatever they say.
    pub(crate) fn heard_something(&mut self, at: Duration) {
        self.heard = at;
    }

    pub(crate) fn hear_stderr(&mut self, line: &str) {
        if !line.trim().is_empty() {
            self.last_stderr.clear();
            self.last_stderr.extend(line.trim().chars().take(LONGEST_QUOTE));
        }
    }

    /// Puts a price on what is used, before it is counted and told.
    pub(crate) fn price(&mut self, event: &mut TranscriptEvent, rules: &CostRules) {
        if let TranscriptEvent::Usage { usage } = event {
            self.bill.price(usage, &self.usage, rules);
        }
    }

    /// Takes in one event; returns the topics that it brought to light.
    pub(crate) fn hear(&mut self, event: &TranscriptEvent, markers: &Markers) -> Vec<TopicEvent> {
        match event {
            TranscriptEvent::Text { text, .. } => self.any_output |= !text.trim().is_empty(),
            TranscriptEvent::ToolStart { tool } => {
                self.any_output = true;
                self.running_tools.insert(tool.id.clone());
            }
            TranscriptEvent::ToolOutput { .. } => {}
            TranscriptEvent::ToolEnd { tool } => {
                self.running_tools.remove(&tool.id);
            }
            TranscriptEvent::Usage { usage } => self.count(usage),
            TranscriptEvent::Meta { meta } => self.note(meta),
        }
        self.said.hear(event, markers)
    }

    fn count(&mut self, usage: &Usage) {
        match usage.scope {
            UsageScope::Step => self.usage.add(usage),
            UsageScope::Iteration | UsageScope::Session => self.usage = usage.clone(),
        }
        self.usage.scope = UsageScope::Step;
    }

    fn note(&mut self, meta: &Meta) {
        match meta {
            Meta::Finished {
                success,
                reason,
                text,
                ..
            } => {
                let (reason, text) = (reason.clone(), text.clone());
                self.finished = Some(Finished {
                    success: *success,
                    reason,
                    text,
                });
            }
            Meta::Session {
                model: Some(model), ..
            } => self.bill.note_model(model),
            Meta::Error { class, message, .. } => self.last_error = Some((*class, message.clone())),
            Meta::RateLimit {
                status: RateLimitStatus::Rejected,
                resets_at,
                ..
            } => {
                self.rejected = Some(Rejection {
                    resets_at: *resets_at,
                });
            }
            Meta::RateLimit {
                status: RateLimitStatus::Allowed | RateLimitStatus::Warning,
                ..
            }
            | Meta::Session { model: None, .. }
            | Meta::Retry { .. }
            | Meta::Plan { .. }
            | Meta::FileChange { .. }
            | Meta::PermissionDenied { .. }
            | Meta::ParseError { .. }
            | Meta::Cut { .. }
            | Meta::Other(_) => {}
        }
    }

    /// When the agent must be stopped if nothing more happens, and why.
    pub(crate) fn deadline(&self, timing: &Timing) -> Option<(Duration, StopCause)> {
        let wall = timing
            .wall
            .map(|wall| (self.started + wall, StopCause::Timeout(TimeLimit::Wall)));
        let idle = if self.running_tools.is_empty() {
            timing.idle
        } else {
            timing.idle_in_tool
        };
        let silence = if self.finished.is_some() {
            Some((self.heard + timing.after_result, StopCause::Lingering))
        } else {
            idle.map(|idle| (self.heard + idle, StopCause::Timeout(TimeLimit::Idle)))
        };
        [wall, silence]
            .into_iter()
            .flatten()
            .min_by_key(|(when, _)| *when)
    }

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
            Some(failure) => Verdict::Settled(self.classify(failure)),
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
            StopCause::Limit(limit) => IterationOutcome::LimitReached { limit },
            StopCause::Timeout(limit) => IterationOutcome::TimedOut { limit, after_seconds },
            StopCause::Lingering => return None,
        };
        Some(Verdict::Settled(outcome))
    }

    /// Exit code and terminal event together: either can fail an iteration, neither alone can save it.
    fn failure(&self, end: ProcessEnd) -> Option<Failure> {
        let lingered = self
            .stopping
            .is_some_and(|stopping| stopping.cause == StopCause::Lingering);
        match &self.finished {
            Some(finished) if !finished.success => {
                let message = self.last_error.as_ref().map(|(_, message)| message.clone());
                let reason = message.or_else(|| finished.reason.clone());
                return Some(Failure::AgentError {
                    message: reason.unwrap_or_else(|| "the agent reported an error".into()),
                });
            }
            Some(_) if lingered => return None,
            Some(_) | None => {}
        }
        if !end.success() {
            let error = self.last_error.as_ref().map(|(_, message)| message.clone());
            return Some(Failure::Exit {
                end,
                message: error.unwrap_or_else(|| self.last_stderr.clone()),
            });
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

    /// Some failures have a policy of their own.
    fn classify(&self, failure: Failure) -> IterationOutcome {
        let class = self.last_error.as_ref().map(|(class, _)| *class);
        let message = || match &self.last_error {
            Some((_, message)) => message.clone(),
            None => self.last_stderr.clone(),
        };
        match (class, self.rejected) {
            (_, Some(Rejection { resets_at })) => IterationOutcome::RateLimited {
                resets_at,
                message: message(),
            },
            (Some(ErrorClass::RateLimit), None) => IterationOutcome::RateLimited {
                resets_at: None,
                message: message(),
            },
            (Some(ErrorClass::Auth), None) => IterationOutcome::AuthRequired { message: message() },
            (_, None) => IterationOutcome::Failed { failure },
        }
    }
}

/// All that the end of an agent brings to light.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) verdict: Verdict,
    pub(crate) topics: Vec<TopicEvent>,
    pub(crate) ignored: Option<(String, &'static str)>,
}

fn failed(failure: Failure) -> Verdict {
    Verdict::Settled(IterationOutcome::Failed { failure })
}
