//! What must never break a format: lines that were cut, garbled, or of another shape than expected.

use std::collections::HashSet;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestRunner};
use ralph::event::{Tag, TranscriptEvent};

use super::fixtures::{Fixture, all};

/// Formats whose every line is a JSON object.
const STRUCTURED: &[&str] = &["claude"];

fn feed(fixture: &Fixture, line: &str) -> Vec<TranscriptEvent> {
    let mut out = Vec::new();
    let mut adapter = fixture.open();
    adapter.feed(line, &mut out);
    adapter.flush(&mut out);
    out
}

fn is_shown(line: &str, events: &[TranscriptEvent]) -> bool {
    events
        .iter()
        .any(|event| matches!(event, TranscriptEvent::Text { tag: Tag::Sys, text, .. } if text == line))
}

#[test]
fn a_line_cut_anywhere_is_shown() {
    let mut seen = HashSet::new();
    for fixture in all() {
        let structured = STRUCTURED.contains(&fixture.format.as_str());
        for line in fixture.lines().filter(|line| line.starts_with('{')) {
            // The first line of every session is long and nearly the same: once is enough.
            if !seen.insert((
                fixture.format.clone(),
                line.len() / 64,
                line.get(..48).map(str::to_owned),
            )) {
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

/// One way to damage a line.
#[derive(Debug, Clone)]
enum Damage {
    Replace(Index, char),
    Remove(Index, usize),
    Insert(Index, &'static str),
    /// The value after a colon becomes another one.
    Retype(Index, &'static str),
}

fn damages() -> impl Strategy<Value = Vec<Damage>> {
    let values = select(vec![
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
    ]);
    let pieces = select(vec![
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
    ]);
    let one = prop_oneof![
        (any::<Index>(), any::<char>()).prop_map(|(at, with)| Damage::Replace(at, with)),
        (any::<Index>(), 1_usize..40).prop_map(|(at, count)| Damage::Remove(at, count)),
        (any::<Index>(), pieces).prop_map(|(at, what)| Damage::Insert(at, what)),
        (any::<Index>(), values).prop_map(|(at, what)| Damage::Retype(at, what)),
    ];
    proptest::collection::vec(one, 1..4)
}

fn damaged(line: &str, damages: &[Damage]) -> String {
    let mut line = line.to_owned();
    for damage in damages {
        let boundaries: Vec<usize> = line.char_indices().map(|(at, _)| at).collect();
        if boundaries.is_empty() {
            break;
        }
        match damage {
            Damage::Replace(at, with) => {
                let at = *at.get(&boundaries);
                let old = line[at..].chars().next().map_or(0, char::len_utf8);
                line.replace_range(at..at + old, with.encode_utf8(&mut [0; 4]));
            }
            Damage::Remove(at, count) => {
                let from = at.index(boundaries.len());
                let to = boundaries.get(from + count).copied().unwrap_or(line.len());
                line.replace_range(boundaries[from]..to, "");
            }
            Damage::Insert(at, what) => line.insert_str(*at.get(&boundaries), what),
            Damage::Retype(at, what) => retype(&mut line, *at, what),
        }
    }
    line
}

fn retype(line: &mut String, at: Index, what: &str) {
    let colons: Vec<usize> = line.match_indices("\":").map(|(at, _)| at + 2).collect();
    if colons.is_empty() {
        return;
    }
    let from = *at.get(&colons);
    let rest = &line[from..];
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<serde::de::IgnoredAny>();
    if let Some(Ok(_)) = values.next() {
        let length = values.byte_offset();
        line.replace_range(from..from + length, what);
    }
}

/// A line that no JSON reader takes must be seen by the user, whatever it was.
fn check_damaged(fixture: &Fixture, line: &str) -> Result<(), TestCaseError> {
    let line = line.replace('\n', " ");
    let events = feed(fixture, &line);
    let structured = STRUCTURED.contains(&fixture.format.as_str());
    let readable = line.contains('\u{1b}')
        || line.contains("\\ud")
        || serde_json::from_str::<serde::de::IgnoredAny>(line.trim()).is_ok();
    let blank = line.trim().is_empty();
    prop_assert!(
        !structured || readable || blank || is_shown(&line, &events),
        "{line}"
    );
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
            .filter(|(_, line)| (1..1500).contains(&line.len()))
            .collect();
        if lines.is_empty() {
            continue;
        }
        let config = Config {
            cases: 10_000,
            failure_persistence: None,
            ..Config::default()
        };
        let strategy = (any::<Index>(), damages());
        TestRunner::new(config)
            .run(&strategy, |(which, damages)| {
                let (fixture, line) = which.get(&lines);
                check_damaged(fixture, &damaged(line, &damages))
            })
            .unwrap_or_else(|error| panic!("{format}: {error}"));
    }
}
