//! `codex`: what `codex exec` prints. With `--json` that is one event per line, read in `jsonl`; without, it is the
//! transcript for people, read by `codex-text`. The first line tells which.

mod jsonl;

use super::codex_text::CodexText;
use super::{Adapter, Capabilities, Format};
use crate::event::{ErrorClass, Meta, Tag, TranscriptEvent};
use crate::transcript::common::{class_of_error, status_named_in};
use jsonl::Jsonl;

pub(super) const FORMAT: Format = Format {
    name: "codex",
    capabilities: Capabilities {
        roles: true,
        messages: true,
        tools: true,
        usage: true,
        costs: false,
        sessions: true,
        prompt_hiding: true,
        terminal_event: true,
    },
    open: |opening| {
        Box::new(Codex {
            prompt: opening.prompt.to_owned(),
            reading: Reading::Undecided,
        })
    },
};

struct Codex {
    prompt: String,
    reading: Reading,
}

enum Reading {
    Undecided,
    Events(Box<Jsonl>),
    Text(Box<CodexText>),
}

impl Adapter for Codex {
    fn feed(&mut self, line: &str, out: &mut Vec<TranscriptEvent>) {
        self.decide(line, out);
        match &mut self.reading {
            Reading::Undecided => {
                if !line.trim().is_empty() {
                    out.push(TranscriptEvent::line(Tag::Sys, line.trim_end_matches('\r')));
                }
            }
            Reading::Events(events) => events.feed(line, out),
            Reading::Text(text) => text.feed(line, out),
        }
    }

    fn flush(&mut self, out: &mut Vec<TranscriptEvent>) {
        match &mut self.reading {
            Reading::Undecided => {}
            Reading::Events(events) => events.flush(out),
            Reading::Text(text) => text.flush(out),
        }
    }
}

impl Codex {
    fn decide(&mut self, line: &str, out: &mut Vec<TranscriptEvent>) {
        let line = line.trim_start();
        let events = match &mut self.reading {
            Reading::Events(_) => return,
            // A stray line went before the events.
            Reading::Text(text) if line.starts_with(FIRST_EVENT) => {
                text.flush(out);
                true
            }
            Reading::Text(_) => return,
            Reading::Undecided if line.is_empty() || line.starts_with(PREFACE) => return,
            Reading::Undecided => line.starts_with('{'),
        };
        self.reading = if events {
            Reading::Events(Box::default())
        } else {
            Reading::Text(Box::new(CodexText::new(&self.prompt)))
        };
    }
}

const FIRST_EVENT: &str = r#"{"type":"thread.started""#;

/// `Reading prompt from stdin...`: printed in both forms.
pub(super) const PREFACE: &str = "Reading ";

/// Codex gives a failure as a sentence in which the status stands after one of these.
pub(super) fn error_of(message: &str) -> Meta {
    let (class, status) = class_of(message);
    Meta::Error {
        class,
        message: message.to_owned(),
        status,
    }
}

fn class_of(message: &str) -> (ErrorClass, Option<u16>) {
    let status = status_named_in(message, &["unexpected status ", "last status: "]);
    (class_of_error(status, message), status)
}

/// `Reconnecting... 1/5 (why)`, or without a count `Reconnecting... waiting for network (why)`: codex tries again by
/// itself.
pub(super) fn retry_of(message: &str) -> Option<Meta> {
    let rest = message.strip_prefix("Reconnecting... ")?;
    let (count, why) = match rest.strip_prefix("waiting for network") {
        Some(why) => ("1/", why.trim_start()),
        None => rest.split_once(' ').unwrap_or((rest, "")),
    };
    let (attempt, max_attempts) = count.split_once('/')?;
    let why = why
        .strip_prefix('(')
        .and_then(|why| why.strip_suffix(')'))
        .unwrap_or(why);
    Some(Meta::Retry {
        attempt: attempt.parse().ok()?,
        max_attempts: max_attempts.parse().ok(),
        delay_ms: None,
        class: class_of(why).0,
        message: if why.is_empty() { "reconnecting" } else { why }.to_owned(),
    })
}

pub(super) fn finished(success: bool, reason: &str) -> TranscriptEvent {
    TranscriptEvent::meta(Meta::Finished {
        success,
        reason: Some(reason.to_owned()),
        text: None,
        turns: None,
        duration_ms: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_the_network_is_no_error() {
        let message = "Reconnecting... waiting for network (Connection failed: error sending request)";
        assert_eq!(
            retry_of(message),
            Some(Meta::Retry {
                attempt: 1,
                max_attempts: None,
                delay_ms: None,
                class: ErrorClass::Network,
                message: "Connection failed: error sending request".into(),
            })
        );
    }
}
