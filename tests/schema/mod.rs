//! Validates captures, golden records and configurations against the schemas of `ralph schema`.

mod validator;

use serde_json::{Value, json};

use crate::transcript::fixtures::all;
pub(crate) use validator::SchemaViolation;
use validator::validate;

const GOLDEN: &str = include_str!("../golden/events.v1.jsonl");

fn record_of(event: &Value) -> Value {
    json!({ "seq": 1, "at": "2026-11-15T20:45:01Z", "type": "transcript", "iteration": 1, "event": event })
}

fn violation_of(record: &Value) -> Option<SchemaViolation> {
    validate(&ralph::event::schema(), record).err()
}

#[test]
fn golden_records_match_the_schema() {
    let schema = ralph::event::schema();
    for line in GOLDEN.lines() {
        let record: Value = serde_json::from_str(line).expect("the line is JSON");
        validate(&schema, &record).unwrap_or_else(|violation| panic!("{line}\n{violation}"));
    }
}

#[test]
fn events_of_captures_match_the_schema() {
    let schema = ralph::event::schema();
    let mut count = 0;
    for fixture in all() {
        for event in fixture.read() {
            let record = record_of(&serde_json::to_value(&event).expect("events are serializable"));
            validate(&schema, &record).unwrap_or_else(|violation| panic!("{}: {violation}", fixture.title()));
            count += 1;
        }
    }
    assert!(count > 1000, "{count} events");
}

#[test]
fn invalid_records_are_rejected() {
    let good = record_of(&json!({ "type": "text", "tag": "AI", "text": "hello" }));
    assert_eq!(violation_of(&good), None);
    for (pointer, wrong) in [
        ("/seq", json!("1")),
        ("/type", json!("transcripts")),
        ("/iteration", json!(-1)),
        ("/event/tag", json!("ai")),
        ("/event/text", json!(null)),
        ("/event/type", json!("speech")),
    ] {
        let mut record = good.clone();
        *record.pointer_mut(pointer).expect("the field exists") = wrong;
        assert!(violation_of(&record).is_some(), "{pointer}");
    }
    for missing in ["seq", "at", "type", "event"] {
        let mut record = good.clone();
        record
            .as_object_mut()
            .expect("a record is an object")
            .remove(missing);
        assert!(violation_of(&record).is_some(), "without {missing}");
    }
}

/// Validates a configuration as an editor does.
pub(crate) fn config_violation(text: &str) -> Option<SchemaViolation> {
    let agents = ralph::agent::names();
    let formats: Vec<&str> = ralph::transcript::names().collect();
    let value: Value = serde_saphyr::from_str(text).expect("the text is YAML");
    validate(&ralph::config::schema(&agents, &formats), &value).err()
}

#[test]
fn documented_configuration_matches_the_schema() {
    let manual = include_str!("../../docs/config.md");
    let example = manual
        .split("## An example\n\n```yaml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    assert_eq!(
        config_violation(example.expect("docs/config.md has an example")),
        None
    );
    assert_eq!(
        config_violation("cli:\nevent_loop:\n  completion_promise: DONE\n"),
        None
    );
}

#[test]
fn invalid_configurations_are_rejected() {
    for text in [
        "event_lop: {}",
        "event_loop: { max_iteration: 3 }",
        "event_loop: { max_iterations: many }",
        "event_loop: { max_iterations: }",
        "cli: { prompt_mode: pipe }",
        "cli: { transcript: cluade }",
        "adapters: { cluade: {} }",
        "adapters: { claude: { enabled: 1 } }",
        "gates: [{ name: x }]",
        "gates: [{ name: '', run: x }]",
        "hats: { x: { trigger: [] } }",
    ] {
        assert!(config_violation(text).is_some(), "{text}");
    }
}
