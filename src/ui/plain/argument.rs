//! What a tool call is about, in one line: the first argument that tells a reader what happens.

use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::one_line::one_line;
use crate::event::Json;

/// Fields that say what a call does, best first, as the tools of the known agents name them.
const TELLING: [&str; 16] = [
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

/// Longer arguments are cut; nobody reads them in a summary.
const COLUMNS: usize = 160;

/// The telling argument, on one line, a path inside the workspace given from there.
pub(in crate::ui) fn first_argument(input: &Json, workspace: &str) -> String {
    let text = input.as_str();
    let found = match fields(input) {
        Some(fields) => telling(&fields),
        None => words(text),
    };
    let found = found.unwrap_or_default();
    let inside = found
        .strip_prefix(workspace)
        .and_then(|rest| rest.strip_prefix('/'));
    one_line(
        inside.filter(|_| !workspace.is_empty()).unwrap_or(&found),
        COLUMNS,
    )
    .0
}

fn telling(fields: &[(String, &RawValue)]) -> Option<String> {
    let named = |name: &&str| {
        let (_, value) = fields.iter().find(|(key, _)| key == name)?;
        words(value.get())
    };
    let first = || fields.iter().find_map(|(_, value)| words(value.get()));
    TELLING.iter().find_map(named).or_else(first)
}

/// A string, or a list of strings as one command line.
fn words(json: &str) -> Option<String> {
    let text = match json.as_bytes().first()? {
        b'"' => serde_json::from_str(json).ok()?,
        b'[' => serde_json::from_str::<Vec<String>>(json).ok()?.join(" "),
        _ => return None,
    };
    Some(text).filter(|text| !text.trim().is_empty())
}

/// The fields of an input object in their order, none of them parsed: an input can hold a whole file.
pub(in crate::ui) fn fields(input: &Json) -> Option<Vec<(String, &RawValue)>> {
    let mut deserializer = serde_json::Deserializer::from_str(input.as_str());
    deserializer.deserialize_map(Fields).ok()
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
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
    fn the_telling_argument_is_found() {
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
                first_argument(&Json::from(input.clone()), "/w"),
                argument,
                "{input}"
            );
        }
    }
}
