//! What the run did, and what an agent tells about its session, in one line each.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp, tz::TimeZone};

use super::block::Note;
use crate::event::{FileChangeKind, Level, Meta, PlanItem, PlanStatus, RateLimitStatus, RunEvent};
use crate::ui::plain::one_line;
use crate::ui::{Tone, iteration_verdict, run_verdict, sentences, words};

const SESSION_ID_CHARS: usize = 8;

/// The note for something that the run did; nothing for what has a form of its own, or is not worth a line.
pub(super) fn of_run(event: &RunEvent, at: Timestamp, zone: &TimeZone) -> Option<Note> {
    match event {
        RunEvent::MarkerIgnored { marker, reason, .. } => Some(Note::new(
            "!",
            Tone::Warning,
            format!("{marker} does not count: {reason}"),
        )),
        RunEvent::Topic { event, .. } => {
            let target = event.target.as_ref().map(|target| format!(" → {target}"));
            let payload = one_line(&event.payload, 400).0;
            let text = format!("{}{}  {payload}", event.topic, target.unwrap_or_default());
            Some(Note::new("»", Tone::Accent, text))
        }
        RunEvent::AgentEnded {
            end,
            duration_ms,
            swept,
            ..
        } => {
            let mut text = Vec::new();
            if !end.success() {
                text.push(format!(
                    "{} after {}",
                    sentences::end_words(*end),
                    millis(*duration_ms)
                ));
            }
            if *swept > 0 {
                text.push(format!(
                    "{} left behind, stopped",
                    words::count(*swept, "process")
                ));
            }
            (!text.is_empty()).then(|| Note::new("·", Tone::Faint, text.join("; ")))
        }
        RunEvent::IterationEnded {
            outcome,
            duration_ms,
            usage,
            ..
        } => {
            let verdict = iteration_verdict(outcome, at, zone);
            let tokens = usage
                .tokens()
                .map(|tokens| format!("{} tokens", words::tokens(tokens)));
            let cost = usage.cost_usd.map(words::dollars);
            let figures: Vec<String> = [Some(millis(*duration_ms)), tokens, cost]
                .into_iter()
                .flatten()
                .collect();
            let text = format!("{}  ({})", verdict.sentence, figures.join(" · "));
            Some(Note::new(verdict.mark, verdict.tone, text))
        }
        RunEvent::Waiting { why, wait_ms } => {
            let wait = Duration::from_millis(*wait_ms);
            let until = words::clock(later(at, wait), at, zone);
            let text = format!(
                "{}: waiting {}, until {until}",
                sentences::pause_words(*why),
                words::duration(wait)
            );
            Some(Note::new("◷", Tone::Warning, text))
        }
        RunEvent::Stopping { reason } => Some(Note::new("!", Tone::Warning, format!("stopping: {reason}"))),
        RunEvent::Notice { level, text } => Some(match level {
            Level::Info => Note::new("·", Tone::Plain, text.as_str()),
            Level::Warning => Note::new("!", Tone::Warning, text.as_str()),
            Level::Error => Note::new("✗", Tone::Bad, text.as_str()),
        }),
        RunEvent::RunEnded { outcome, .. } => {
            let verdict = run_verdict(outcome);
            Some(Note::new(verdict.mark, verdict.tone, verdict.sentence))
        }
        RunEvent::RunStarted(_)
        | RunEvent::IterationStarted { .. }
        | RunEvent::AgentStarted { .. }
        | RunEvent::Transcript { .. }
        | RunEvent::Stderr { .. }
        | RunEvent::GateStarted { .. }
        | RunEvent::GateEnded { .. }
        | RunEvent::WaitEnded => None,
    }
}

/// What the list of events has besides: where iterations begin, processes, gates.
pub(super) fn of_course(event: &RunEvent) -> Option<Note> {
    match event {
        RunEvent::RunStarted(header) => Some(Note::new(
            "·",
            Tone::Faint,
            format!("run {} with {}", header.run_id, header.agent),
        )),
        RunEvent::IterationStarted {
            iteration,
            attempt,
            hat,
            ..
        } => {
            let again = if *attempt > 1 {
                format!(", attempt {attempt}")
            } else {
                String::new()
            };
            let hat = hat.as_ref().map(|hat| format!(", hat {hat}")).unwrap_or_default();
            Some(Note::new(
                "▸",
                Tone::Strong,
                format!("iteration {iteration}{again}{hat}"),
            ))
        }
        RunEvent::AgentStarted { pid, command, .. } => {
            let command = one_line(&command.join(" "), 300).0;
            Some(Note::new("·", Tone::Faint, format!("process {pid}: {command}")))
        }
        RunEvent::GateEnded {
            name,
            result,
            duration_ms,
            ..
        } => {
            let why = sentences::gate_words(*result).map(|why| format!(", {why}"));
            let text = format!(
                "gate {name}  ({}{})",
                millis(*duration_ms),
                why.clone().unwrap_or_default()
            );
            Some(match why {
                None => Note::new("✓", Tone::Good, text),
                Some(_) => Note::new("✗", Tone::Bad, text),
            })
        }
        RunEvent::GateStarted { .. }
        | RunEvent::Transcript { .. }
        | RunEvent::Stderr { .. }
        | RunEvent::MarkerIgnored { .. }
        | RunEvent::Topic { .. }
        | RunEvent::AgentEnded { .. }
        | RunEvent::IterationEnded { .. }
        | RunEvent::Waiting { .. }
        | RunEvent::WaitEnded
        | RunEvent::Stopping { .. }
        | RunEvent::Notice { .. }
        | RunEvent::RunEnded { .. } => None,
    }
}

/// The note for what an agent tells about its session; plans and final messages are not notes.
pub(super) fn of_meta(meta: &Meta, at: Timestamp, zone: &TimeZone) -> Option<Note> {
    let warn = |text: String| Some(Note::new("!", Tone::Warning, text));
    match meta {
        Meta::Session {
            session_id,
            model,
            version,
        } => {
            let id: String = one_line(session_id, 200)
                .0
                .chars()
                .take(SESSION_ID_CHARS)
                .collect();
            let details = [model, version]
                .into_iter()
                .flatten()
                .map(|detail| format!(" · {detail}"));
            Some(Note::new(
                "·",
                Tone::Faint,
                format!("session {id}{}", details.collect::<String>()),
            ))
        }
        Meta::Finished { success: true, .. } | Meta::Plan { .. } => None,
        Meta::Finished {
            success: false,
            reason,
            ..
        } => {
            let reason = reason.as_deref().unwrap_or("it did not say why");
            Some(Note::new(
                "✗",
                Tone::Bad,
                format!("the agent says that it failed: {reason}"),
            ))
        }
        Meta::Error {
            class,
            message,
            status,
        } => {
            let status = status
                .map(|status| format!(" (HTTP {status})"))
                .unwrap_or_default();
            let what = sentences::error_words(*class);
            Some(Note::new("✗", Tone::Bad, format!("{what}{status}: {message}")))
        }
        Meta::Retry {
            attempt,
            max_attempts,
            delay_ms,
            class,
            message,
        } => {
            let of = max_attempts.map(|most| format!(" of {most}")).unwrap_or_default();
            let delay = delay_ms
                .map(|delay| format!(" in {}", millis(delay)))
                .unwrap_or_default();
            let what = sentences::error_words(*class);
            warn(format!(
                "the agent tries again{delay}, attempt {attempt}{of}: {what}: {message}"
            ))
        }
        Meta::RateLimit {
            status,
            resets_at,
            limit,
        } => rate_limit(*status, *resets_at, limit.as_deref(), (at, zone)),
        Meta::FileChange { path, change } => {
            let word = match change {
                FileChangeKind::Added => "added",
                FileChangeKind::Modified => "changed",
                FileChangeKind::Deleted => "deleted",
            };
            Some(Note::new("~", Tone::Accent, format!("{word} {path}")))
        }
        Meta::PermissionDenied { tool } => warn(format!("the agent was not permitted to use {tool}")),
        Meta::ParseError { message } => warn(format!("unreadable line: {message}")),
        Meta::Cut { bytes } => warn(format!(
            "a line of {} was cut; the raw file has all of it",
            words::bytes(*bytes)
        )),
        Meta::Other(fields) => {
            let message = fields.get("message").and_then(serde_json::Value::as_str);
            let text = message
                .map(str::to_owned)
                .or_else(|| serde_json::to_string(fields).ok());
            Some(Note::new("·", Tone::Faint, text.unwrap_or_default()))
        }
    }
}

fn rate_limit(
    status: RateLimitStatus,
    resets_at: Option<Timestamp>,
    limit: Option<&str>,
    (at, zone): (Timestamp, &TimeZone),
) -> Option<Note> {
    let (mark, tone, state) = match status {
        // Said at the start of every session of some agents, so not news.
        RateLimitStatus::Allowed => return None,
        RateLimitStatus::Warning => ("!", Tone::Warning, "almost reached"),
        RateLimitStatus::Rejected => ("✗", Tone::Bad, "reached"),
    };
    let limit = limit.map(|limit| format!(" {limit}")).unwrap_or_default();
    let resets = resets_at.map(|reset| format!(", resets {}", words::clock(reset, at, zone)));
    let text = format!("usage limit{limit} {state}{}", resets.unwrap_or_default());
    Some(Note::new(mark, tone, text))
}

/// One line for a change of the plan.
pub(super) fn of_plan(items: &[PlanItem]) -> Note {
    let done = items
        .iter()
        .filter(|item| item.status == PlanStatus::Done)
        .count();
    let first = |status| items.iter().find(|item| item.status == status);
    let next = first(PlanStatus::Active).or_else(|| first(PlanStatus::Pending));
    let next = next
        .map(|item| format!(" · next: {}", item.text))
        .unwrap_or_default();
    Note::new(
        "≡",
        Tone::Plain,
        format!("plan: {done} of {} done{next}", items.len()),
    )
}

pub(super) fn later(at: Timestamp, wait: Duration) -> Timestamp {
    let longest = SignedDuration::from_hours(24 * 365);
    at + SignedDuration::try_from(wait).unwrap_or(longest).min(longest)
}

fn millis(millis: u64) -> String {
    words::duration(Duration::from_millis(millis))
}
