//! Transcript formats on arbitrary output: no panic, no lost line, and every tool call that starts also ends.

use ralph::event::{Tag, TranscriptEvent};
use ralph::transcript::{Adapter, AdapterContext, find};
use serde_json::value::RawValue;

const PROMPT: &str = "Do the task described in README.md, then finish.\n\nPrint LOOP_COMPLETE when done.";

/// Formats in which every line is a JSON object. `codex` is excluded: its first line decides between JSON and text.
const STRUCTURED: &[&str] = &["claude", "gemini", "opencode", "copilot", "cursor", "amp"];

/// An answer after the fuzzed input. It must appear in the events whatever came before it.
const FINAL_ANSWER: &str = "final answer 7f3a91";

pub fn transcript(format: &str, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let row = find(format).expect("the format exists");
    let mut adapter = (row.open)(&AdapterContext::new(PROMPT));
    let mut events = Vec::new();
    for line in text.split('\n') {
        let before = events.len();
        adapter.feed(line, &mut events);
        check_line(format, line, &events[before..]);
    }
    let before = events.len();
    feed_final_answer(adapter.as_mut(), &mut events);
    let found = events[before..]
        .iter()
        .any(|event| text_of(event).contains(FINAL_ANSWER));
    assert!(found, "{format}: the final answer was lost");
    check_calls(format, &events);
    for event in &events {
        let json = serde_json::to_string(event).expect("the event serializes");
        serde_json::from_str::<TranscriptEvent>(&json).expect("the event can be read back");
    }
}

/// The text formats expect an empty line and a heading before an answer. The JSON formats show them as unreadable lines.
fn feed_final_answer(adapter: &mut dyn Adapter, events: &mut Vec<TranscriptEvent>) {
    for line in ["", "codex", FINAL_ANSWER] {
        adapter.feed(line, events);
    }
    adapter.flush(events);
}

fn check_line(format: &str, line: &str, events: &[TranscriptEvent]) {
    let shown = |tag: Tag| {
        events
            .iter()
            .any(|event| matches!(event, TranscriptEvent::Text { tag: found, text, .. } if *found == tag && text == line))
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

/// True if the line is not empty and is not a JSON object.
fn is_unreadable(line: &str) -> bool {
    let text = anstream::adapter::strip_str(line).to_string();
    let text = text.trim();
    !text.is_empty() && (!text.starts_with('{') || serde_json::from_str::<&RawValue>(text).is_err())
}

/// Every tool call that starts ends, and only running calls end.
fn check_calls(format: &str, events: &[TranscriptEvent]) {
    let mut open: Vec<&str> = Vec::new();
    for event in events {
        match event {
            TranscriptEvent::ToolStart { tool } => {
                assert!(!open.contains(&tool.id.as_str()), "{format}: started twice");
                open.push(&tool.id);
            }
            // An RTF1 agent may end a call that never started; the event is passed on unchanged.
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

fn text_of(event: &TranscriptEvent) -> &str {
    match event {
        TranscriptEvent::Text { text, .. } | TranscriptEvent::ToolOutput { text, .. } => text,
        TranscriptEvent::ToolStart { .. }
        | TranscriptEvent::ToolEnd { .. }
        | TranscriptEvent::Usage { .. }
        | TranscriptEvent::Meta { .. } => "",
    }
}
