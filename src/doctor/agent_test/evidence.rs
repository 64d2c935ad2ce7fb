//! What can be read off one call of an agent.

use crate::event::{ErrorClass, Meta, ProcessEnd, Tag, TranscriptEvent};
use crate::run::TrialOutput;
use crate::transcript::{self, FORMATS, Format, Opening};

use super::{ANSWER, BEGINNING, PROMPT};

/// Of what an agent said last, so many characters are shown.
const LAST_WORDS: usize = 200;
/// What a line of RTF1 begins with.
const SENTINEL: &str = "@@RALPH@@ ";

/// What shows that the prompt arrived, the best last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PromptEvidence {
    NoOutput,
    OtherOutput,
    Echoed,
    Answered,
}

pub(super) fn succeeded(call: &TrialOutput) -> bool {
    call.end.is_some_and(ProcessEnd::success) && failure(call).is_none()
}

/// It worked, and the prompt had to do with it.
pub(super) fn proves_prompt(call: &TrialOutput) -> bool {
    succeeded(call) && prompt_evidence(call) >= PromptEvidence::Echoed
}

pub(super) fn prompt_evidence(call: &TrialOutput) -> PromptEvidence {
    let letters = |text: &str| -> String {
        let kept = text.chars().filter(|c| c.is_alphanumeric());
        kept.flat_map(char::to_lowercase).collect()
    };
    let raw = String::from_utf8_lossy(&call.stdout);
    if letters(&assistant_text(call)).contains(ANSWER) {
        PromptEvidence::Answered
    } else if raw.contains(BEGINNING) {
        PromptEvidence::Echoed
    } else if raw.trim().is_empty() {
        PromptEvidence::NoOutput
    } else {
        PromptEvidence::OtherOutput
    }
}

/// What the assistant said.
pub(super) fn assistant_text(call: &TrialOutput) -> String {
    let pieces = call.events.iter().filter_map(|event| match event {
        TranscriptEvent::Text {
            tag: Tag::Ai, text, ..
        } => Some(text.as_str()),
        TranscriptEvent::Meta {
            meta: Meta::Finished { text, .. },
        } => text.as_deref(),
        _ => None,
    });
    pieces.collect()
}

pub(super) fn count(call: &TrialOutput, is: fn(&TranscriptEvent) -> bool) -> usize {
    call.events.iter().filter(|event| is(event)).count()
}

pub(super) fn is_finished(event: &TranscriptEvent) -> bool {
    matches!(
        event,
        TranscriptEvent::Meta {
            meta: Meta::Finished { .. }
        }
    )
}

/// What the agent itself says went wrong, when that was its last word on it.
pub(super) fn failure(call: &TrialOutput) -> Option<(ErrorClass, String)> {
    let mut error = None;
    let mut failed = call.end.is_some_and(|end| !end.success());
    for event in &call.events {
        match event {
            TranscriptEvent::Meta {
                meta: Meta::Error { class, message, .. },
            } => error = Some((*class, shortened(message))),
            TranscriptEvent::Meta {
                meta: Meta::Finished { success, .. },
            } => failed |= !success,
            _ => {}
        }
    }
    let unnamed = || (ErrorClass::Other, "it says that it failed".to_owned());
    let said_so = call.events.iter().any(is_finished);
    failed.then(|| error.or_else(|| said_so.then(unnamed))).flatten()
}

fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= LAST_WORDS {
        return line;
    }
    line.chars().take(LAST_WORDS).chain(['…']).collect()
}

/// The last line of a stream that is not empty.
pub(super) fn last_line(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let line = text.lines().rev().find(|line| !line.trim().is_empty());
    line.map(shortened)
}

/// The format in which an output is more than text.
pub(super) fn detect_format(stdout: &[u8]) -> Option<&'static str> {
    let text = String::from_utf8_lossy(stdout);
    if text.lines().any(|line| line.starts_with(SENTINEL)) {
        return transcript::find("rtf1").map(|format| format.name);
    }
    let fits = |format: &&Format| {
        let mut adapter = (format.open)(&Opening { prompt: PROMPT });
        let mut events = Vec::new();
        text.lines().for_each(|line| adapter.feed(line, &mut events));
        adapter.flush(&mut events);
        let has = |is: fn(&TranscriptEvent) -> bool| events.iter().any(is);
        let speaks = has(|event| matches!(event, TranscriptEvent::Text { tag: Tag::Ai, .. }));
        speaks && has(is_finished)
    };
    let structured = FORMATS.iter().filter(|format| format.capabilities.terminal_event);
    structured.into_iter().find(fits).map(|format| format.name)
}
