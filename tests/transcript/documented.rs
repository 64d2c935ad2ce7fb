//! `docs/transcripts.md` says what is true: its examples run, and its tables are complete.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use ralph::event::{Tag, ToolStatus, TranscriptEvent};
use ralph::transcript::{Opening, find, names};

use super::is_parse_error;

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/transcripts.md");
    fs::read_to_string(path).expect("the page on transcripts")
}

/// The code between the fences of this language.
fn example(language: &str) -> String {
    let page = page();
    let opening = format!("```{language}\n");
    let (_, rest) = page.split_once(&opening).expect("an example in this language");
    let (code, _) = rest.split_once("```").expect("an example that ends");
    code.to_owned()
}

/// What the interpreter makes of the example; nothing where it is not installed.
fn output_of(interpreter: &str, language: &str) -> Option<Vec<TranscriptEvent>> {
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
    let text = String::from_utf8(output.stdout).expect("an example that prints UTF-8");
    let mut adapter = (find("rtf1")?.open)(&Opening { prompt: "" });
    let mut events = Vec::new();
    for line in text.lines() {
        adapter.feed(line, &mut events);
    }
    adapter.flush(&mut events);
    Some(events)
}

fn ends_with_the_marker(events: &[TranscriptEvent]) -> bool {
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
fn the_bash_example_is_understood() {
    let events = output_of("bash", "bash").expect("bash");
    assert!(!events.iter().any(is_parse_error), "{events:?}");
    assert_eq!(events.len(), 8);
    assert_eq!(statuses(&events), [ToolStatus::Ok]);
    assert!(ends_with_the_marker(&events));
}

#[test]
fn the_python_example_is_understood() {
    // Not everyone who builds this has Python.
    let Some(events) = output_of("python3", "python") else {
        return;
    };
    assert!(!events.iter().any(is_parse_error), "{events:?}");
    assert_eq!(statuses(&events), [ToolStatus::Fail]);
    assert!(ends_with_the_marker(&events));
}

#[test]
fn every_format_has_its_line_in_the_table() {
    let page = page();
    for name in names() {
        assert!(page.contains(&format!("| `{name}` |")), "{name}");
    }
}
