//! The transcript formats on verbatim captures of the real programs: what is read, and that nothing breaks it.

mod documented;
mod facts;
pub(crate) mod fixtures;
mod malformed;
mod unknown_events;

use fixtures::{Fixture, all};
use ralph::event::{Meta, TranscriptEvent};

/// One event per line, as the journal has it.
fn compact(events: &[TranscriptEvent]) -> String {
    events
        .iter()
        .map(|event| serde_json::to_string(event).expect("an event is JSON") + "\n")
        .collect()
}

#[test]
fn captures_read_as_reviewed() {
    insta::with_settings!({
        snapshot_path => "../snapshots/transcript",
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, {
        for fixture in all() {
            insta::assert_snapshot!(fixture.title(), compact(&fixture.read()));
        }
    });
}

/// Captures in which a program really printed something else than its format.
const MALFORMED: &[(&str, &str)] = &[
    ("rtf1.documented.malformed.stdout", "written to break the schema"),
    (
        "gemini.stdin-pty.argprompt.stdout",
        "on a terminal shared with stderr, four notices go before the first event",
    ),
];

#[test]
fn captures_have_no_unreadable_line() {
    for fixture in all() {
        let expected = MALFORMED.iter().any(|(title, _)| *title == fixture.title());
        let found = fixture.read().iter().any(is_parse_error);
        assert_eq!(found, expected, "{}", fixture.title());
    }
}

fn is_parse_error(event: &TranscriptEvent) -> bool {
    matches!(
        event,
        TranscriptEvent::Meta {
            meta: Meta::ParseError { .. }
        }
    )
}

#[test]
fn every_tool_call_that_starts_ends_once() {
    for fixture in all() {
        let mut open: Vec<String> = Vec::new();
        for event in fixture.read() {
            match event {
                TranscriptEvent::ToolStart { tool } => {
                    assert!(
                        !open.contains(&tool.id),
                        "{}: {} began twice",
                        fixture.title(),
                        tool.id
                    );
                    open.push(tool.id);
                }
                TranscriptEvent::ToolOutput { tool, .. } => {
                    assert!(
                        open.contains(&tool.id),
                        "{}: {} is not running",
                        fixture.title(),
                        tool.id
                    );
                }
                TranscriptEvent::ToolEnd { tool } => {
                    assert!(
                        open.contains(&tool.id),
                        "{}: {} is not running",
                        fixture.title(),
                        tool.id
                    );
                    open.retain(|id| *id != tool.id);
                }
                TranscriptEvent::Text { .. }
                | TranscriptEvent::Usage { .. }
                | TranscriptEvent::Meta { .. } => {}
            }
        }
        assert_eq!(open, Vec::<String>::new(), "{}", fixture.title());
    }
}

#[test]
fn every_event_survives_the_journal() {
    for fixture in all() {
        for event in fixture.read() {
            let json = serde_json::to_string(&event).expect("an event is JSON");
            let back: TranscriptEvent = serde_json::from_str(&json).expect("the journal is readable");
            assert_eq!(back, event, "{}", fixture.title());
        }
    }
}

#[test]
fn every_format_has_fixtures() {
    for format in ralph::transcript::names() {
        let has = all().iter().any(|fixture: &Fixture| fixture.format == format);
        assert!(has, "{format} has no fixture");
    }
}
