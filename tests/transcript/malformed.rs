//! What must never break a format: lines that were cut, garbled, or of another shape than expected.

use std::collections::HashSet;

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};
use ralph::event::{Tag, TranscriptEvent};
use serde::de::IgnoredAny;

use super::fixtures::{Fixture, all};

/// Formats whose every line is a JSON object.
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

/// As the program's own words, or as those of an unknown speaker: `codex` takes a first line that is no event for
/// the other form of its output, from which it strips colours.
fn is_shown(line: &str, events: &[TranscriptEvent]) -> bool {
    events.iter().any(|event| match event {
        TranscriptEvent::Text {
            tag: Tag::Sys, text, ..
        } => text == line,
        TranscriptEvent::Text {
            tag: Tag::Ai, text, ..
        } => text.trim_end() == without_controls(line).trim_end(),
        _ => false,
    })
}

fn without_controls(line: &str) -> String {
    anstream::adapter::strip_str(line).to_string()
}

fn field_names(line: &str) -> Vec<String> {
    let parts: Vec<&str> = line.split('"').collect();
    let named = parts.windows(2).filter(|pair| pair[1].starts_with(':'));
    named.map(|pair| pair[0].to_owned()).collect()
}

#[test]
fn a_line_cut_anywhere_is_shown() {
    let mut seen = HashSet::new();
    for fixture in all() {
        let structured = STRUCTURED.contains(&fixture.format.as_str());
        for line in fixture.lines().filter(|line| line.starts_with('{')) {
            // Lines of the same fields are read alike: one of them is cut.
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
fn a_session_cut_after_any_line_closes_what_is_open() {
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

/// Values that may stand where another was expected.
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

/// Pieces that break, or nearly break, a line of JSON.
const PIECES: &[&str] = &[
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

/// Damages a line in one to three ways. All follow from the seed, which is all that a failing case has to name.
fn damaged(line: &str, seed: u64) -> String {
    let mut chance = fastrand::Rng::with_seed(seed);
    let mut line = line.to_owned();
    for _ in 0..chance.usize(1..4) {
        if line.is_empty() {
            break;
        }
        let at = line.floor_char_boundary(chance.usize(..line.len()));
        match chance.u8(..4) {
            0 => {
                let old = line[at..].chars().next().map_or(0, char::len_utf8);
                line.replace_range(at..at + old, chance.char(..).encode_utf8(&mut [0; 4]));
            }
            1 => {
                let to = line.ceil_char_boundary((at + chance.usize(1..40)).min(line.len()));
                line.replace_range(at..to, "");
            }
            2 => line.insert_str(at, PIECES[chance.usize(..PIECES.len())]),
            _ => retype(&mut line, at, VALUES[chance.usize(..VALUES.len())]),
        }
    }
    line
}

/// The value after the next colon becomes another one.
fn retype(line: &mut String, at: usize, what: &str) {
    let Some(colon) = line[at..].find("\":") else {
        return;
    };
    let from = at + colon + 2;
    let mut values = serde_json::Deserializer::from_str(&line[from..]).into_iter::<IgnoredAny>();
    if let Some(Ok(_)) = values.next() {
        let length = values.byte_offset();
        line.replace_range(from..from + length, what);
    }
}

/// A line that no JSON reader takes must be seen by the user, whatever it was.
fn check_damaged(fixture: &Fixture, line: &str) -> Result<(), TestCaseError> {
    let line = line.replace('\n', " ");
    let events = feed(fixture, &line);
    if !STRUCTURED.contains(&fixture.format.as_str()) || is_shown(&line, &events) {
        return Ok(());
    }
    let readable = line.contains('\u{1b}')
        || line.contains("\\ud")
        || serde_json::from_str::<IgnoredAny>(line.trim()).is_ok();
    prop_assert!(readable || without_controls(&line).trim().is_empty(), "{line}");
    Ok(())
}

#[test]
fn damaged_lines_never_panic_and_are_never_lost() {
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
