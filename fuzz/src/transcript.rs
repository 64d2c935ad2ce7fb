//! A transcript format on arbitrary output: no panic, no lost line, no call that begins and never ends.

use ralph::event::{Tag, TranscriptEvent};
use ralph::transcript::{Adapter, Opening, find};
use serde_json::value::RawValue;

const PROMPT: &str = "Do the task described in README.md, then finish.\n\nPrint LOOP_COMPLETE when done.";

/// Formats whose every line is a JSON object. `codex` is one only when its first line says so.
const STRUCTURED: &[&str] = &["claude", "gemini", "opencode", "copilot", "cursor", "amp"];

/// An answer after everything else: it must be heard whatever went before it.
const LAST_WORDS: &str = "last words 7f3a91";

pub fn transcript(format: &str, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let row = find(format).expect("a format of this name");
    let mut adapter = (row.open)(&Opening { prompt: PROMPT });
    let mut events = Vec::new();
    for line in text.split('\n') {
        let before = events.len();
        adapter.feed(line, &mut events);
        check_line(format, line, &events[before..]);
    }
    let before = events.len();
    speak_last(adapter.as_mut(), &mut events);
    let heard = events[before..]
        .iter()
        .any(|event| words(event).contains(LAST_WORDS));
    assert!(heard, "{format}: the last words were lost");
    check_calls(format, &events);
    for event in &events {
        let json = serde_json::to_string(event).expect("an event is JSON");
        serde_json::from_str::<TranscriptEvent>(&json).expect("the journal is readable");
    }
}

/// In text for people an empty line and a heading go before an answer; in a stream of JSON they are shown, too.
fn speak_last(adapter: &mut dyn Adapter, events: &mut Vec<TranscriptEvent>) {
    for line in ["", "codex", LAST_WORDS] {
        adapter.feed(line, events);
    }
    adapter.flush(events);
}

fn check_line(format: &str, line: &str, events: &[TranscriptEvent]) {
    let shown = |tag: Tag| {
        events
            .iter()
            .any(|event| matches!(event, TranscriptEvent::Text { tag: whose, text, .. } if *whose == tag && text == line))
    };
    match format {
        "plain" => assert!(shown(Tag::Ai), "plain: {line:?}"),
        "rtf1" if line.starts_with("@@RALPH@@ ") => assert!(!events.is_empty(), "rtf1: {line:?}"),
        "rtf1" => assert!(shown(Tag::Ai), "rtf1: {line:?}"),
        format if STRUCTURED.contains(&format) && is_unreadable(line) => {
            assert!(shown(Tag::Sys), "{format}: {line:?}");
        }
        _ => {}
    }
}

/// There is something in this line, and no reader of JSON takes it for an object.
fn is_unreadable(line: &str) -> bool {
    let text = anstream::adapter::strip_str(line).to_string();
    let text = text.trim();
    !text.is_empty() && (!text.starts_with('{') || serde_json::from_str::<&RawValue>(text).is_err())
}

/// Every call that starts ends, and none ends that is not running.
fn check_calls(format: &str, events: &[TranscriptEvent]) {
    let mut open: Vec<&str> = Vec::new();
    for event in events {
        match event {
            TranscriptEvent::ToolStart { tool } => {
                assert!(!open.contains(&tool.id.as_str()), "{format}: began twice");
                open.push(&tool.id);
            }
            // An author of RTF1 may end what never began: it is shown as it was said.
            TranscriptEvent::ToolEnd { tool } => {
                assert!(
                    format == "rtf1" || open.contains(&tool.id.as_str()),
                    "{format}: ended twice"
                );
                open.retain(|id| *id != tool.id);
            }
            TranscriptEvent::Text { .. }
            | TranscriptEvent::ToolOutput { .. }
            | TranscriptEvent::Usage { .. }
            | TranscriptEvent::Meta { .. } => {}
        }
    }
    assert!(open.is_empty(), "{format}: still running: {open:?}");
}

fn words(event: &TranscriptEvent) -> &str {
    match event {
        TranscriptEvent::Text { text, .. } | TranscriptEvent::ToolOutput { text, .. } => text,
        TranscriptEvent::ToolStart { .. }
        | TranscriptEvent::ToolEnd { .. }
        | TranscriptEvent::Usage { .. }
        | TranscriptEvent::Meta { .. } => "",
    }
}
