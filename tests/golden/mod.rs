//! What is on disk stays readable: one record of every kind, as each version of the format writes it.

use std::collections::BTreeSet;

use ralph::event::Record;

const V1: &str = include_str!("events.v1.jsonl");

#[test]
fn records_of_version_1_are_read_and_written_as_they_are() {
    for (number, line) in V1.lines().enumerate() {
        let record: Record =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("line {}: {error}", number + 1));
        assert_eq!(serde_json::to_string(&record).expect("JSON"), line);
    }
}

#[test]
fn the_golden_file_has_every_kind_of_record() {
    let kinds: BTreeSet<String> = V1
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON")["type"].to_string())
        .collect();
    let source = include_str!("../../src/event/run.rs");
    let declared = source
        .split("pub enum RunEvent {")
        .nth(1)
        .and_then(|rest| rest.split("\n}").next());
    let variants = declared
        .expect("the enum")
        .lines()
        .filter(|line| line.starts_with("    ") && line.chars().nth(4).is_some_and(char::is_uppercase));
    assert_eq!(kinds.len(), variants.count(), "{kinds:?}");
}
