//! Extracts evidence from one call of an agent: whether it answered, echoed or failed.

use crate::event::{ErrorClass, Meta, ProcessEnd, Tag, TranscriptEvent};
use crate::run::TrialOutput;
use crate::transcript::{self, AdapterContext, FORMATS, Format};

use super::{ANSWER, PROMPT, PROMPT_START};

/// Maximum length of a quoted line of output.
const MAX_QUOTE: usize = 200;
/// Prefix of an RTF1 line.
const SENTINEL: &str = "@@RALPH@@ ";

/// Evidence that the prompt arrived, from weakest to strongest.
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

/// Returns whether the call succeeded and shows that the prompt arrived. An echo shows that, but not that the agent works.
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
    } else if raw.contains(PROMPT_START) {
        PromptEvidence::Echoed
    } else if raw.trim().is_empty() {
        PromptEvidence::NoOutput
    } else {
        PromptEvidence::OtherOutput
    }
}

/// Returns the assistant's text.
pub(super) fn assistant_text(call: &TrialOutput) -> String {
    let pieces = call.events.iter().filter_map(|event| match event {
        TranscriptEvent::Text {
            tag: Tag::Ai, text, ..
        } => Some(text.as_str()),
        _ => None,
    });
    pieces.collect()
}

/// Phrases with which programs ask a person to log in, in lower case.
const LOGIN_REQUESTS: &[&str] = &[
    "starting login flow",
    "paste your code",
    "paste the code",
    "enter the code",
    "authorization code",
    "if your browser does not open",
    "if the browser does not open",
    "open this url",
    "open the following url",
    "to authenticate, visit",
    "waiting for authentication",
    "waiting for login",
    "how would you like to authenticate",
    "select login method",
    "please log in",
    "please login",
    "please sign in",
    "log in to continue",
    "sign in to continue",
];

/// Returns whether a call that did not succeed asked a person to log in.
pub(super) fn asks_for_login(call: &TrialOutput) -> bool {
    if succeeded(call) || prompt_evidence(call) == PromptEvidence::Answered {
        return false;
    }
    [&call.stdout, &call.stderr].into_iter().any(|output| {
        let text = String::from_utf8_lossy(output).to_lowercase();
        LOGIN_REQUESTS.iter().any(|phrase| text.contains(phrase))
    })
}

/// Returns what the agent answered, or else its last line of text; never a line of JSON.
pub(super) fn shown_output(call: &TrialOutput) -> Option<String> {
    let answer = shorten(&assistant_text(call));
    if !answer.is_empty() && !answer.starts_with('{') {
        return Some(answer);
    }
    last_line(&call.stdout).filter(|line| !line.starts_with('{'))
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

/// Returns the error that the agent reported, if the call failed.
pub(super) fn failure(call: &TrialOutput) -> Option<(ErrorClass, String)> {
    let mut error = None;
    let mut failed = call.end.is_some_and(|end| !end.success());
    for event in &call.events {
        match event {
            TranscriptEvent::Meta {
                meta: Meta::Error { class, message, .. },
            } => error = Some((*class, shorten(message))),
            TranscriptEvent::Meta {
                meta: Meta::Finished { success, .. },
            } => failed |= !success,
            _ => {}
        }
    }
    let unnamed = || (ErrorClass::Other, "the agent reported a failure".to_owned());
    let has_result = call.events.iter().any(is_finished);
    failed
        .then(|| error.or_else(|| has_result.then(unnamed)))
        .flatten()
}

fn shorten(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= MAX_QUOTE {
        return line;
    }
    line.chars().take(MAX_QUOTE).chain(['…']).collect()
}

/// Returns the last non-empty line.
pub(super) fn last_line(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let line = text.lines().rev().find(|line| !line.trim().is_empty());
    line.map(shorten)
}

/// Returns the structured format that matches the output.
pub(super) fn detect_format(stdout: &[u8]) -> Option<&'static str> {
    let text = String::from_utf8_lossy(stdout);
    if text.lines().any(|line| line.starts_with(SENTINEL)) {
        return transcript::find("rtf1").map(|format| format.name);
    }
    let matches = |format: &&Format| {
        let mut adapter = (format.open)(&AdapterContext::new(PROMPT));
        let mut events = Vec::new();
        text.lines().for_each(|line| adapter.feed(line, &mut events));
        adapter.flush(&mut events);
        let has = |is: fn(&TranscriptEvent) -> bool| events.iter().any(is);
        let has_message = has(|event| matches!(event, TranscriptEvent::Text { tag: Tag::Ai, .. }));
        has_message && has(is_finished)
    };
    let structured = FORMATS.iter().filter(|format| format.capabilities.terminal_event);
    structured.into_iter().find(matches).map(|format| format.name)
}
