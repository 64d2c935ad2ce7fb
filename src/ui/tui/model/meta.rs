//! What an agent tells about its session rather than in it, in one line each.

use jiff::{Timestamp, tz::TimeZone};

use super::block::Note;
use super::notes::millis;
use crate::event::{ErrorClass, FileChangeKind, Meta, PlanItem, PlanStatus, RateLimitStatus};
use crate::ui::plain::one_line;
use crate::ui::{Tone, describe, units};

const SESSION_ID_CHARS: usize = 8;

/// The note for what an agent tells about its session; plans and final messages are not notes.
pub(super) fn of_meta(meta: &Meta, at: Timestamp, zone: &TimeZone) -> Option<Note> {
    let warn = |text: String| Some(Note::new("!", Tone::Warning, text));
    match meta {
        Meta::Session {
            session_id,
            model,
            version,
        } => Some(session(session_id, [model.as_deref(), version.as_deref()])),
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
        } => Some(error(*class, message, *status)),
        Meta::Retry { .. } => warn(retry(meta)),
        Meta::RateLimit {
            status,
            resets_at,
            limit,
        } => rate_limit(*status, *resets_at, limit.as_deref(), (at, zone)),
        Meta::FileChange { path, change } => Some(file_change(path, *change)),
        Meta::PermissionDenied { tool } => warn(format!("the agent was not permitted to use {tool}")),
        Meta::ParseError { message } => warn(format!("unreadable line: {message}")),
        Meta::Cut { bytes } => warn(format!(
            "a line of {} was cut; the raw file has all of it",
            units::bytes(*bytes)
        )),
        Meta::Other(fields) => {
            let message = fields.get("message").and_then(serde_json::Value::as_str);
            let all = || serde_json::to_string(fields).ok();
            let text = message.map(str::to_owned).or_else(all);
            Some(Note::new("·", Tone::Faint, text.unwrap_or_default()))
        }
    }
}

fn session(id: &str, details: [Option<&str>; 2]) -> Note {
    let id: String = one_line(id, 200).0.chars().take(SESSION_ID_CHARS).collect();
    let details = details.into_iter().flatten().map(|detail| format!(" · {detail}"));
    let text = format!("session {id}{}", details.collect::<String>());
    Note::new("·", Tone::Faint, text)
}

fn error(class: ErrorClass, message: &str, status: Option<u16>) -> Note {
    let status = status
        .map(|status| format!(" (HTTP {status})"))
        .unwrap_or_default();
    let what = describe::error_words(class);
    Note::new("✗", Tone::Bad, format!("{what}{status}: {message}"))
}

fn retry(meta: &Meta) -> String {
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
    let of = max_attempts.map(|most| format!(" of {most}")).unwrap_or_default();
    let delay = delay_ms
        .map(|delay| format!(" in {}", millis(delay)))
        .unwrap_or_default();
    let what = describe::error_words(*class);
    format!("the agent tries again{delay}, attempt {attempt}{of}: {what}: {message}")
}

fn file_change(path: &str, change: FileChangeKind) -> Note {
    let word = match change {
        FileChangeKind::Added => "added",
        FileChangeKind::Modified => "changed",
        FileChangeKind::Deleted => "deleted",
    };
    Note::new("~", Tone::Accent, format!("{word} {path}"))
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
    let resets = resets_at.map(|reset| format!(", resets {}", units::clock(reset, at, zone)));
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
