//! One attempt: the state of a running agent, its deadlines, and the verdict when it has exited.

mod classify;
mod error_text;
mod verdict;

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;

use crate::event::{
    ErrorClass, Meta, NoticeLevel, RateLimitStatus, RunLimit, Tag, TimeLimit, TopicEvent, TranscriptEvent,
    Usage, UsageScope,
};

use super::cost::CostTracker;
use super::final_message::FinalMessage;
use super::marker::Markers;
use super::policy::{AgentRules, MessageBoundaries, TranscriptFeatures};
use super::test_claim::TestClaim;
use crate::policy::{AttemptTimeouts, CostRules, Seconds, Timing};

pub(crate) use verdict::{AttemptVerdict, Evaluation};

/// Why a running child is stopped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum StopCause {
    Timeout(TimeLimit),
    /// The agent reported its result but did not exit.
    Lingering,
    Limit(RunLimit),
    /// The agent printed more than it may.
    Output {
        max_bytes: u64,
    },
    /// The user skips to the next iteration.
    Skip,
    Interrupt,
}

/// Whether the agent changed only allowed paths.
#[derive(Debug, Default)]
pub(crate) enum PathCheck {
    #[default]
    Passed,
    Violated {
        files: Vec<String>,
    },
    /// The check could not be made, which fails the iteration.
    Impossible {
        reason: String,
    },
}

/// A request to stop a child.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StopRequest {
    pub(crate) cause: StopCause,
    /// When the child was last stopped or killed.
    pub(crate) at: Duration,
}

#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) started: Duration,
    pub(crate) stop_request: Option<StopRequest>,
    pub(crate) usage: Usage,
    /// Usage of the reviewers that judged the attempt.
    pub(crate) review_usage: Usage,
    pub(crate) paths: PathCheck,
    /// The session that the agent reported.
    pub(crate) reported_session: Option<String>,
    /// A tool that the agent was not allowed to use.
    pub(crate) denied_tool: Option<String>,
    /// A completion marker that the agent published as a topic.
    pub(crate) completion_topic: Option<String>,
    /// Tools that the active hat must not use.
    pub(crate) disallowed_tools: Vec<String>,
    /// The first disallowed tool that the agent used.
    used_disallowed_tool: Option<String>,
    /// The session's cumulative usage before this iteration.
    pub(crate) session_usage_before: Usage,
    /// The session's cumulative usage in its last report.
    pub(crate) session_usage: Option<Usage>,
    pub(crate) cost: CostTracker,
    /// Finds claims about tests that were not run.
    pub(crate) test_claim: TestClaim,
    prompt: String,
    transcript: TranscriptFeatures,
    timeouts: AttemptTimeouts,
    last_output_at: Duration,
    final_message: FinalMessage,
    any_output: bool,
    output_bytes: u64,
    /// When the free disk space is checked next.
    pub(crate) disk_check_at: Duration,
    /// Whether the model produced text or used a tool.
    model_responded: bool,
    /// The number of running tool calls. Adapters end each call that they start, once.
    running_tools: u64,
    finished: Option<AgentResult>,
    /// Descriptions of the agent's background tasks.
    background_tasks: Vec<String>,
    /// Consecutive failed results without a tool call between them.
    failed_results: u32,
    last_error: Option<ReportedError>,
    rejected: Option<RateLimitRejection>,
    /// The last non-blank lines of stderr, and of a transcript without messages.
    stderr: VecDeque<String>,
    output_lines: VecDeque<String>,
}

#[derive(Debug)]
struct AgentResult {
    success: bool,
    reason: Option<String>,
    /// The agent takes another turn after this result.
    continued: bool,
}

#[derive(Debug)]
struct ReportedError {
    class: ErrorClass,
    message: String,
    status: Option<u16>,
}

#[derive(Debug, Clone, Copy)]
struct RateLimitRejection {
    resets_at: Option<Timestamp>,
}

/// An agent that reports this many failed results in a row is stopped.
const MAX_FAILED_RESULTS: u32 = 5;

/// How often the free disk space is checked while an agent works.
pub(crate) const DISK_CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// Stderr lines are quoted in failure reasons; longer lines are cut.
const MAX_STDERR_LINE_CHARS: usize = 400;
/// How many of the last stderr lines are searched for the reason of a failure.
const STDERR_LINES: usize = 20;
/// The HTTP status of an overloaded service; the agent waits as it does for a usage limit.
const OVERLOADED: u16 = 529;

impl Attempt {
    pub(crate) fn new(at: Duration, prompt: String, agent: &AgentRules) -> Self {
        let transcript = agent.transcript;
        Self {
            started: at,
            stop_request: None,
            usage: Usage::default(),
            review_usage: Usage::default(),
            paths: PathCheck::default(),
            reported_session: None,
            denied_tool: None,
            completion_topic: None,
            disallowed_tools: Vec::new(),
            used_disallowed_tool: None,
            session_usage_before: Usage::default(),
            session_usage: None,
            cost: CostTracker::default(),
            test_claim: TestClaim::default(),
            prompt,
            transcript,
            timeouts: agent.timeouts,
            last_output_at: at,
            final_message: FinalMessage::new(transcript.messages == MessageBoundaries::Delimited),
            any_output: false,
            output_bytes: 0,
            disk_check_at: at + DISK_CHECK_INTERVAL,
            model_responded: false,
            running_tools: 0,
            finished: None,
            background_tasks: Vec::new(),
            failed_results: 0,
            last_error: None,
            rejected: None,
            stderr: VecDeque::new(),
            output_lines: VecDeque::new(),
        }
    }

    /// Whether the agent has reported its result; it should exit by itself.
    pub(crate) fn has_finished(&self) -> bool {
        self.finished.is_some()
    }

    /// Counts output of the agent; returns how much it has printed.
    pub(crate) fn count_output(&mut self, at: Duration, bytes: u64) -> u64 {
        self.reset_idle_timer(at);
        self.output_bytes = self.output_bytes.saturating_add(bytes);
        self.output_bytes
    }

    /// Whether the agent reported a rejection in its output.
    pub(crate) fn was_rejected(&self) -> bool {
        self.rejected.is_some()
    }

    /// Whether the model has produced text or used a tool.
    pub(crate) fn has_responded(&self) -> bool {
        self.model_responded
    }

    /// Restarts the idle deadline, because output or a key arrived.
    pub(crate) fn reset_idle_timer(&mut self, at: Duration) {
        self.last_output_at = at;
    }

    /// The final message so far. Formats without messages: all of the output, without an echoed prompt.
    pub(crate) fn final_text(&self) -> String {
        self.final_message.text(&self.prompt).into_owned()
    }

    pub(crate) fn push_stderr_line(&mut self, line: &str) {
        push_last_line(&mut self.stderr, line);
    }

    /// Completes a usage event before it is counted and emitted: a session's total becomes the iteration's total, and a
    /// missing cost is computed.
    pub(crate) fn complete_usage(&mut self, event: &mut TranscriptEvent, rules: &CostRules) {
        let TranscriptEvent::Usage { usage } = event else {
            return;
        };
        if usage.scope == UsageScope::Session {
            let iteration = Usage {
                scope: UsageScope::Iteration,
                ..usage.since(&self.session_usage_before)
            };
            self.session_usage = Some(std::mem::replace(usage, iteration));
        }
        self.cost.price(usage, &self.usage, rules);
    }

    /// Processes one event; returns the topics that it published.
    pub(crate) fn apply_event(&mut self, event: &TranscriptEvent, markers: &Markers) -> Vec<TopicEvent> {
        match event {
            TranscriptEvent::Text { tag, text, .. } => {
                if self.transcript.messages == MessageBoundaries::LinesOnly {
                    text.lines()
                        .for_each(|line| push_last_line(&mut self.output_lines, line));
                }
                self.any_output = self.any_output || !text.trim().is_empty();
                self.model_responded |= matches!(tag, Tag::Ai | Tag::Think);
            }
            TranscriptEvent::ToolStart { tool } => {
                if self.used_disallowed_tool.is_none() && self.disallowed_tools.contains(&tool.name) {
                    self.used_disallowed_tool = Some(tool.name.clone());
                }
                self.any_output = true;
                self.model_responded = true;
                self.failed_results = 0;
                self.running_tools += 1;
            }
            TranscriptEvent::ToolOutput { .. } => {}
            TranscriptEvent::ToolEnd { .. } => {
                self.running_tools = self.running_tools.saturating_sub(1);
            }
            TranscriptEvent::Usage { usage } => self.usage.accumulate(usage),
            TranscriptEvent::Meta { meta } => self.apply_meta(meta),
        }
        self.note_further_turn(event);
        self.test_claim.apply_event(event);
        match self.transcript.messages {
            MessageBoundaries::Delimited | MessageBoundaries::LinesOnly => {
                self.final_message.apply_event(event, markers)
            }
            MessageBoundaries::Screen => Vec::new(),
        }
    }

    /// Notes that the agent continues after its result: it takes another turn, for example after a background task.
    fn note_further_turn(&mut self, event: &TranscriptEvent) {
        let Some(finished) = &mut self.finished else {
            return;
        };
        finished.continued |= match event {
            TranscriptEvent::Text {
                tag: Tag::Ai,
                text,
                parent: None,
                ..
            } => !text.trim().is_empty(),
            TranscriptEvent::ToolStart { tool } => tool.parent.is_none(),
            TranscriptEvent::Meta {
                meta: Meta::Session { .. },
            } => true,
            TranscriptEvent::Text { .. }
            | TranscriptEvent::ToolOutput { .. }
            | TranscriptEvent::ToolEnd { .. }
            | TranscriptEvent::Usage { .. }
            | TranscriptEvent::Meta { .. } => false,
        };
    }

    fn apply_meta(&mut self, meta: &Meta) {
        match meta {
            Meta::Finished { success, reason, .. } => {
                self.failed_results = if *success { 0 } else { self.failed_results + 1 };
                self.finished = Some(AgentResult {
                    success: *success,
                    reason: reason.clone(),
                    continued: false,
                });
            }
            Meta::BackgroundTasks { tasks } => self.background_tasks.clone_from(tasks),
            Meta::Session {
                session_id, model, ..
            } => {
                self.reported_session = Some(session_id.clone());
                if let Some(model) = model {
                    self.cost.note_model(model);
                }
            }
            Meta::PermissionDenied { tool } => self.denied_tool = Some(tool.clone()),
            Meta::Error {
                class,
                message,
                status,
            } => {
                self.last_error = Some(ReportedError {
                    class: *class,
                    message: message.clone(),
                    status: *status,
                });
            }
            Meta::RateLimit {
                status: RateLimitStatus::Rejected,
                resets_at,
                ..
            } => {
                // Of several limits, the one that resets last counts.
                let known = self.rejected.and_then(|rejected| rejected.resets_at);
                self.rejected = Some(RateLimitRejection {
                    resets_at: known.max(*resets_at),
                });
            }
            Meta::RateLimit {
                status: RateLimitStatus::Allowed | RateLimitStatus::Warning,
                ..
            }
            | Meta::Retry { .. }
            | Meta::Plan { .. }
            | Meta::FileChange { .. }
            | Meta::ParseError { .. }
            | Meta::Cut { .. }
            | Meta::Unknown { .. }
            | Meta::Other(_) => {}
        }
    }

    /// Whether the agent failed before the model responded, although the model could be reached.
    pub(crate) fn failed_before_model_responded(&self) -> bool {
        let unreachable = self.last_error.as_ref().is_some_and(|error| match error.class {
            ErrorClass::Auth | ErrorClass::RateLimit | ErrorClass::Overload | ErrorClass::Network => true,
            ErrorClass::BadRequest
            | ErrorClass::TooLong
            | ErrorClass::Refused
            | ErrorClass::MaxTurns
            | ErrorClass::Budget
            | ErrorClass::Other => false,
        });
        !self.model_responded && !unreachable
    }

    /// Whether the agent keeps reporting failed results and will not exit by itself.
    pub(crate) fn repeats_failed_results(&self) -> bool {
        self.failed_results >= MAX_FAILED_RESULTS
    }

    fn idle_limit(&self) -> Option<Duration> {
        if self.running_tools == 0 && self.background_tasks.is_empty() {
            self.timeouts.idle
        } else {
            self.timeouts.idle_in_tool
        }
    }

    /// How long the agent may stay alive without output after its result. It continues when a background task has ended.
    fn lingering_limit(&self, timing: &Timing) -> Option<Duration> {
        if self.background_tasks.is_empty() {
            Some(timing.after_result)
        } else {
            self.timeouts.idle_in_tool
        }
    }

    /// Why an agent that has reported its result is stopped, for the user.
    pub(crate) fn lingering_notice(&self, timing: &Timing) -> (NoticeLevel, String) {
        let seconds = |limit: Duration| Seconds(limit.as_secs());
        match &self.background_tasks[..] {
            _ if self.repeats_failed_results() => (
                NoticeLevel::Warning,
                format!("stopped the agent after {MAX_FAILED_RESULTS} failed results in a row"),
            ),
            [] => (
                NoticeLevel::Info,
                format!(
                    "stopped the agent {} after its result (event_loop.result_grace_seconds)",
                    seconds(timing.after_result)
                ),
            ),
            tasks => {
                let running = match tasks.len() {
                    1 => "1 background task was".to_owned(),
                    count => format!("{count} background tasks were"),
                };
                let text = format!(
                    "stopped the agent after {} without output (adapters.NAME.idle_timeout); {running} still running: {}",
                    seconds(self.timeouts.idle_in_tool.unwrap_or_default()),
                    tasks.join(", ")
                );
                (NoticeLevel::Warning, text)
            }
        }
    }

    /// When and why the agent has to be stopped if nothing else happens.
    pub(crate) fn deadline(&self, timing: &Timing) -> Option<(Duration, StopCause)> {
        let wall = self
            .timeouts
            .wall
            .map(|wall| (self.started + wall, StopCause::Timeout(TimeLimit::Wall)));
        let idle_deadline = match &self.finished {
            Some(result) if !result.continued => self
                .lingering_limit(timing)
                .map(|limit| (self.last_output_at + limit, StopCause::Lingering)),
            Some(_) | None => self
                .idle_limit()
                .map(|idle| (self.last_output_at + idle, StopCause::Timeout(TimeLimit::Idle))),
        };
        [wall, idle_deadline]
            .into_iter()
            .flatten()
            .min_by_key(|(when, _)| *when)
    }
}

/// Appends a line to the last non-blank lines of an output.
fn push_last_line(lines: &mut VecDeque<String>, line: &str) {
    if line.trim().is_empty() {
        return;
    }
    if lines.len() == STDERR_LINES {
        lines.pop_front();
    }
    lines.push_back(line.trim().chars().take(MAX_STDERR_LINE_CHARS).collect());
}
