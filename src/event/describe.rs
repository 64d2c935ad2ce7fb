//! What people read about a run event, and when its record must survive a power failure. All front ends print these
//! sentences; they add only layout and hints about their own keys.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp, tz::TimeZone};

use super::verdict::{self, PassedGates, iteration_verdict, run_verdict};
use super::{
    AgentChangeReason, AgentEnd, Command, DeniedAccess, ErrorClass, FileChangeKind, Finding, FindingStatus,
    GateResult, Meta, NoticeLevel, PlanItem, PlanStatus, RateLimitStatus, Resumption, ReviewerResult,
    RunEvent, TopicEvent, TranscriptEvent, UnknownOutput, UnknownPart, Usage, units,
};

/// The meaning of a piece of text. Front ends choose a style for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tone {
    #[default]
    Plain,
    Strong,
    /// Secondary text: reasoning, rules, gutters.
    Faint,
    Good,
    Bad,
    Warning,
    /// Names that readers scan for, such as tools and hats.
    Accent,
}

/// One event in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    pub tag: NoteTag,
    pub tone: Tone,
    /// Usually one sentence. Texts of the agent and of the user are not cleaned or truncated.
    pub text: String,
    pub detail: Detail,
}

/// What a description is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoteTag {
    Note,
    Warning,
    Error,
    /// The agent's process.
    System,
    /// The agent's session.
    Session,
    Wait,
    /// The run waits for the user.
    Pause,
    Topic,
    User,
    File,
    Plan,
    Gate,
    /// The start of an iteration.
    Iteration,
    /// How an iteration or the run ended.
    Verdict,
}

/// The reader of a description.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    Normal,
    /// Starts and ends that the layout of a transcript shows anyway.
    Lifecycle,
    Verbose,
}

/// The context of a description: what the sentence depends on besides the event.
#[derive(Debug, Clone, Copy)]
pub struct DescribeContext<'a> {
    /// The time of the record.
    pub at: Timestamp,
    pub zone: &'a TimeZone,
    pub gates: &'a PassedGates,
}

/// When a record is synced to disk, so that it survives a power failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Before the next event.
    Immediate,
    /// By the sync thread, while the run continues.
    Background,
    /// With a later record.
    Deferred,
}

const SESSION_ID_CHARS: usize = 8;

impl NoteTag {
    /// The label in front of the text, at most seven letters.
    pub fn label(self) -> &'static str {
        match self {
            Self::Note | Self::Iteration => "NOTE",
            Self::Warning => "WARN",
            Self::Error => "ERROR",
            Self::System | Self::Session => "SYS",
            Self::Wait | Self::Pause => "WAIT",
            Self::Topic => "TOPIC",
            Self::User => "USER",
            Self::File => "FILE",
            Self::Plan => "PLAN",
            Self::Gate => "GATE",
            Self::Verdict => "REPORT",
        }
    }
}

impl Description {
    fn new(tag: NoteTag, tone: Tone, text: impl Into<String>) -> Self {
        Self {
            tag,
            tone,
            text: text.into(),
            detail: Detail::Normal,
        }
    }

    fn warning(text: impl Into<String>) -> Self {
        Self::new(NoteTag::Warning, Tone::Warning, text)
    }

    fn error(text: impl Into<String>) -> Self {
        Self::new(NoteTag::Error, Tone::Bad, text)
    }

    fn system(text: impl Into<String>) -> Self {
        Self::new(NoteTag::System, Tone::Faint, text)
    }

    fn session(text: impl Into<String>) -> Self {
        Self::new(NoteTag::Session, Tone::Faint, text)
    }

    fn with_detail(self, detail: Detail) -> Self {
        Self { detail, ..self }
    }

    /// One character that stands for the label.
    pub fn mark(&self) -> &'static str {
        match self.tag {
            NoteTag::Note | NoteTag::System | NoteTag::Session => "·",
            NoteTag::Warning => "!",
            NoteTag::Error => "✗",
            NoteTag::Wait => "◷",
            NoteTag::Pause => "‖",
            NoteTag::Topic => "»",
            NoteTag::User => "✉",
            NoteTag::File => "~",
            NoteTag::Plan => "≡",
            NoteTag::Iteration => "▸",
            NoteTag::Gate | NoteTag::Verdict => match self.tone {
                Tone::Good => "✓",
                Tone::Bad => "✗",
                Tone::Warning => "!",
                Tone::Plain | Tone::Strong | Tone::Faint | Tone::Accent => "→",
            },
        }
    }
}

impl RunEvent {
    /// The event in words; `None` if front ends render it themselves, such as text and tool calls, or if it needs no text.
    #[expect(clippy::too_many_lines, reason = "one short arm for each event")]
    pub fn describe(&self, context: &DescribeContext<'_>) -> Option<Description> {
        use NoteTag::{Iteration, Note, Pause, Topic, Wait};
        Some(match self {
            Self::RunStarted(header) => {
                Description::system(format!("run {} with {}", header.run_id, header.agent))
                    .with_detail(Detail::Lifecycle)
            }
            Self::RunResumed(resumption) => Description::new(Note, Tone::Strong, resumption_text(resumption)),
            Self::IterationStarted {
                iteration,
                attempt,
                hat,
                agent,
                ..
            } => Description::new(
                Iteration,
                Tone::Strong,
                iteration_text(*iteration, *attempt, hat.as_deref(), agent.as_deref()),
            )
            .with_detail(Detail::Lifecycle),
            Self::AgentChanged { from, to, why, until } => {
                let until = until.map(|until| units::clock(until, context.at, context.zone));
                agent_changed(from, to, *why, until)
            }
            Self::AgentStarted { pid, command, .. } => {
                Description::system(agent_started(*pid, command)).with_detail(Detail::Lifecycle)
            }
            Self::Transcript {
                event: TranscriptEvent::Meta { meta },
                ..
            } => return meta.describe(context),
            Self::MarkerIgnored { marker, reason, .. } => {
                Description::warning(format!("{marker} ignored: {reason}"))
            }
            Self::Topic { event, .. } => Description::new(Topic, Tone::Accent, topic_text(event)),
            Self::TopicRerouted {
                topic, hat, reason, ..
            } => {
                let hat = hat.as_ref().map(|hat| format!(" → {hat}")).unwrap_or_default();
                Description::new(Topic, Tone::Warning, format!("{topic}{hat} · {reason}"))
            }
            Self::AgentEnded {
                end,
                duration_ms,
                swept,
                ..
            } => agent_ended(end, *duration_ms, *swept),
            Self::GateEnded {
                name,
                result,
                duration_ms,
                ..
            } => gate_ended(name, *result, *duration_ms),
            Self::ReviewStarted {
                gate,
                reviewer,
                agent,
                round,
                rounds,
                ..
            } => Description::new(
                NoteTag::Gate,
                Tone::Plain,
                format!(
                    "{} by {agent} · round {round} of {rounds}",
                    review_name(gate, reviewer)
                ),
            ),
            Self::ReviewEnded {
                gate,
                reviewer,
                result,
                duration_ms,
                usage,
                ..
            } => review_ended(&review_name(gate, reviewer), result, *duration_ms, usage),
            Self::Finding(finding) => describe_finding(finding),
            Self::IterationEnded {
                outcome,
                duration_ms,
                usage,
                ..
            } => {
                let verdict = iteration_verdict(outcome, context.at, context.zone);
                let text = format!("{}  ({})", verdict.sentence, figures(*duration_ms, usage));
                Description::new(NoteTag::Verdict, verdict.tone, text)
            }
            Self::Waiting {
                why,
                wait_ms: 0,
                reason: Some(reason),
            } => {
                let label = verdict::pause_label(*why);
                Description::new(Wait, Tone::Warning, format!("{label}: {reason}"))
            }
            Self::Waiting { why, wait_ms, reason } => {
                let wait = Duration::from_millis(*wait_ms);
                let until = units::clock(later(context.at, wait), context.at, context.zone);
                let (why, wait) = (verdict::pause_label(*why), units::duration(wait));
                let reason = reason.as_ref().map(|reason| format!("{reason}; "));
                let reason = reason.unwrap_or_default();
                Description::new(
                    Wait,
                    Tone::Warning,
                    format!("{why}: {reason}waiting {wait}, until {until}"),
                )
            }
            Self::CommandReceived { command, .. } => command_received(command)?,
            Self::Snapshot(snapshot) => Description::new(NoteTag::File, Tone::Faint, snapshot.summary()?),
            Self::Progress { unchanged: 0, .. } => return None,
            Self::Progress { unchanged, .. } => {
                let iterations = match unchanged {
                    1 => "iteration".to_owned(),
                    more => units::count(*more, "iteration"),
                };
                Description::warning(format!("no changes in the last {iterations}"))
            }
            Self::Paused => Description::new(Pause, Tone::Warning, "paused"),
            Self::Asking => Description::new(
                Pause,
                Tone::Warning,
                "continue? (confirmation between iterations)",
            ),
            Self::QuestionAsked { question, .. } => {
                Description::new(Pause, Tone::Warning, format!("the agent asks: {question}"))
            }
            Self::QuestionExpired { answer } => {
                Description::warning(format!("no answer in time; continuing with: {answer}"))
            }
            Self::Stopping { reason } => Description::warning(format!("stopping: {reason}")),
            Self::Notice { level, text } => match level {
                NoticeLevel::Info => Description::new(Note, Tone::Plain, text),
                NoticeLevel::Warning => Description::warning(text),
                NoticeLevel::Error => Description::error(text),
            },
            Self::Denied { access, .. } => Description::warning(denied(access)),
            Self::UnknownOutput(unknown) => return unknown_output(unknown),
            Self::RunEnded { outcome, .. } => {
                let verdict = run_verdict(outcome, context.gates);
                Description::new(NoteTag::Verdict, verdict.tone, verdict.sentence)
            }
            Self::ReviewTranscript {
                reviewer,
                event: TranscriptEvent::ToolStart { tool },
                ..
            } => Description::system(format!("reviewer {reviewer}: {}", tool.name))
                .with_detail(Detail::Verbose),
            Self::Transcript { .. }
            | Self::ReviewTranscript { .. }
            | Self::Stderr { .. }
            | Self::GateStarted { .. }
            | Self::WaitEnded => {
                return None;
            }
            Self::Verification { changed_checks, .. } if changed_checks.is_empty() => return None,
            Self::Verification { changed_checks, .. } => {
                Description::warning(changed_checks_text(changed_checks))
            }
        })
    }

    /// When the record of the event is synced. A received command is synced immediately, because it is then removed
    /// from the inbox, unless a resumed run would not read it anyway.
    pub fn durability(&self) -> Durability {
        match self {
            Self::RunStarted(_) | Self::RunResumed(_) | Self::RunEnded { .. } => Durability::Immediate,
            Self::CommandReceived { command, .. } if !command.expires() => Durability::Immediate,
            Self::QuestionAsked { .. } | Self::QuestionExpired { .. } => Durability::Immediate,
            Self::AgentChanged { .. }
            | Self::GateEnded { .. }
            | Self::ReviewEnded { .. }
            | Self::Finding(_)
            | Self::IterationEnded { .. } => Durability::Background,
            Self::IterationStarted { .. }
            | Self::AgentStarted { .. }
            | Self::Transcript { .. }
            | Self::Stderr { .. }
            | Self::MarkerIgnored { .. }
            | Self::Topic { .. }
            | Self::TopicRerouted { .. }
            | Self::AgentEnded { .. }
            | Self::CommandReceived { .. }
            | Self::GateStarted { .. }
            | Self::ReviewStarted { .. }
            | Self::ReviewTranscript { .. }
            | Self::Verification { .. }
            | Self::Waiting { .. }
            | Self::WaitEnded
            | Self::Progress { .. }
            | Self::Snapshot(_)
            | Self::Paused
            | Self::Asking
            | Self::Stopping { .. }
            | Self::UnknownOutput(_)
            | Self::Denied { .. }
            | Self::Notice { .. } => Durability::Deferred,
        }
    }

    /// The number of the iteration that the event belongs to.
    pub fn iteration(&self) -> Option<u64> {
        match self {
            Self::IterationStarted { iteration, .. }
            | Self::AgentStarted { iteration, .. }
            | Self::Transcript { iteration, .. }
            | Self::Stderr { iteration, .. }
            | Self::MarkerIgnored { iteration, .. }
            | Self::Topic { iteration, .. }
            | Self::TopicRerouted { iteration, .. }
            | Self::AgentEnded { iteration, .. }
            | Self::GateStarted { iteration, .. }
            | Self::GateEnded { iteration, .. }
            | Self::ReviewStarted { iteration, .. }
            | Self::ReviewTranscript { iteration, .. }
            | Self::ReviewEnded { iteration, .. }
            | Self::IterationEnded { iteration, .. }
            | Self::QuestionAsked { iteration, .. }
            | Self::Denied { iteration, .. }
            | Self::Progress { iteration, .. } => Some(*iteration),
            Self::Snapshot(snapshot) => Some(snapshot.iteration),
            Self::Finding(finding) => Some(finding.iteration),
            Self::RunStarted(_)
            | Self::RunResumed(_)
            | Self::AgentChanged { .. }
            | Self::QuestionExpired { .. }
            | Self::Waiting { .. }
            | Self::WaitEnded
            | Self::CommandReceived { .. }
            | Self::Paused
            | Self::Asking
            | Self::Stopping { .. }
            | Self::Notice { .. }
            | Self::Verification { .. }
            | Self::UnknownOutput(_)
            | Self::RunEnded { .. } => None,
        }
    }
}

impl Meta {
    /// A report of the agent about its session in words; `None` for a successful end.
    pub fn describe(&self, context: &DescribeContext<'_>) -> Option<Description> {
        Some(match self {
            Self::Session {
                session_id,
                model,
                version,
            } => Description::session(session_text(session_id, [model.as_deref(), version.as_deref()])),
            Self::Finished { success: true, .. } => return None,
            Self::Finished { reason, .. } => {
                let reason = reason.as_deref().unwrap_or("no reason given");
                Description::error(format!("the agent reported a failure: {reason}"))
            }
            Self::Error {
                class,
                message,
                status,
            } => {
                let status = status
                    .map(|status| format!(" (HTTP {status})"))
                    .unwrap_or_default();
                Description::error(format!("{}{status}: {message}", error_label(*class)))
            }
            Self::Retry { .. } => Description::warning(retry_text(self)),
            Self::RateLimit { .. } => rate_limit(self, context),
            Self::Plan { items } => Description::new(NoteTag::Plan, Tone::Plain, plan_text(items)),
            Self::FileChange { path, change } => {
                let word = match change {
                    FileChangeKind::Added => "added",
                    FileChangeKind::Modified => "changed",
                    FileChangeKind::Deleted => "deleted",
                };
                Description::new(NoteTag::File, Tone::Accent, format!("{word} {path}"))
            }
            Self::PermissionDenied { tool } => {
                Description::warning(format!("the agent was denied permission to use {tool}"))
            }
            Self::BackgroundTasks { tasks } => Description::session(background_tasks(tasks)?),
            Self::Unknown { part, name } => {
                let what = match part {
                    UnknownPart::EventType => "event type",
                    UnknownPart::Field => "field",
                };
                Description::session(format!("unknown {what}: {name}")).with_detail(Detail::Verbose)
            }
            Self::ParseError { message } => {
                Description::warning(format!("could not parse a line of output: {message}"))
            }
            Self::Cut { bytes } => Description::warning(format!(
                "truncated a line of {}; the run directory has the full output",
                units::bytes(*bytes)
            )),
            Self::Other(fields) => {
                let message = fields.get("message").and_then(serde_json::Value::as_str);
                let all = || serde_json::to_string(fields).ok();
                Description::session(message.map(str::to_owned).or_else(all).unwrap_or_default())
            }
        })
    }
}

/// Unknown fields alone do not matter: agents add some in each version.
/// What the sandbox denied, and the setting that allows it.
fn denied(access: &DeniedAccess) -> String {
    match access {
        DeniedAccess::Host(host) => format!(
            "the sandbox denied {host}; to allow it, add it to the list in ralph.yml: `sandbox: {{net: [{host}]}}`"
        ),
        DeniedAccess::Path(path) => format!("removed {path}, with which the agent would have redirected git"),
    }
}

fn unknown_output(unknown: &UnknownOutput) -> Option<Description> {
    if unknown.event_types.is_empty() && unknown.newer_than.is_none() {
        return None;
    }
    let version = unknown.version.as_deref().map(|version| format!(" {version}"));
    let mut text = unknown.agent.clone() + &version.unwrap_or_default();
    let mut parts = Vec::new();
    if !unknown.event_types.is_empty() {
        let names: Vec<&str> = unknown.event_types.keys().map(String::as_str).collect();
        let count = units::count(names.len() as u64, "unknown event type");
        parts.push(format!("{count} ({})", names.join(", ")));
    }
    if !unknown.fields.is_empty() {
        parts.push(units::count(unknown.fields.len() as u64, "unknown field"));
    }
    text += &match &unknown.newer_than {
        Some(tested) => format!(" is newer than tested ({tested}); {}", parts.join(", ")),
        None => format!(" printed {}", parts.join(", ")),
    };
    Some(Description::warning(text + "; to report it: ralph agents report"))
}

/// The running background tasks of an agent; none if there are none.
fn background_tasks(tasks: &[String]) -> Option<String> {
    match tasks {
        [] => None,
        [task] => Some(format!("background task: {task}")),
        tasks => Some(format!("{} background tasks: {}", tasks.len(), tasks.join(", "))),
    }
}

fn retry_text(meta: &Meta) -> String {
    let Meta::Retry {
        attempt,
        max_attempts,
        delay_ms,
        class,
        message,
    } = meta
    else {
        return String::new();
    };
    let of = max_attempts.map(|max| format!(" of {max}")).unwrap_or_default();
    let delay = delay_ms
        .map(|delay| format!(" in {}", millis(delay)))
        .unwrap_or_default();
    let what = error_label(*class);
    let text = format!("the agent is retrying{delay} (attempt {attempt}{of}): {what}: {message}");
    text.trim_end_matches([':', ' ']).to_owned()
}

/// `3 test or gate files changed since the start of the run: a, b, c`
fn changed_checks_text(paths: &[String]) -> String {
    const LISTED: usize = 5;
    let files = match paths.len() {
        1 => "1 test or gate file".to_owned(),
        more => format!("{more} test or gate files"),
    };
    let listed = paths.iter().take(LISTED).cloned().collect::<Vec<_>>().join(", ");
    let more = if paths.len() > LISTED { ", …" } else { "" };
    format!("{files} changed since the start of the run: {listed}{more}")
}

fn resumption_text(resumption: &Resumption) -> String {
    let mut text = format!("resuming with iteration {}", resumption.iteration);
    if resumption.attempt > 1 {
        text += &format!(", attempt {}", resumption.attempt);
    }
    for change in &resumption.changed {
        text += &format!("\nchanged: {change}");
    }
    text
}

fn iteration_text(iteration: u64, attempt: u64, hat: Option<&str>, agent: Option<&str>) -> String {
    let attempt = (attempt > 1).then(|| format!(", attempt {attempt}"));
    let hat = hat.map(|hat| format!(", hat {hat}"));
    let agent = agent.map(|agent| format!(", agent {agent}"));
    let details: String = [attempt, hat, agent].into_iter().flatten().collect();
    format!("iteration {iteration}{details}")
}

fn topic_text(event: &TopicEvent) -> String {
    let target = event.target.as_ref().map(|target| format!(" → {target}"));
    let text = format!("{}{} {}", event.topic, target.unwrap_or_default(), event.payload);
    text.trim_end().to_owned()
}

fn agent_started(pid: Option<u32>, command: &[String]) -> String {
    match pid {
        Some(pid) => format!("started process {pid}: {}", command.join(" ")),
        None => "started the agent".to_owned(),
    }
}

fn agent_changed(from: &str, to: &str, why: AgentChangeReason, until: Option<String>) -> Description {
    let until = until.map(|until| format!(" until {until}")).unwrap_or_default();
    match why {
        AgentChangeReason::Limit => Description::warning(format!(
            "{from} has reached its usage limit; continuing with {to}{until}"
        )),
        AgentChangeReason::NotLoggedIn => {
            Description::warning(format!("{from} is not logged in; continuing with {to}"))
        }
        AgentChangeReason::ProgramMissing => {
            Description::warning(format!("the program of {from} is missing; continuing with {to}"))
        }
        AgentChangeReason::Available => Description::new(
            NoteTag::Note,
            Tone::Strong,
            format!("{to} can work again; it replaces {from}"),
        ),
    }
}

/// A successful end is described only if processes were left.
fn agent_ended(end: &AgentEnd, duration_ms: u64, swept: u64) -> Description {
    let mut text = format!("{} after {}", verdict::agent_exit(end), millis(duration_ms));
    if swept > 0 {
        let processes = match swept {
            1 => "1 process".to_owned(),
            count => format!("{count} processes"),
        };
        text += &format!("; stopped {processes} left behind by the agent");
    }
    let detail = match end.success() && swept == 0 {
        true => Detail::Verbose,
        false => Detail::Normal,
    };
    Description::system(text).with_detail(detail)
}

fn gate_ended(name: &str, result: GateResult, duration_ms: u64) -> Description {
    let took = millis(duration_ms);
    let (tone, text) = match verdict::gate_failure(result) {
        None => (Tone::Good, format!("gate {name}  ({took})")),
        Some(why) => (Tone::Bad, format!("gate {name}  ({took}, {why})")),
    };
    Description::new(NoteTag::Gate, tone, text).with_detail(Detail::Lifecycle)
}

/// The gate, and the reviewer if it has another name.
fn review_name(gate: &str, reviewer: &str) -> String {
    match gate == reviewer {
        true => gate.to_owned(),
        false => format!("{gate}: {reviewer}"),
    }
}

fn review_ended(name: &str, result: &ReviewerResult, duration_ms: u64, usage: &Usage) -> Description {
    let figures = figures(duration_ms, usage);
    let (tone, text) = match result {
        ReviewerResult::Answered { findings: 0 } => (Tone::Good, format!("{name}: no findings  ({figures})")),
        ReviewerResult::Answered { findings } => (
            Tone::Plain,
            format!("{name}: {}  ({figures})", units::count(*findings, "finding")),
        ),
        ReviewerResult::Unanswered { problem } => (
            Tone::Bad,
            format!("{name}: no valid answer: {problem}  ({figures})"),
        ),
        ReviewerResult::Limited { message } => (
            Tone::Warning,
            format!("{name}: usage limit, the reviewer starts again later: {message}"),
        ),
        ReviewerResult::Stopped => (Tone::Warning, format!("{name}: stopped  ({figures})")),
    };
    Description::new(NoteTag::Gate, tone, text)
}

/// `F3 high correctness at src/lib.rs:10 · still open: the loop never ends`
fn describe_finding(finding: &Finding) -> Description {
    let tone = match finding.status {
        FindingStatus::Open | FindingStatus::StillOpen => Tone::Bad,
        FindingStatus::Contested => Tone::Warning,
        FindingStatus::Advice | FindingStatus::Outvoted => Tone::Plain,
        FindingStatus::Resolved => Tone::Good,
    };
    let other = finding.contradicts.as_ref();
    let contradicts = other.filter(|_| finding.status == FindingStatus::Contested);
    let contradicts = contradicts.map(|other| format!(", contradicts {other}"));
    let answer = finding
        .answer
        .as_ref()
        .map(|answer| format!(" (the agent: {answer})"));
    let text = format!(
        "{} · {}{}: {}{}",
        finding.heading(),
        finding.status.label(),
        contradicts.unwrap_or_default(),
        finding.claim,
        answer.unwrap_or_default()
    );
    Description::new(NoteTag::Gate, tone, text)
}

fn command_received(command: &Command) -> Option<Description> {
    let text = match command {
        Command::Message { text } | Command::AnswerQuestion { text } => {
            return Some(Description::new(NoteTag::User, Tone::Strong, text));
        }
        Command::Pause => "pause after this iteration",
        Command::Resume => "resume",
        Command::Wake => "end the wait",
        Command::StopIteration => "stop this iteration, continue with the next",
        // The event, or the end of the run or of the question, is described instead.
        Command::Publish { .. } | Command::Stop { .. } | Command::Kill | Command::Answer { .. } => {
            return None;
        }
    };
    Some(Description::new(NoteTag::User, Tone::Plain, text))
}

fn figures(duration_ms: u64, usage: &Usage) -> String {
    let tokens = usage
        .tokens()
        .map(|tokens| format!("{} tokens", units::tokens(tokens)));
    let cost = usage.cost_usd.map(units::dollars);
    let known: Vec<String> = [Some(millis(duration_ms)), tokens, cost]
        .into_iter()
        .flatten()
        .collect();
    known.join(" · ")
}

fn session_text(id: &str, details: [Option<&str>; 2]) -> String {
    let visible = |c: &char| !c.is_control() && !c.is_whitespace();
    let id: String = id.chars().filter(visible).take(SESSION_ID_CHARS).collect();
    let details = details.into_iter().flatten().map(|detail| format!(" · {detail}"));
    format!("session {id}{}", details.collect::<String>())
}

fn rate_limit(meta: &Meta, context: &DescribeContext<'_>) -> Description {
    let Meta::RateLimit {
        status,
        resets_at,
        limit,
        utilization,
    } = meta
    else {
        return Description::session(String::new());
    };
    let limit = limit.as_ref().map(|limit| format!(" {limit}"));
    let limit = limit.unwrap_or_default();
    let used = utilization.map(|used| format!(", {:.0}% used", (used * 100.0).floor()));
    let used = used.unwrap_or_default();
    let resets = resets_at
        .map(|reset| format!(", resets {}", units::clock(reset, context.at, context.zone)))
        .unwrap_or_default();
    let text = |state: &str| format!("usage limit{limit} {state}{used}{resets}");
    match status {
        // Some agents report this at the start of every session.
        RateLimitStatus::Allowed => Description::session(text("not reached")).with_detail(Detail::Verbose),
        RateLimitStatus::Warning => Description::warning(text("almost reached")),
        RateLimitStatus::Rejected => Description::error(text("reached")),
    }
}

fn plan_text(items: &[PlanItem]) -> String {
    let done = items
        .iter()
        .filter(|item| item.status == PlanStatus::Done)
        .count();
    let first = |status| items.iter().find(|item| item.status == status);
    let next = first(PlanStatus::Active).or_else(|| first(PlanStatus::Pending));
    let next = next.map(|item| format!(" · next: {}", item.text));
    format!("{done} of {} done{}", items.len(), next.unwrap_or_default())
}

fn error_label(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::Auth => "not logged in",
        ErrorClass::RateLimit => "rate limit",
        ErrorClass::Overload => "service overloaded",
        ErrorClass::BadRequest => "bad request",
        ErrorClass::TooLong => "prompt too long for the model",
        ErrorClass::Network => "network error",
        ErrorClass::Refused => "refused by the model",
        ErrorClass::MaxTurns => "turn limit reached",
        ErrorClass::Budget => "budget exhausted",
        ErrorClass::Other => "error",
    }
}

/// The time after a wait, which may be of any length.
pub fn later(at: Timestamp, wait: Duration) -> Timestamp {
    let longest = SignedDuration::from_hours(24 * 365);
    at + SignedDuration::try_from(wait).unwrap_or(longest).min(longest)
}

fn millis(millis: u64) -> String {
    units::duration(Duration::from_millis(millis))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Record;

    /// The golden records in words.
    fn golden_lines() -> Vec<String> {
        let mut gates = PassedGates::default();
        let mut lines = Vec::new();
        for line in include_str!("../../tests/golden/events.v1.jsonl").lines() {
            let Record { at, event, .. } = serde_json::from_str(line).unwrap();
            gates.apply(&event);
            let (zone, gates) = (&TimeZone::UTC, &gates);
            lines.extend(
                event
                    .describe(&DescribeContext { at, zone, gates })
                    .map(|described| {
                        let Description {
                            tag, text, detail, ..
                        } = &described;
                        format!("{:<7} {} {text} [{detail:?}]", tag.label(), described.mark())
                    }),
            );
        }
        lines
    }

    #[test]
    fn every_kind_of_record_in_words() {
        insta::assert_snapshot!(golden_lines().join("\n"), @r#"
        SYS     · run 20261115-204501-k3f9 with claude [Lifecycle]
        NOTE    ▸ iteration 1, hat builder [Lifecycle]
        SYS     · started process 4711: /usr/bin/claude -p fix it [Lifecycle]
        SYS     · session s-1 · opus · 2.1.197 [Normal]
        ERROR   ✗ service overloaded (HTTP 529): 529 [Normal]
        WARN    ! the agent is retrying in 500ms (attempt 1 of 10): rate limit: 429 [Normal]
        ERROR   ✗ usage limit five_hour reached, resets Mon 16 Nov 01:00 [Normal]
        PLAN    ≡ 0 of 1 done · next: write it [Normal]
        FILE    ~ changed a.rs [Normal]
        WARN    ! the agent was denied permission to use Bash [Normal]
        WARN    ! could not parse a line of output: not JSON [Normal]
        WARN    ! truncated a line of 300.0 MB; the run directory has the full output [Normal]
        SYS     · {"phase":"of the moon"} [Normal]
        WARN    ! LOOP_COMPLETE ignored: it stood inside a code fence [Normal]
        TOPIC   » build.done → reviewer all of it [Normal]
        SYS     · the agent ended with exit code 0 after 5.0s; stopped 2 processes left behind by the agent [Normal]
        GATE    ✗ gate test  (900ms, exit code 2) [Lifecycle]
        REPORT  ✗ rejected: the agent reported done, but gate `test` failed  (6.0s · 110 tokens) [Normal]
        REPORT  ✗ failed: the agent was killed by signal 9: boom  (600ms) [Normal]
        WAIT    ◷ backing off after a failure: waiting 2.0s, until 20:45 [Normal]
        WARN    ! something to know [Normal]
        REPORT  ! rate limited until Mon 16 Nov 01:00, not counted: limit reached  (600ms) [Normal]
        REPORT  ✗ timed out: no output for 10m00s  (10m00s) [Normal]
        REPORT  ! stopped at the run's cost limit of $5.00  (600ms) [Normal]
        WARN    ! stopping: told to terminate [Normal]
        REPORT  ! Stopped by a termination signal. [Normal]
        TOPIC   » build.odd → planner · no hat takes it [Normal]
        NOTE    · resuming with iteration 6, attempt 2
        changed: event_loop.max_iterations: 50 → 100 [Normal]
        USER    ✉ use spec/ [Normal]
        WARN    ! no changes in the last iteration [Normal]
        WAIT    ‖ paused [Normal]
        WAIT    ‖ continue? (confirmation between iterations) [Normal]
        USER    ✉ pause after this iteration [Normal]
        USER    ✉ stop this iteration, continue with the next [Normal]
        GATE    ✗ gate test  (900ms, only 1 test passed) [Lifecycle]
        GATE    ✓ gate secret  (900ms) [Lifecycle]
        REPORT  ✗ Not started: gate `test` passes before any work. [Normal]
        WARN    ! claude 2.1.400 is newer than tested (2.1.327); 1 unknown event type (hologram), 1 unknown field; to report it: ralph agents report [Normal]
        FILE    ~ 2 files changed, +12 −4: src/a.rs +12 −4, logo.png (binary) [Normal]
        WARN    ! claude (opus) has reached its usage limit; continuing with codex until Mon 16 Nov 01:00 [Normal]
        NOTE    · claude (opus) can work again; it replaces codex [Normal]
        WAIT    ‖ the agent asks: SQLite or PostgreSQL? [Normal]
        USER    ✉ SQLite [Normal]
        WARN    ! no answer in time; continuing with: SQLite [Normal]
        GATE    ✗ gate test  (900ms, passes only with changed protected files) [Lifecycle]
        GATE    ✗ gate test  (0ms, files changed after it had passed) [Lifecycle]
        WARN    ! 1 test or gate file changed since the start of the run: tests/a.py [Normal]
        GATE    → review: security by codex (o5) · round 1 of 3 [Normal]
        GATE    → review: security: 1 finding  (900ms · 15 tokens) [Normal]
        GATE    ✗ review: no valid answer: the final message is empty  (900ms) [Normal]
        GATE    ✗ F1 high correctness at src/a.py:3 · still open: the loop never ends (the agent: disputed: it does) [Normal]
        GATE    ✗ gate review  (900ms, 1 open finding) [Lifecycle]
        GATE    ✗ gate review  (900ms, no valid answer) [Lifecycle]
        REPORT  ✗ Unreviewed: gate `review`: its 3 rounds are used up; finding F1 is open. [Normal]
        WARN    ! the sandbox denied evil.example; to allow it, add it to the list in ralph.yml: `sandbox: {net: [evil.example]}` [Normal]
        "#);
    }
}
