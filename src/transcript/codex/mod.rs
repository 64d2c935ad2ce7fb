//! `codex`: the output of `codex exec`. With `--json` it is one event per line, parsed by `jsonl`; otherwise it is the
//! human-readable transcript, parsed by `codex_text`. The first line determines the format.

mod jsonl;

use super::codex_text::CodexText;
use super::{Adapter, Capabilities, Format};
use crate::event::{ErrorClass, Meta, Tag, TranscriptEvent};
use crate::transcript::common::{classify_error, find_status};
use jsonl::CodexJsonl;

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
    open: |context| {
        Box::new(Codex {
            prompt: context.prompt.to_owned(),
            output: CodexOutput::Undecided,
        })
    },
};

struct Codex {
    prompt: String,
    output: CodexOutput,
}

enum CodexOutput {
    Undecided,
    Json(Box<CodexJsonl>),
    Text(Box<CodexText>),
}

impl Adapter for Codex {
    fn feed(&mut self, line: &str, out: &mut Vec<TranscriptEvent>) {
        self.decide(line, out);
        match &mut self.output {
            CodexOutput::Undecided => {
                if !line.trim().is_empty() {
                    out.push(TranscriptEvent::line(Tag::Sys, line.trim_end_matches('\r')));
                }
            }
            CodexOutput::Json(events) => events.feed(line, out),
            CodexOutput::Text(text) => text.feed(line, out),
        }
    }

    fn flush(&mut self, out: &mut Vec<TranscriptEvent>) {
        match &mut self.output {
            CodexOutput::Undecided => {}
            CodexOutput::Json(events) => events.flush(out),
            CodexOutput::Text(text) => text.flush(out),
        }
    }
}

impl Codex {
    fn decide(&mut self, line: &str, out: &mut Vec<TranscriptEvent>) {
        let line = line.trim_start();
        let is_json = match &mut self.output {
            CodexOutput::Json(_) => return,
            // Other output preceded the events.
            CodexOutput::Text(text) if line.starts_with(FIRST_EVENT) => {
                text.flush(out);
                true
            }
            CodexOutput::Text(_) => return,
            CodexOutput::Undecided if line.is_empty() || line.starts_with(PREFACE) => return,
            CodexOutput::Undecided => line.starts_with('{'),
        };
        self.output = if is_json {
            CodexOutput::Json(Box::default())
        } else {
            CodexOutput::Text(Box::new(CodexText::new(&self.prompt)))
        };
    }
}

const FIRST_EVENT: &str = r#"{"type":"thread.started""#;

/// `Reading prompt from stdin...`, which codex prints in both formats.
pub(super) const PREFACE: &str = "Reading ";

/// Converts an error message of codex. It may contain an HTTP status.
pub(super) fn error_meta(message: &str) -> Meta {
    let (class, status) = classify(message);
    Meta::Error {
        class,
        message: message.to_owned(),
        status,
    }
}

fn classify(message: &str) -> (ErrorClass, Option<u16>) {
    let status = find_status(message, &["unexpected status ", "last status: "]);
    (classify_error(status, message), status)
}

/// Parses `Reconnecting... 1/5 (reason)` and `Reconnecting... waiting for network (reason)`, which report a retry.
pub(super) fn parse_retry(message: &str) -> Option<Meta> {
    let rest = message.strip_prefix("Reconnecting... ")?;
    let (count, reason) = match rest.strip_prefix("waiting for network") {
        Some(reason) => ("1/", reason.trim_start()),
        None => rest.split_once(' ').unwrap_or((rest, "")),
    };
    let (attempt, max_attempts) = count.split_once('/')?;
    let reason = reason
        .strip_prefix('(')
        .and_then(|reason| reason.strip_suffix(')'))
        .unwrap_or(reason);
    Some(Meta::Retry {
        attempt: attempt.parse().ok()?,
        max_attempts: max_attempts.parse().ok(),
        delay_ms: None,
        class: classify(reason).0,
        message: if reason.is_empty() { "reconnecting" } else { reason }.to_owned(),
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
    fn waiting_for_the_network_is_a_retry() {
        let message = "Reconnecting... waiting for network (Connection failed: error sending request)";
        assert_eq!(
            parse_retry(message),
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
