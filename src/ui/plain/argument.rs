//! Picks the argument that best describes a tool call, for one-line summaries.

use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::one_line::one_line;
use crate::event::Json;

/// Argument names of the known agents' tools, most descriptive first.
const MAIN_ARGUMENTS: [&str; 16] = [
    "command",
    "cmd",
    "file_path",
    "filePath",
    "notebook_path",
    "pattern",
    "path",
    "url",
    "query",
    "description",
    "prompt",
    "name",
    "title",
    "skill",
    "task",
    "message",
];

/// Longer arguments are truncated.
const MAX_COLUMNS: usize = 160;

/// The most descriptive argument on one line. A path inside the workspace is made relative to it.
pub(in crate::ui) fn main_argument(input: &Json, workspace: &str) -> String {
    let text = input.as_str();
    let found = match fields(input) {
        Some(fields) => main_field(&fields),
        None => string_or_list(text),
    };
    let found = found.unwrap_or_default();
    let relative = found
        .strip_prefix(workspace)
        .and_then(|rest| rest.strip_prefix('/'));
    one_line(
        relative.filter(|_| !workspace.is_empty()).unwrap_or(&found),
        MAX_COLUMNS,
    )
    .0
}

fn main_field(fields: &[(String, &RawValue)]) -> Option<String> {
    let named = |name: &&str| {
        let (_, value) = fields.iter().find(|(key, _)| key == name)?;
        string_or_list(value.get())
    };
    let first = || fields.iter().find_map(|(_, value)| string_or_list(value.get()));
    MAIN_ARGUMENTS.iter().find_map(named).or_else(first)
}

/// The value of a string, or a list of strings joined to a command line.
fn string_or_list(json: &str) -> Option<String> {
    let text = match json.as_bytes().first()? {
        b'"' => serde_json::from_str(json).ok()?,
        b'[' => serde_json::from_str::<Vec<String>>(json).ok()?.join(" "),
        _ => return None,
    };
    Some(text).filter(|text| !text.trim().is_empty())
}

/// The fields of an input object in order. Values are not parsed, because they can contain whole files.
pub(in crate::ui) fn fields(input: &Json) -> Option<Vec<(String, &RawValue)>> {
    let mut deserializer = serde_json::Deserializer::from_str(input.as_str());
    deserializer.deserialize_map(FieldsVisitor).ok()
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn most_descriptive_argument_is_found() {
        let cases = [
            (
                json!({"timeout": 5, "command": "cargo test\n  --all"}),
                "cargo test --all",
            ),
            (json!({"file_path": "/w/src/a.rs", "content": "x"}), "src/a.rs"),
            (json!({"path": "/w", "pattern": "fn main"}), "fn main"),
            (json!({"command": ["bash", "-lc", "ls"]}), "bash -lc ls"),
            (json!({"depth": 2, "symbol": "main"}), "main"),
            (json!({"command": "", "why": "x"}), "x"),
            (json!({"file_path": "/workspace/a"}), "/workspace/a"),
            (json!("raw text"), "raw text"),
            (json!({"n": 1}), ""),
            (json!(null), ""),
        ];
        for (input, argument) in cases {
            assert_eq!(
                main_argument(&Json::from(input.clone()), "/w"),
                argument,
                "{input}"
            );
        }
    }
}
