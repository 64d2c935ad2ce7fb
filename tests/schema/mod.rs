//! What `ralph schema` promises holds: every event of every capture, and every golden record, is as it says.

mod validator;

use serde_json::{Value, json};

use crate::transcript::fixtures::all;
pub(crate) use validator::Refusal;
use validator::validate;

const GOLDEN: &str = include_str!("../golden/events.v1.jsonl");

fn record_of(event: &Value) -> Value {
    json!({ "seq": 1, "at": "2026-11-15T20:45:01Z", "type": "transcript", "iteration": 1, "event": event })
}

fn refused(record: &Value) -> Option<Refusal> {
    validate(&ralph::event::schema(), record).err()
}

#[test]
fn golden_records_are_as_the_schema_says() {
    let schema = ralph::event::schema();
    for line in GOLDEN.lines() {
        let record: Value = serde_json::from_str(line).expect("a record");
        validate(&schema, &record).unwrap_or_else(|refusal| panic!("{line}\n{refusal}"));
    }
}

#[test]
fn events_of_every_capture_are_as_the_schema_says() {
    let schema = ralph::event::schema();
    let mut count = 0;
    for fixture in all() {
        for event in fixture.read() {
            let record = record_of(&serde_json::to_value(&event).expect("an event"));
            validate(&schema, &record).unwrap_or_else(|refusal| panic!("{}: {refusal}", fixture.title()));
            count += 1;
        }
    }
    assert!(count > 1000, "{count} events");
}

#[test]
fn what_is_no_record_is_refused() {
    let good = record_of(&json!({ "type": "text", "tag": "AI", "text": "hello" }));
    assert_eq!(refused(&good), None);
    for (pointer, wrong) in [
        ("/seq", json!("1")),
        ("/type", json!("transcripts")),
        ("/iteration", json!(-1)),
        ("/event/tag", json!("ai")),
        ("/event/text", json!(null)),
        ("/event/type", json!("speech")),
    ] {
        let mut record = good.clone();
        *record.pointer_mut(pointer).expect("a field") = wrong;
        assert!(refused(&record).is_some(), "{pointer}");
    }
    for missing in ["seq", "at", "type", "event"] {
        let mut record = good.clone();
        record.as_object_mut().expect("an object").remove(missing);
        assert!(refused(&record).is_some(), "without {missing}");
    }
}

/// As an editor would see it.
pub(crate) fn config_refused(text: &str) -> Option<Refusal> {
    let agents = ralph::agent::names();
    let formats: Vec<&str> = ralph::transcript::names().collect();
    let value: Value = serde_saphyr::from_str(text).expect("YAML");
    validate(&ralph::config::schema(&agents, &formats), &value).err()
}

#[test]
fn the_documented_configuration_is_as_the_schema_says() {
    let manual = include_str!("../../docs/config.md");
    let example = manual
        .split("## An example\n\n```yaml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    assert_eq!(config_refused(example.expect("an example")), None);
    assert_eq!(
        config_refused("cli:\nevent_loop:\n  completion_promise: DONE\n"),
        None
    );
}

#[test]
fn mistakes_in_a_configuration_are_refused() {
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
        "hats: { x: { trigger: [] } }",
    ] {
        assert!(config_refused(text).is_some(), "{text}");
    }
}
