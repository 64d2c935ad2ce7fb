//! The list of known fields (`src/transcript/common/known_fields.txt`) is made from the captures.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use super::fixtures::all;

/// Formats whose lines are events with a type.
const FORMATS: &[&str] = &[
    "claude", "codex", "gemini", "opencode", "copilot", "cursor", "amp", "qwen", "pi", "kimi", "vibe",
    "cline",
];

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= 64 && !text.contains(char::is_whitespace)
}

/// `RALPH_UPDATE_DOCS=1` writes the list.
#[test]
fn known_fields_are_those_of_the_captures() {
    let mut rows: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for fixture in all()
        .iter()
        .filter(|fixture| FORMATS.contains(&fixture.format.as_str()))
    {
        for line in fixture.lines() {
            let Ok(Value::Object(object)) = serde_json::from_str(line) else {
                continue;
            };
            let kinds = ["type", "role", "subtype"].into_iter();
            let kinds: Vec<&str> = kinds.filter_map(|key| object.get(key)?.as_str()).collect();
            if let Some(event) = kinds.first().filter(|event| is_name(event)) {
                let fields = object.keys().filter(|key| is_name(key)).cloned();
                rows.entry((fixture.format.clone(), (*event).to_owned()))
                    .or_default()
                    .extend(fields);
            }
        }
    }
    let text: String = rows
        .iter()
        .map(|((format, event), fields)| {
            let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
            format!("{format} {event} {}\n", fields.join(" "))
        })
        .collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/transcript/common/known_fields.txt");
    if std::env::var_os("RALPH_UPDATE_DOCS").is_some() {
        std::fs::write(&path, &text).expect("the list can be written");
    }
    let stored = std::fs::read_to_string(&path).expect("the list");
    assert_eq!(stored, text, "run RALPH_UPDATE_DOCS=1 cargo test known_fields");
}
