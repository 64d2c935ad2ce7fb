//! Flattens settings to dotted keys.

use serde_json::Value;

/// Returns every setting with its dotted key (`event_loop.max_iterations`); a list is one value.
pub fn flatten(settings: &Value) -> Vec<(String, &Value)> {
    let mut rows = Vec::new();
    collect("", settings, &mut rows);
    rows
}

fn collect<'a>(key: &str, value: &'a Value, rows: &mut Vec<(String, &'a Value)>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let dot = if key.is_empty() { "" } else { "." };
                collect(&format!("{key}{dot}{name}"), member, rows);
            }
        }
        other => rows.push((key.to_owned(), other)),
    }
}
