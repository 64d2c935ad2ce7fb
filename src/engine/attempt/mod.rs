//! One iteration at work: what has been heard from the agent so far, which deadline comes next, and the verdict
//! when it has ended.

mod classify;
mod verdict;

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;

use crate::event::{
    ErrorClass, Limit, Meta, RateLimitStatus, Tag, TimeLimit, TopicEvent, TranscriptEvent, Usage, UsageScope,
};

use super::cost::CostTracker;
use super::final_message::{self, FinalMessage};
use super::marker::Markers;
use super::policy::{CostRules, Messages, Reading, Timing};

pub(crate) use verdict::{Judged, Verdict};

/// Why an agent that was still running was told to stop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum StopCause {
    Timeout(TimeLimit),
    /// It had given its result and did not go.
    Lingering,
    Limit(Limit),
    /// The user wants the next iteration.
    Skip,
    Interrupt,
}

/// A child that was told to stop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopping {
    pub(crate) cause: StopCause,
    /// When it was last told.
    pub(crate) at: Duration,
}

#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) started: Duration,
    pub(crate) stopping: Option<Stopping>,
    pub(crate) usage: Usage,
    /// What the agent changed and may not change.
    pub(crate) strayed: Vec<String>,
    /// What its session had used before this iteration, and has used by now.
    pub(crate) used_before: Usage,
    pub(crate) session_used: Option<Usage>,
    pub(crate) bill: CostTracker,
    prompt: String,
    reading: Reading,
    heard: Duration,
    said: FinalMessage,
    any_output: bool,
    /// The model spoke, or used a tool.
    worked: bool,
    running_tools: Vec<String>,
    finished: Option<Finished>,
    /// Results that said "failed", one after the other, with nothing done between them.
    failed_results: u32,
    last_error: Option<AgentError>,
    rejected: Option<Rejection>,
    /// Its last lines that are not blank.
    stderr: VecDeque<String>,
}

#[derive(Debug)]
struct Finished {
    success: bool,
    reason: Option<String>,
    text: Option<String>,
}

#[derive(Debug)]
struct AgentError {
    class: ErrorClass,
    message: String,
}

#[derive(Debug, Clone, Copy)]
struct Rejection {
    resets_at: Option<Timestamp>,
}

/// So many failed results in a row are enough.
const CIRCLES: u32 = 5;

/// A stderr line is quoted in a reason; more of it than this helps nobody.
const LONGEST_QUOTE: usize = 400;
/// How many of the last lines of stderr may hold the reason of a failure.
const STDERR_LINES: usize = 20;
/// Anthropic's status for an overloaded service; it passes as a usage limit does.
const OVERLOADED: u16 = 529;

impl Attempt {
    pub(crate) fn new(at: Duration, prompt: String, reading: Reading) -> Self {
        Self {
            started: at,
            stopping: None,
            usage: Usage::default(),
            strayed: Vec::new(),
            used_before: Usage::default(),
            session_used: None,
            bill: CostTracker::default(),
            prompt,
            reading,
            heard: at,
            said: FinalMessage::new(reading.messages == Messages::Delimited),
            any_output: false,
            worked: false,
            running_tools: Vec::new(),
            finished: None,
            failed_results: 0,
            last_error: None,
            rejected: None,
            stderr: VecDeque::new(),
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
        if line.trim().is_empty() {
            return;
        }
        if self.stderr.len() == STDERR_LINES {
            self.stderr.pop_front();
        }
        self.stderr
            .push_back(line.trim().chars().take(LONGEST_QUOTE).collect());
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
            TranscriptEvent::Text { tag, text, .. } => {
                self.any_output = self.any_output || !text.trim().is_empty();
                self.worked |= matches!(tag, Tag::Ai | Tag::Think);
            }
            TranscriptEvent::ToolStart { tool } => {
                self.any_output = true;
                self.worked = true;
                self.failed_results = 0;
                if !self.running_tools.contains(&tool.id) {
                    self.running_tools.push(tool.id.clone());
                }
            }
            TranscriptEvent::ToolOutput { .. } => {}
            TranscriptEvent::ToolEnd { tool } => {
                self.running_tools.retain(|id| *id != tool.id);
            }
            TranscriptEvent::Usage { usage } => self.count(usage),
            TranscriptEvent::Meta { meta } => self.note(meta),
        }
        self.forget_a_result_that_was_not_the_last_word(event);
        match self.reading.messages {
            Messages::Delimited | Messages::Absent => self.said.hear(event, markers),
            Messages::Watched => Vec::new(),
        }
    }

    /// What a session used before this iteration was counted then.
    fn count(&mut self, usage: &Usage) {
        if usage.scope == UsageScope::Session {
            count(&mut self.usage, &usage.since(&self.used_before));
            self.session_used = Some(usage.clone());
        } else {
            count(&mut self.usage, usage);
        }
    }

    /// An agent may go on after its result: then what the result repeats is no longer the final message.
    fn forget_a_result_that_was_not_the_last_word(&mut self, event: &TranscriptEvent) {
        let Some(finished) = &mut self.finished else {
            return;
        };
        let goes_on = match event {
            TranscriptEvent::Text {
                tag: Tag::Ai,
                text,
                parent: None,
                ..
            } => !text.trim().is_empty(),
            TranscriptEvent::ToolStart { tool } => tool.parent.is_none(),
            TranscriptEvent::Text { .. }
            | TranscriptEvent::ToolOutput { .. }
            | TranscriptEvent::ToolEnd { .. }
            | TranscriptEvent::Usage { .. }
            | TranscriptEvent::Meta { .. } => false,
        };
        if goes_on {
            finished.text = None;
        }
    }

    fn note(&mut self, meta: &Meta) {
        match meta {
            Meta::Finished {
                success,
                reason,
                text,
                ..
            } => {
                let (reason, text) = (reason.clone(), text.as_deref().map(final_message::judged));
                self.failed_results = if *success { 0 } else { self.failed_results + 1 };
                self.finished = Some(Finished {
                    success: *success,
                    reason,
                    text,
                });
            }
            Meta::Session {
                model: Some(model), ..
            } => self.bill.note_model(model),
            Meta::Error {
                class,
                message,
                status,
            } => {
                let class = match status {
                    Some(OVERLOADED) => ErrorClass::RateLimit,
                    Some(_) | None => *class,
                };
                self.last_error = Some(AgentError {
                    class,
                    message: message.clone(),
                });
            }
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

    /// It failed before the model said a word, and not because the model could not be reached.
    pub(crate) fn never_began(&self) -> bool {
        let elsewhere = self.last_error.as_ref().is_some_and(|error| match error.class {
            ErrorClass::Auth | ErrorClass::RateLimit | ErrorClass::Overload | ErrorClass::Network => true,
            ErrorClass::BadRequest
            | ErrorClass::TooLong
            | ErrorClass::Refused
            | ErrorClass::MaxTurns
            | ErrorClass::Budget
            | ErrorClass::Other => false,
        });
        !self.worked && !elsewhere
    }

    /// It has failed again and again and goes on all the same; by itself it will not end.
    pub(crate) fn goes_in_circles(&self) -> bool {
        self.failed_results >= CIRCLES
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
}

/// Adds a usage figure to what an iteration has used so far, or puts it in its place.
pub(crate) fn count(used: &mut Usage, usage: &Usage) {
    match usage.scope {
        UsageScope::Step => used.add(usage),
        UsageScope::Iteration | UsageScope::Session => *used = usage.clone(),
    }
    used.scope = UsageScope::Step;
}
