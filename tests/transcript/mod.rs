//! Tests the transcript formats with captured output of the real programs.

mod documented;
mod facts;
pub(crate) mod fixtures;
mod known_fields;
mod malformed;
mod unknown_events;

use fixtures::{Fixture, all};
use ralph::event::{Meta, TranscriptEvent, Usd};

/// One event per line, as in the journal.
fn compact(events: &[TranscriptEvent]) -> String {
    events
        .iter()
        .map(|event| serde_json::to_string(event).expect("events are serializable") + "\n")
        .collect()
}

#[test]
fn captures_match_snapshots() {
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

/// Captures with lines that do not conform to the format, and the reason.
const MALFORMED: &[(&str, &str)] = &[
    (
        "rtf1.documented.malformed.stdout",
        "contains violations of the schema",
    ),
    (
        "gemini.stdin-pty.argprompt.stdout",
        "stderr shares the terminal: four notices precede the first event",
    ),
];

#[test]
fn captures_have_no_parse_errors() {
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
fn every_started_tool_call_ends_once() {
    for fixture in all() {
        let mut open: Vec<String> = Vec::new();
        for event in fixture.read() {
            match event {
                TranscriptEvent::ToolStart { tool } => {
                    assert!(
                        !open.contains(&tool.id),
                        "{}: {} started twice",
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
fn every_event_survives_serialization() {
    for fixture in all() {
        for event in fixture.read() {
            let json = serde_json::to_string(&event).expect("events are serializable");
            let back: TranscriptEvent = serde_json::from_str(&json).expect("events are deserializable");
            assert_eq!(back, with_written_cost(event), "{}", fixture.title());
        }
    }
}

/// Costs are written with six decimal places.
fn with_written_cost(mut event: TranscriptEvent) -> TranscriptEvent {
    if let TranscriptEvent::Usage { usage } = &mut event {
        usage.cost_usd = usage
            .cost_usd
            .and_then(|cost| Usd::new((cost.get() * 1e6).round() / 1e6));
    }
    event
}

#[test]
fn every_format_has_fixtures() {
    for format in ralph::transcript::names() {
        let has = all().iter().any(|fixture: &Fixture| fixture.format == format);
        assert!(has, "{format} has no fixture");
    }
}
