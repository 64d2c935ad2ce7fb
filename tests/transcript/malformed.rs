//! Feeds truncated and damaged lines to all formats.

use std::collections::HashSet;

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};
use ralph::event::{Tag, TranscriptEvent};
use serde::de::IgnoredAny;

use super::fixtures::{Fixture, all};

/// Formats in which every line is a JSON object.
const STRUCTURED: &[&str] = &[
    "claude", "codex", "gemini", "opencode", "copilot", "cursor", "amp",
];

fn feed(fixture: &Fixture, line: &str) -> Vec<TranscriptEvent> {
    let mut out = Vec::new();
    let mut adapter = fixture.open();
    adapter.feed(line, &mut out);
    adapter.flush(&mut out);
    out
}

/// True if the line is shown as SYS or AI text. `codex` parses a first line that is not an event as its human-readable
/// transcript, from which it removes colors.
fn is_shown(line: &str, events: &[TranscriptEvent]) -> bool {
    events.iter().any(|event| match event {
        TranscriptEvent::Text {
            tag: Tag::Sys, text, ..
        } => text == line,
        TranscriptEvent::Text {
            tag: Tag::Ai, text, ..
        } => text.trim_end() == strip_terminal_sequences(line).trim_end(),
        _ => false,
    })
}

fn strip_terminal_sequences(line: &str) -> String {
    anstream::adapter::strip_str(line).to_string()
}

fn field_names(line: &str) -> Vec<String> {
    let parts: Vec<&str> = line.split('"').collect();
    let named = parts.windows(2).filter(|pair| pair[1].starts_with(':'));
    named.map(|pair| pair[0].to_owned()).collect()
}

#[test]
fn truncated_line_is_shown() {
    let mut seen = HashSet::new();
    for fixture in all() {
        let structured = STRUCTURED.contains(&fixture.format.as_str());
        for line in fixture.lines().filter(|line| line.starts_with('{')) {
            // Lines with the same fields are parsed in the same way: one of them is enough.
            if !seen.insert((fixture.format.clone(), field_names(line))) {
                continue;
            }
            for length in 1..line.trim_end().len() {
                let cut = String::from_utf8_lossy(&line.as_bytes()[..length]);
                let events = feed(&fixture, &cut);
                assert!(
                    !structured || is_shown(&cut, &events),
                    "{}: {cut}",
                    fixture.title()
                );
            }
        }
    }
}

#[test]
fn truncated_session_closes_open_tool_calls() {
    for fixture in all() {
        let lines: Vec<&str> = fixture.lines().collect();
        for count in 0..lines.len().min(200) {
            let (mut adapter, mut out) = (fixture.open(), Vec::new());
            lines[..count]
                .iter()
                .for_each(|line| adapter.feed(line, &mut out));
            adapter.flush(&mut out);
            let started = out
                .iter()
                .filter(|e| matches!(e, TranscriptEvent::ToolStart { .. }))
                .count();
            let ended = out
                .iter()
                .filter(|e| matches!(e, TranscriptEvent::ToolEnd { .. }))
                .count();
            assert_eq!(started, ended, "{} after {count} lines", fixture.title());
        }
    }
}

/// Values of other types.
const VALUES: &[&str] = &[
    "null",
    "7",
    "-1",
    "true",
    "\"x\"",
    "[]",
    "{}",
    "[{}]",
    "1e999",
    "\"\\ud800\"",
];

/// Texts that break, or nearly break, a JSON line.
const INSERTIONS: &[&str] = &[
    "{",
    "}",
    "\"",
    "\\",
    ",",
    ":",
    "\u{1b}[0m",
    "\0",
    "é",
    "\u{2028}",
    "[[[[",
];

/// Applies one to three changes to a line. The seed determines all of them, so that a failure can be reproduced.
fn damaged(line: &str, seed: u64) -> String {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut line = line.to_owned();
    for _ in 0..rng.usize(1..4) {
        if line.is_empty() {
            break;
        }
        let at = line.floor_char_boundary(rng.usize(..line.len()));
        match rng.u8(..4) {
            0 => {
                let old = line[at..].chars().next().map_or(0, char::len_utf8);
                line.replace_range(at..at + old, rng.char(..).encode_utf8(&mut [0; 4]));
            }
            1 => {
                let to = line.ceil_char_boundary((at + rng.usize(1..40)).min(line.len()));
                line.replace_range(at..to, "");
            }
            2 => line.insert_str(at, INSERTIONS[rng.usize(..INSERTIONS.len())]),
            _ => replace_value(&mut line, at, VALUES[rng.usize(..VALUES.len())]),
        }
    }
    line
}

/// Replaces the value after the next colon.
fn replace_value(line: &mut String, at: usize, value: &str) {
    let Some(colon) = line[at..].find("\":") else {
        return;
    };
    let from = at + colon + 2;
    let mut values = serde_json::Deserializer::from_str(&line[from..]).into_iter::<IgnoredAny>();
    if let Some(Ok(_)) = values.next() {
        let length = values.byte_offset();
        line.replace_range(from..from + length, value);
    }
}

/// Checks that a line which is not valid JSON is shown to the user.
fn check_damaged(fixture: &Fixture, line: &str) -> Result<(), TestCaseError> {
    let line = line.replace('\n', " ");
    let events = feed(fixture, &line);
    if !STRUCTURED.contains(&fixture.format.as_str()) || is_shown(&line, &events) {
        return Ok(());
    }
    let readable = line.contains('\u{1b}')
        || line.contains("\\ud")
        || serde_json::from_str::<IgnoredAny>(line.trim()).is_ok();
    prop_assert!(
        readable || strip_terminal_sequences(&line).trim().is_empty(),
        "{line}"
    );
    Ok(())
}

#[test]
fn damaged_lines_do_not_panic_and_are_shown() {
    let fixtures = all();
    for format in ralph::transcript::names() {
        let lines: Vec<(&Fixture, &str)> = fixtures
            .iter()
            .filter(|fixture| fixture.format == format)
            .flat_map(|fixture| fixture.lines().map(move |line| (fixture, line)))
            .filter(|(_, line)| (1..600).contains(&line.len()))
            .filter(|(_, line)| line.starts_with('{') || !STRUCTURED.contains(&format))
            .collect();
        if lines.is_empty() {
            continue;
        }
        let config = Config {
            cases: 10_000,
            failure_persistence: None,
            ..Config::default()
        };
        TestRunner::new(config)
            .run(&any::<(Index, u64)>(), |(which, seed)| {
                let (fixture, line) = which.get(&lines);
                check_damaged(fixture, &damaged(line, seed))
            })
            .unwrap_or_else(|error| panic!("{format}: {error}"));
    }
}
