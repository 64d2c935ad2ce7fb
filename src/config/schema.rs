//! The JSON Schema of `ralph.yml`, for editors: the shape comes from the structs that read the file, the words from
//! the manual.

use serde_json::{Map, Value, json};

use super::partial::{AUTO, Partial};

const MANUAL: &str = include_str!("../../docs/config.md");

/// Sections that may be left empty; every other key wants a value.
const SECTIONS: &[&str] = &[
    "cli",
    "adapters",
    "event_loop",
    "gates",
    "hats",
    "hooks",
    "driver",
];

pub fn schema(agents: &[&str], transcripts: &[&str]) -> Value {
    let generated = schemars::generate::SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator()
        .into_root_schema_for::<Partial>();
    let mut schema = generated.to_value();
    forget_inner_words(&mut schema, Level::Root);
    describe("", &mut schema);
    let named: Vec<&str> = agents.iter().copied().chain(["custom"]).collect();
    let formats: Vec<&str> = [AUTO].into_iter().chain(transcripts.iter().copied()).collect();
    schema["title"] = json!("ralph.yml");
    schema["description"] =
        json!("The configuration of ralph: everything is optional, and unknown keys are errors.");
    schema["properties"]["adapters"]["propertyNames"] = json!({ "enum": named });
    schema["properties"]["cli"]["properties"]["transcript"]["enum"] = json!(formats);
    for section in SECTIONS {
        let kind = schema["properties"][section]["type"].take();
        schema["properties"][section]["type"] = json!([kind, "null"]);
    }
    schema
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Inner,
}

/// What structs say about themselves is for those who read the source. And an absent key is left out, not `null`.
fn forget_inner_words(schema: &mut Value, level: Level) {
    match schema {
        Value::Object(members) => {
            if level == Level::Inner {
                members.remove("description");
            }
            members.remove("default");
            members.remove("format");
            drop_null(members);
            for (name, member) in members.iter_mut() {
                // Below `properties` stand the user's keys, one of which is itself called `description`.
                if matches!(name.as_str(), "properties" | "$defs") {
                    let keys = member.as_object_mut().into_iter().flat_map(Map::values_mut);
                    keys.for_each(|key| forget_inner_words(key, Level::Inner));
                } else {
                    forget_inner_words(member, Level::Inner);
                }
            }
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| forget_inner_words(item, Level::Inner)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn drop_null(members: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = members.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            members.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = members.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    let Some(Value::Array(choices)) = members.get_mut("anyOf") else {
        return;
    };
    choices.retain(|choice| choice["type"] != "null");
    if choices.len() == 1
        && let Some(Value::Object(only)) = choices.pop()
    {
        members.remove("anyOf");
        members.extend(only);
    }
}

/// Gives every key its row of the manual.
fn describe(key: &str, schema: &mut Value) {
    if let Some(row) = Row::of(key) {
        schema["description"] = json!(row.words());
        if let Some(least) = row.least() {
            schema["minimum"] = json!(least);
        }
    }
    let below = |name: &str| {
        if key.is_empty() {
            name.to_owned()
        } else {
            format!("{key}.{name}")
        }
    };
    for (name, property) in schema
        .get_mut("properties")
        .and_then(Value::as_object_mut)
        .into_iter()
        .flatten()
    {
        describe(&below(name), property);
    }
    for (part, key) in [
        ("additionalProperties", below("NAME")),
        ("items", format!("{key}[]")),
    ] {
        if let Some(inner) = schema.get_mut(part).filter(|inner| inner.is_object()) {
            describe(&key, inner);
        }
    }
}

/// `| key | type | default | meaning |`
struct Row {
    kind: &'static str,
    default: &'static str,
    meaning: &'static str,
}

impl Row {
    fn of(key: &str) -> Option<Self> {
        let start = format!("| `{key}` |");
        let line = MANUAL.lines().find(|line| line.starts_with(&start))?;
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        match cells.as_slice() {
            [_, kind, default, meaning] => Some(Self {
                kind,
                default,
                meaning,
            }),
            _ => None,
        }
    }

    fn words(&self) -> String {
        match self.default {
            "required" => format!("{} Required.", self.meaning),
            default => format!("{} Default: {default}.", self.meaning),
        }
    }

    /// "number, at least 1"
    fn least(&self) -> Option<u64> {
        self.kind.split_once("at least ")?.1.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown() -> Value {
        schema(&["claude", "codex"], &["plain", "claude"])
    }

    /// Every leaf key, as the manual writes it, with its schema.
    fn leaves(key: &str, schema: &Value, found: &mut Vec<(String, Value)>) {
        let below = |name: &str| {
            if key.is_empty() {
                name.to_owned()
            } else {
                format!("{key}.{name}")
            }
        };
        let mut inner = false;
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            inner = true;
            leaves(&below(name), property, found);
        }
        if schema["additionalProperties"].is_object() {
            inner = true;
            leaves(&below("NAME"), &schema["additionalProperties"], found);
        }
        if schema["items"]["properties"].is_object() {
            inner = true;
            leaves(&format!("{key}[]"), &schema["items"], found);
        }
        if !inner {
            found.push((key.to_owned(), schema.clone()));
        }
    }

    #[test]
    fn every_key_has_the_words_of_the_manual() {
        let mut found = Vec::new();
        leaves("", &shown(), &mut found);
        assert!(found.len() > 40, "{found:?}");
        for (key, schema) in found {
            assert!(schema["description"].is_string(), "{key}: {schema}");
        }
    }

    #[test]
    fn unknown_keys_are_forbidden_in_every_section() {
        let schema = shown();
        for section in [
            "",
            "/properties/cli",
            "/properties/event_loop",
            "/properties/gates/items",
        ] {
            let section = schema.pointer(section).unwrap();
            assert_eq!(section["additionalProperties"], false, "{section}");
        }
        let hats = &schema["properties"]["hats"]["additionalProperties"];
        assert_eq!(hats["additionalProperties"], false);
        assert!(hats["properties"]["description"].is_object());
        assert!(schema["properties"]["cli"]["properties"]["extra_args"].is_null());
    }

    #[test]
    fn keys_tell_what_they_take() {
        let schema = shown();
        let cli = &schema["properties"]["cli"]["properties"];
        insta::assert_json_snapshot!(cli["prompt_mode"], @r#"
        {
          "description": "How a custom agent gets the prompt. Default: `arg`.",
          "enum": [
            "arg",
            "stdin"
          ],
          "type": "string"
        }
        "#);
        insta::assert_json_snapshot!(cli["transcript"], @r#"
        {
          "description": "The format of the agent's output; `auto` takes the one that belongs to the agent. Default: `auto`.",
          "enum": [
            "auto",
            "plain",
            "claude"
          ],
          "type": "string"
        }
        "#);
        let event_loop = &schema["properties"]["event_loop"]["properties"];
        insta::assert_json_snapshot!(event_loop["max_iterations"], @r#"
        {
          "description": "How often the agent is started. Default: 100.",
          "minimum": 1,
          "type": "integer"
        }
        "#);
        insta::assert_json_snapshot!(event_loop["completion_promise"], @r#"
        {
          "anyOf": [
            {
              "type": "string"
            },
            {
              "items": {
                "type": "string"
              },
              "type": "array"
            }
          ],
          "description": "What the agent says when all is done; it replaces the built-in markers. Default: built-in set."
        }
        "#);
    }
}
