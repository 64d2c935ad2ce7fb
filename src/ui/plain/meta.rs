//! What the agent tells about its session rather than in it, on the page.

use std::time::Duration;

use jiff::Timestamp;

use super::one_line::one_line;
use super::renderer::{PlainRenderer, SessionUsage, labels};
use crate::event::{FileChangeKind, Meta, PlanItem, PlanStatus, RateLimitStatus};
use crate::ui::{Tone, describe, units};

const MOST_PLAN_ITEMS: usize = 40;
const SESSION_ID_CHARS: usize = 8;

impl PlainRenderer {
    pub(super) fn meta(&mut self, meta: &Meta, at: Timestamp) {
        match meta {
            Meta::Session {
                session_id,
                model,
                version,
            } => self.session_line(session_id, model.as_deref(), version.as_deref()),
            Meta::Finished {
                success,
                reason,
                text,
                turns: _,
                duration_ms: _,
            } => self.finished(*success, reason.as_deref(), text.as_deref()),
            Meta::Error {
                class,
                message,
                status,
            } => {
                let status = status
                    .map(|status| format!(" (HTTP {status})"))
                    .unwrap_or_default();
                let what = describe::error_words(*class);
                self.note(labels::ERROR, &format!("{what}{status}: {message}"));
            }
            Meta::Retry { .. } => self.retry(meta),
            Meta::RateLimit {
                status,
                resets_at,
                limit,
            } => self.rate_limit(*status, *resets_at, limit.as_deref(), at),
            Meta::Plan { items } => self.plan(items),
            Meta::FileChange { path, change } => self.file_change(path, *change),
            Meta::PermissionDenied { tool } => {
                self.note(
                    labels::WARN,
                    &format!("the agent was not permitted to use {tool}"),
                );
            }
            Meta::ParseError { message } => self.note(labels::WARN, &format!("unreadable line: {message}")),
            Meta::Cut { bytes } => {
                let size = units::bytes(*bytes);
                self.note(
                    labels::WARN,
                    &format!("a line of {size} was cut; the raw file has all of it"),
                );
            }
            Meta::Other(fields) => {
                let message = fields
                    .get("message")
                    .and_then(serde_json::Value::as_str)
                    .map(str::to_owned);
                let text = message
                    .or_else(|| serde_json::to_string(fields).ok())
                    .unwrap_or_default();
                self.page.line(labels::SYS);
                self.page.put(Tone::Plain, &text);
                self.page.end_row();
            }
        }
    }

    fn session_line(&mut self, id: &str, model: Option<&str>, version: Option<&str>) {
        if self.session.id != id {
            self.session = SessionUsage {
                id: id.to_owned(),
                ..Default::default()
            };
        }
        let short: String = one_line(id, usize::MAX)
            .0
            .chars()
            .take(SESSION_ID_CHARS)
            .collect();
        let mut line = format!("session {short}");
        for detail in [model, version].into_iter().flatten() {
            line += &format!(" · {detail}");
        }
        // An agent may name its session again and again; only news is shown.
        if !self.iteration.session_line.starts_with(&line) {
            self.page.line(labels::SYS);
            self.page.put(Tone::Plain, &line);
            self.page.end_row();
            self.iteration.session_line = line;
        }
    }

    fn retry(&mut self, meta: &Meta) {
        let Meta::Retry {
            attempt,
            max_attempts,
            delay_ms,
            class,
            message,
        } = meta
        else {
            return;
        };
        let of = max_attempts.map(|most| format!(" of {most}")).unwrap_or_default();
        let delay = delay_ms.map(Duration::from_millis).map(units::duration);
        let delay = delay.map(|delay| format!(" in {delay}")).unwrap_or_default();
        let what = describe::error_words(*class);
        let text = format!("the agent tries again{delay}, attempt {attempt}{of}: {what}: {message}");
        self.note(labels::WARN, text.trim_end_matches([':', ' ']));
    }

    fn rate_limit(
        &mut self,
        status: RateLimitStatus,
        resets_at: Option<Timestamp>,
        limit: Option<&str>,
        at: Timestamp,
    ) {
        let (label, state) = match status {
            // Said at the start of every session of some agents, so not news.
            RateLimitStatus::Allowed if !self.is_verbose() => return,
            RateLimitStatus::Allowed => (labels::SYS, "not reached"),
            RateLimitStatus::Warning => (labels::WARN, "almost reached"),
            RateLimitStatus::Rejected => (labels::ERROR, "reached"),
        };
        let limit = limit.map(|limit| format!(" {limit}")).unwrap_or_default();
        let resets = resets_at.map(|reset| format!(", resets {}", units::clock(reset, at, &self.zone)));
        self.note(
            label,
            &format!("usage limit{limit} {state}{}", resets.unwrap_or_default()),
        );
    }

    /// One line for each change of the plan; the whole list comes at the end of the iteration.
    fn plan(&mut self, items: &[PlanItem]) {
        let items = &items[..items.len().min(MOST_PLAN_ITEMS)];
        if self.iteration.plan == items {
            return;
        }
        self.iteration.plan = items.to_vec();
        if self.is_verbose() {
            return self.plan_items();
        }
        let done = items
            .iter()
            .filter(|item| item.status == PlanStatus::Done)
            .count();
        let next = items
            .iter()
            .find(|item| item.status == PlanStatus::Active)
            .or_else(|| items.iter().find(|item| item.status == PlanStatus::Pending));
        self.page.line(labels::PLAN);
        self.page
            .put(Tone::Plain, &format!("{done} of {} done", items.len()));
        if let Some(next) = next {
            self.page
                .put_spaced(Tone::Plain, &format!("· next: {}", next.text));
        }
        self.page.end_row();
    }

    fn file_change(&mut self, path: &str, change: FileChangeKind) {
        let word = match change {
            FileChangeKind::Added => "added",
            FileChangeKind::Modified => "changed",
            FileChangeKind::Deleted => "deleted",
        };
        self.page.line(labels::FILE);
        self.page.put(Tone::Plain, word);
        self.page.put_spaced(Tone::Plain, path);
        self.page.end_row();
    }
}
