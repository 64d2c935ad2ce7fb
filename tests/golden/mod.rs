//! Checks that records of all journal versions stay readable, with one record of every type.

use std::collections::BTreeSet;

use ralph::event::Record;

const V1: &str = include_str!("events.v1.jsonl");

#[test]
fn version_1_records_round_trip() {
    for (number, line) in V1.lines().enumerate() {
        let record: Record =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("line {}: {error}", number + 1));
        assert_eq!(serde_json::to_string(&record).expect("the line is JSON"), line);
    }
}

#[test]
fn golden_file_has_every_record_type() {
    let kinds: BTreeSet<String> = V1
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).expect("the line is JSON")["type"].to_string()
        })
        .collect();
    let source = include_str!("../../src/event/run.rs");
    let declared = source
        .split("pub enum RunEvent {")
        .nth(1)
        .and_then(|rest| rest.split("\n}").next());
    let variants = declared
        .expect("run.rs declares RunEvent")
        .lines()
        .filter(|line| line.starts_with("    ") && line.chars().nth(4).is_some_and(char::is_uppercase));
    assert_eq!(kinds.len(), variants.count(), "{kinds:?}");
}
