//! Tests that `docs/config.md` matches the code. The key tables are generated from the schema;
//! `RALPH_UPDATE_DOCS=1 cargo test documented` updates them.

use serde_json::Value;

use super::ConfigFixture;
use crate::config::schema;
use crate::policy::Seconds;

const MANUAL: &str = include_str!("../../../docs/config.md");
const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/config.md");

fn example() -> &'static str {
    let (_, rest) = MANUAL
        .split_once("## An example\n\n```yaml\n")
        .expect("a YAML block in docs/config.md");
    rest.split_once("```").expect("the end of the YAML block").0
}

#[test]
fn documented_example_loads_without_warnings() {
    let loaded = ConfigFixture::new()
        .write("project/ralph.yml", example())
        .loaded();
    assert_eq!(loaded.warnings, Vec::<String>::new());
    assert_eq!(loaded.settings.gates.len(), 2);
    assert_eq!(loaded.settings.event_loop.max_cost_usd, Some(20.0));
}

#[test]
fn documented_tables_match_the_schema() {
    let mut rows = Vec::new();
    collect("", &schema(&["claude"], &["plain"]), &mut rows);
    assert!(rows.len() > 50, "{} keys", rows.len());
    let updated = updated_manual(MANUAL, rows);
    if std::env::var_os("RALPH_UPDATE_DOCS").is_some() {
        std::fs::write(PATH, &updated).expect("the manual");
        return;
    }
    assert_eq!(
        updated, MANUAL,
        "run `RALPH_UPDATE_DOCS=1 cargo test documented` to update docs/config.md"
    );
}

/// The manual with updated rows. Rows keep their order; removed keys are dropped, and new keys are added at the end
/// of their section.
fn updated_manual(manual: &str, mut rows: Vec<(String, String)>) -> String {
    let mut text = String::new();
    let mut section = None;
    for line in manual.lines() {
        let key = line.strip_prefix("| `").and_then(|rest| rest.split('`').next());
        // The tables of prices and environment variables are not generated.
        let key = key.filter(|key| !key.starts_with("models.") && !key.starts_with("RALPH_"));
        let Some(key) = key else {
            // End of a table: add the new keys of its section.
            if let Some(section) = section.take() {
                let (new, others) = rows.into_iter().partition(|(key, _)| section_of(key) == section);
                rows = others;
                let new: Vec<(String, String)> = new;
                new.iter().for_each(|(_, row)| text.push_str(row));
            }
            text.push_str(line);
            text.push('\n');
            continue;
        };
        section = Some(section_of(key).to_owned());
        if let Some(index) = rows.iter().position(|(known, _)| known == key) {
            text.push_str(&rows.remove(index).1);
        }
    }
    assert_eq!(rows, [], "a section of the schema has no table in docs/config.md");
    text
}

fn section_of(key: &str) -> &str {
    match key.find(['.', '[']) {
        Some(end) => &key[..end],
        None => "",
    }
}

/// Collects a table row for every key that has a value.
fn collect(key: &str, schema: &Value, rows: &mut Vec<(String, String)>) {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let dot = if key.is_empty() { "" } else { "." };
        let key = format!("{key}{dot}{name}");
        let named = &property["additionalProperties"];
        if named["properties"].is_object() {
            collect(&format!("{key}.NAME"), named, rows);
        } else if property["items"]["properties"].is_object() {
            collect(&format!("{key}[]"), &property["items"], rows);
        } else if property["properties"].is_object() {
            collect(&key, property, rows);
        } else {
            let (key, kind) = match named {
                Value::Object(_) => (format!("{key}.NAME"), kind(named)),
                _ => (key, kind(property)),
            };
            let default = match &property["default"] {
                Value::Null if required.contains(&Value::from(name.as_str())) => "required".to_owned(),
                Value::Null => "none".to_owned(),
                Value::String(text) if !text.is_empty() => format!("`{text}`"),
                Value::Bool(value) => format!("`{value}`"),
                Value::Number(seconds) if property["format"] == "seconds" => {
                    format!("`{}`", Seconds(seconds.as_u64().unwrap_or_default()))
                }
                Value::Number(percent) if property["format"] == "percent" => format!("`{percent}%`"),
                Value::Number(number) => number.to_string(),
                Value::Array(items) if !items.is_empty() => format!("`{}`", json_list(items)),
                _ => "empty".to_owned(),
            };
            let meaning = property["description"].as_str().expect("a description");
            let row = format!("| `{key}` | {kind} | {default} | {meaning} |\n");
            rows.push((key, row));
        }
    }
}

/// `[done, failed]`, as in YAML.
fn json_list(items: &[Value]) -> String {
    let items: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
    format!("[{}]", items.join(", "))
}

/// The type of a key, as shown in the manual.
fn kind(schema: &Value) -> String {
    let format = schema["format"].as_str();
    for choice in ["anyOf", "oneOf"] {
        if let Some(choices) = schema[choice].as_array() {
            return choices.iter().map(kind).collect::<Vec<_>>().join(" or ");
        }
    }
    if let Value::String(only) = &schema["const"] {
        return format!("`{only}`");
    }
    // The list of transcript formats is too long for the table.
    let words = schema["enum"].as_array().filter(|_| schema["default"] != "auto");
    if let Some(words) = words {
        let words: Vec<String> = words
            .iter()
            .map(|word| format!("`{}`", word.as_str().unwrap_or_default()))
            .collect();
        return words.join(" or ");
    }
    if format == Some("seconds") {
        return match schema["minimum"].as_u64() {
            Some(1) => "duration, at least 1s".to_owned(),
            _ => "duration".to_owned(),
        };
    }
    if format == Some("percent") {
        return "percentage".to_owned();
    }
    match schema["type"].as_str().expect("a type") {
        "boolean" => "`true` or `false`".to_owned(),
        "array" => format!("list of {}", format.unwrap_or("texts")),
        "string" => format.unwrap_or("text").to_owned(),
        "integer" | "number" => {
            let unit = format.unwrap_or("number");
            match (
                &schema["minimum"],
                &schema["maximum"],
                &schema["exclusiveMinimum"],
            ) {
                (Value::Number(least), Value::Number(most), _) => {
                    format!("{unit}, {least} to {most}")
                }
                (Value::Number(least), ..) if least.as_f64() > Some(0.0) => {
                    format!("{unit}, at least {least}")
                }
                (_, _, Value::Number(above)) => format!("{unit}, more than {above}"),
                _ => unit.to_owned(),
            }
        }
        other => panic!("unexpected type {other}"),
    }
}
