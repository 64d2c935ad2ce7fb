//! Checks `docs/transcripts.md`: its examples run, and its tables are complete.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use ralph::event::{Tag, ToolStatus, TranscriptEvent};
use ralph::transcript::{AdapterContext, find, names};

use super::is_parse_error;

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/transcripts.md");
    fs::read_to_string(path).expect("docs/transcripts.md is readable")
}

/// The first code block in this language.
fn example(language: &str) -> String {
    let page = page();
    let fence = format!("```{language}\n");
    let (_, rest) = page
        .split_once(&fence)
        .expect("the page has an example in this language");
    let (code, _) = rest.split_once("```").expect("the code block is closed");
    code.to_owned()
}

/// The events that the example prints; `None` if the interpreter is not installed.
fn run_example(interpreter: &str, language: &str) -> Option<Vec<TranscriptEvent>> {
    let command = Command::new(interpreter)
        .args(["-c", &example(language)])
        .stdin(Stdio::null())
        .output();
    let output = command.ok()?;
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).expect("the example prints UTF-8");
    let mut adapter = (find("rtf1")?.open)(&AdapterContext::new(""));
    let mut events = Vec::new();
    for line in text.lines() {
        adapter.feed(line, &mut events);
    }
    adapter.flush(&mut events);
    Some(events)
}

fn ends_with_marker(events: &[TranscriptEvent]) -> bool {
    let mut answers = events.iter().filter_map(|event| match event {
        TranscriptEvent::Text {
            tag: Tag::Ai, text, ..
        } => Some(text.as_str()),
        _ => None,
    });
    answers.next_back() == Some("LOOP_COMPLETE")
}

fn statuses(events: &[TranscriptEvent]) -> Vec<ToolStatus> {
    let ends = events.iter().filter_map(|event| match event {
        TranscriptEvent::ToolEnd { tool } => Some(tool.status),
        _ => None,
    });
    ends.collect()
}

#[test]
fn bash_example_is_parsed() {
    let events = run_example("bash", "bash").expect("bash is installed");
    assert!(!events.iter().any(is_parse_error), "{events:?}");
    assert_eq!(events.len(), 8);
    assert_eq!(statuses(&events), [ToolStatus::Ok]);
    assert!(ends_with_marker(&events));
}

#[test]
fn python_example_is_parsed() {
    let Some(events) = run_example("python3", "python") else {
        return crate::sandbox::skip::skip("python3 is not installed");
    };
    assert!(!events.iter().any(is_parse_error), "{events:?}");
    assert_eq!(statuses(&events), [ToolStatus::Fail]);
    assert!(ends_with_marker(&events));
}

#[test]
fn every_format_is_in_the_table() {
    let page = page();
    for name in names() {
        assert!(page.contains(&format!("| `{name}` |")), "{name}");
    }
}
