//! Generates the JSON schema of `ralph.yml` from `settings.rs`. Loading checks values against the same rules.
//! The tables in `docs/config.md` are generated from the schema.

use std::sync::LazyLock;

use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use super::partial::AUTO;
use super::settings::PartialSettings;
use super::settings::{AdapterSettings, Settings};
use crate::policy::{Gate, Hat};

/// Sections that may be empty. Every other key requires a value.
const SECTIONS: &[&str] = &[
    "cli",
    "adapters",
    "event_loop",
    "gates",
    "hats",
    "hooks",
    "driver",
    "snapshots",
    "notify",
    "quota",
    "budgets",
    "sandbox",
    "env",
];

/// Maximum duration. Longer durations are certainly errors and could overflow a clock.
pub(super) const YEAR: u64 = 365 * 24 * 60 * 60;

/// The rules of the settings, without defaults and names.
pub(super) static SETTINGS: LazyLock<Value> = LazyLock::new(generate::<PartialSettings>);

/// Formats that are kept in the schema. They describe the meaning of a value; other keywords validate it.
const FORMATS: &[&str] = &["seconds", "bytes", "path", "patterns", "percent", "url"];

/// The JSON schema of `ralph.yml`, with these agents and transcript formats as allowed names.
pub fn schema(agents: &[&str], transcripts: &[&str]) -> Value {
    let mut schema = SETTINGS.clone();
    add_defaults(&mut schema);
    let adapters: Vec<&str> = agents.iter().copied().chain(["custom"]).collect();
    let formats: Vec<&str> = [AUTO].into_iter().chain(transcripts.iter().copied()).collect();
    schema["title"] = json!("ralph.yml");
    schema["description"] =
        json!("The configuration of ralph. All keys are optional; unknown keys are errors.");
    schema["properties"]["adapters"]["propertyNames"] = json!({ "enum": adapters });
    let transcript = &mut schema["properties"]["cli"]["properties"]["transcript"];
    transcript["enum"] = json!(formats);
    transcript["default"] = json!(AUTO);
    for section in SECTIONS {
        let kind = schema["properties"][section]["type"].take();
        schema["properties"][section]["type"] = json!([kind, "null"]);
    }
    // `snapshots: off`
    schema["properties"]["snapshots"]["type"] = json!(["object", "boolean", "string", "null"]);
    schema
}

/// The rules of a file.
pub(super) fn generate<File: JsonSchema>() -> Value {
    let generated = schemars::generate::SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator()
        .into_root_schema_for::<File>();
    let mut schema = generated.to_value();
    simplify(&mut schema, Descriptions::Drop);
    schema
}

/// The rules of a dotted key. Names chosen by the user may contain dots, so every way to split the key is tried.
pub(super) fn find<'a>(schema: &'a Value, key: &str) -> Option<&'a Value> {
    if key.is_empty() {
        return Some(schema);
    }
    if let Some((_, rest)) = key.strip_prefix('[').and_then(|index| index.split_once(']')) {
        let choices = schema["anyOf"].as_array().into_iter().flatten();
        let list = choices
            .chain([schema])
            .find(|choice| choice["items"].is_object())?;
        return find(&list["items"], rest.strip_prefix('.').unwrap_or(rest));
    }
    let ends = key.match_indices(['.', '[']).map(|(end, _)| end);
    ends.chain([key.len()]).find_map(|end| {
        let (name, rest) = key.split_at(end);
        find(member(schema, name)?, rest.strip_prefix('.').unwrap_or(rest))
    })
}

/// The rules of a member of a mapping.
pub(super) fn member<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    let known = schema["properties"].get(name);
    known.or_else(|| {
        schema
            .get("additionalProperties")
            .filter(|named| named.is_object())
    })
}

/// Whether to keep the description of a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Descriptions {
    Keep,
    Drop,
}

/// Removes details that are irrelevant for users: descriptions of types (those of keys are kept), `null`
/// alternatives of optional keys, and Rust number formats. Limits durations to one year. `add_defaults` sets the
/// defaults afterwards.
fn simplify(schema: &mut Value, descriptions: Descriptions) {
    match schema {
        Value::Object(members) => {
            match (descriptions, members.get("description").and_then(Value::as_str)) {
                (Descriptions::Keep, Some(text)) => {
                    let text = text.replace('\n', " ");
                    members.insert("description".to_owned(), json!(text));
                }
                (Descriptions::Keep, None) => {}
                (Descriptions::Drop, _) => {
                    members.remove("description");
                }
            }
            members.remove("default");
            match members.get("format").and_then(Value::as_str) {
                Some("seconds") => {
                    members.insert("maximum".to_owned(), json!(YEAR));
                }
                Some(format) if !FORMATS.contains(&format) => {
                    members.remove("format");
                }
                Some(_) | None => {}
            }
            drop_null(members);
            for (name, member) in members.iter_mut() {
                // The members of `properties` are configuration keys, one of which is named `description`.
                if name == "properties" {
                    let keys = member.as_object_mut().into_iter().flat_map(Map::values_mut);
                    keys.for_each(|key| simplify(key, Descriptions::Keep));
                } else {
                    simplify(member, Descriptions::Drop);
                }
            }
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| simplify(item, Descriptions::Drop)),
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
        // Keywords of the key take precedence over those of its type.
        for (name, value) in only {
            members.entry(name).or_insert(value);
        }
    }
}

/// Adds the default settings to the keys.
fn add_defaults(schema: &mut Value) {
    let mut settings = Settings::default();
    settings
        .adapters
        .insert(ANY_NAME.to_owned(), AdapterSettings::default());
    settings.hats.insert(ANY_NAME.to_owned(), Hat::default());
    if let Ok(defaults) = serde_json::to_value(settings) {
        insert_defaults(schema, &defaults);
    }
    schema["properties"]["gates"]["items"]["properties"]["timeout"]["default"] =
        json!(Gate::default_timeout());
    // A gate is a command or a review.
    let needed = ["run", "agent", "model", "prompt_file", "reviewers"];
    schema["properties"]["gates"]["items"]["anyOf"] =
        needed.iter().map(|key| json!({"required": [key]})).collect();
}

/// Placeholder for a name that the user chooses.
const ANY_NAME: &str = "NAME";

fn insert_defaults(schema: &mut Value, defaults: &Value) {
    for (name, property) in schema
        .get_mut("properties")
        .and_then(Value::as_object_mut)
        .into_iter()
        .flatten()
    {
        match &defaults[name] {
            Value::Null => {}
            inner @ Value::Object(_) => insert_defaults(property, inner),
            default => property["default"] = default.clone(),
        }
    }
    if let Some(inner) = schema
        .get_mut("additionalProperties")
        .filter(|inner| inner.is_object())
    {
        insert_defaults(inner, &defaults[ANY_NAME]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_schema() -> Value {
        schema(&["claude", "codex"], &["plain", "claude"])
    }

    /// Collects every key, including sections, with its schema.
    fn keys(key: &str, schema: &Value, found: &mut Vec<(String, Value)>) {
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let key = format!("{key}.{name}");
            keys(&key, property, found);
            found.push((key, property.clone()));
        }
        for inner in ["additionalProperties", "items"] {
            if schema[inner].is_object() {
                keys(&format!("{key}.*"), &schema[inner], found);
            }
        }
    }

    #[test]
    fn every_key_has_a_description_and_a_type() {
        let mut found = Vec::new();
        keys("", &test_schema(), &mut found);
        assert!(found.len() > 60, "{}", found.len());
        for (key, schema) in found {
            let description = schema["description"].as_str().unwrap_or_default();
            assert!(
                description.ends_with('.') && description.len() > 10,
                "{key}: {schema}"
            );
            assert!(
                !description.contains("[`"),
                "{key}: the description contains a source link: {description}"
            );
            let typed = ["type", "enum", "anyOf", "oneOf"];
            assert!(
                typed.iter().any(|keyword| !schema[*keyword].is_null()),
                "{key}: {schema}"
            );
        }
    }

    #[test]
    fn defaults_in_the_schema_are_correct() {
        let mut found = Vec::new();
        keys("", &test_schema(), &mut found);
        let default = |key: &str| {
            let (_, schema) = found.iter().find(|(known, _)| known == key).unwrap();
            schema["default"].clone()
        };
        assert_eq!(default(".event_loop.max_iterations"), json!(100));
        assert_eq!(default(".event_loop.max_cost_usd"), Value::Null);
        assert_eq!(default(".cli.backend"), json!("auto"));
        assert_eq!(default(".cli.transcript"), json!("auto"));
        assert_eq!(default(".adapters.*.enabled"), json!(true));
        assert_eq!(default(".hats.*.triggers"), json!([]));
        assert_eq!(default(".gates.*.timeout"), json!(600));
        assert_eq!(default(".hooks.timeout"), json!(30));
        assert_eq!(default(".session"), json!("fresh"));
        let with_default = found.iter().filter(|(_, schema)| !schema["default"].is_null());
        assert!(with_default.count() > 25);
    }

    #[test]
    fn unknown_keys_are_rejected_in_every_section() {
        let schema = test_schema();
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
        for key in ["extra_args", "extra_gates"] {
            assert!(schema["properties"]["cli"]["properties"][key].is_null(), "{key}");
        }
    }

    #[test]
    fn keys_have_types_defaults_and_descriptions() {
        let schema = test_schema();
        let cli = &schema["properties"]["cli"]["properties"];
        insta::assert_json_snapshot!(cli["prompt_mode"], @r#"
        {
          "default": "arg",
          "description": "How a custom agent receives the prompt: as an argument or on stdin.",
          "enum": [
            "arg",
            "stdin"
          ],
          "type": "string"
        }
        "#);
        insta::assert_json_snapshot!(cli["transcript"], @r#"
        {
          "default": "auto",
          "description": "The format of the agent's output. `auto` selects the agent's own format.",
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
          "default": 100,
          "description": "Maximum number of iterations.",
          "minimum": 1,
          "type": "integer"
        }
        "#);
        insta::assert_json_snapshot!(event_loop["completion_promise"], @r#"
        {
          "anyOf": [
            {
              "minLength": 1,
              "type": "string"
            },
            {
              "items": {
                "minLength": 1,
                "type": "string"
              },
              "type": "array"
            }
          ],
          "default": [],
          "description": "Markers that the agent prints when the task is done. They replace the built-in markers; empty selects the built-in ones."
        }
        "#);
    }
}
