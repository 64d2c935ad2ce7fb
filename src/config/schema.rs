//! The JSON Schema of `ralph.yml`, for editors: shape and words come from the structs that read the file, defaults from
//! the settings. The tables of the manual come from here.

use serde_json::{Map, Value, json};

use super::checks::YEAR;
use super::partial::{AUTO, Partial};
use super::settings::{AdapterSettings, Hat, Settings};

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

/// What the `format` of a key may be. It says what the value stands for; checks are left to the other words.
const FORMATS: &[&str] = &["seconds", "bytes", "path", "patterns"];

pub fn schema(agents: &[&str], transcripts: &[&str]) -> Value {
    let generated = schemars::generate::SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator()
        .into_root_schema_for::<Partial>();
    let mut schema = generated.to_value();
    tidy(&mut schema, Words::Drop);
    tell_defaults(&mut schema);
    let named: Vec<&str> = agents.iter().copied().chain(["custom"]).collect();
    let formats: Vec<&str> = [AUTO].into_iter().chain(transcripts.iter().copied()).collect();
    schema["title"] = json!("ralph.yml");
    schema["description"] =
        json!("The configuration of ralph: everything is optional, and unknown keys are errors.");
    schema["properties"]["adapters"]["propertyNames"] = json!({ "enum": named });
    let transcript = &mut schema["properties"]["cli"]["properties"]["transcript"];
    transcript["enum"] = json!(formats);
    transcript["default"] = json!(AUTO);
    for section in SECTIONS {
        let kind = schema["properties"][section]["type"].take();
        schema["properties"][section]["type"] = json!([kind, "null"]);
    }
    schema
}

/// Whether what a part says about itself is for the user.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Words {
    Keep,
    Drop,
}

/// The words of a key are for the user; what structs say about themselves is for those who read the source. An absent
/// key is left out, not `null`. Defaults are told afterwards, and a time is at most a year.
fn tidy(schema: &mut Value, words: Words) {
    match schema {
        Value::Object(members) => {
            match (words, members.get("description").and_then(Value::as_str)) {
                (Words::Keep, Some(text)) => {
                    let text = text.replace('\n', " ");
                    members.insert("description".to_owned(), json!(text));
                }
                (Words::Keep, None) => {}
                (Words::Drop, _) => {
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
                // Below `properties` stand the user's keys, one of which is itself called `description`.
                if name == "properties" {
                    let keys = member.as_object_mut().into_iter().flat_map(Map::values_mut);
                    keys.for_each(|key| tidy(key, Words::Keep));
                } else {
                    tidy(member, Words::Drop);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| tidy(item, Words::Drop)),
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
        // What the key says about itself counts more than what its type does.
        for (name, value) in only {
            members.entry(name).or_insert(value);
        }
    }
}

/// The settings as they are when nobody wishes anything, laid over the keys.
fn tell_defaults(schema: &mut Value) {
    let mut settings = Settings::default();
    settings
        .adapters
        .insert(ANY.to_owned(), AdapterSettings::default());
    settings.hats.insert(ANY.to_owned(), Hat::default());
    if let Ok(defaults) = serde_json::to_value(settings) {
        lay_over(schema, &defaults);
    }
    schema["properties"]["gates"]["items"]["properties"]["timeout"]["default"] =
        json!(super::settings::Gate::default_timeout());
}

/// Stands for a name that the user chooses.
const ANY: &str = "NAME";

fn lay_over(schema: &mut Value, defaults: &Value) {
    for (name, property) in schema
        .get_mut("properties")
        .and_then(Value::as_object_mut)
        .into_iter()
        .flatten()
    {
        match &defaults[name] {
            Value::Null => {}
            inner @ Value::Object(_) => lay_over(property, inner),
            default => property["default"] = default.clone(),
        }
    }
    if let Some(inner) = schema
        .get_mut("additionalProperties")
        .filter(|inner| inner.is_object())
    {
        lay_over(inner, &defaults[ANY]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown() -> Value {
        schema(&["claude", "codex"], &["plain", "claude"])
    }

    /// Every key, sections included, with its schema.
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
        keys("", &shown(), &mut found);
        assert!(found.len() > 60, "{}", found.len());
        for (key, schema) in found {
            let words = schema["description"].as_str().unwrap_or_default();
            assert!(words.ends_with('.') && words.len() > 10, "{key}: {schema}");
            assert!(
                !words.contains("[`"),
                "{key} is told to those who read the source: {words}"
            );
            let typed = ["type", "enum", "anyOf", "oneOf"];
            assert!(
                typed.iter().any(|keyword| !schema[*keyword].is_null()),
                "{key}: {schema}"
            );
        }
    }

    #[test]
    fn what_has_a_default_says_so_and_the_default_is_true() {
        let mut found = Vec::new();
        keys("", &shown(), &mut found);
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
          "default": "arg",
          "description": "How a custom agent gets the prompt.",
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
          "description": "The format of the agent's output; `auto` takes the one that belongs to the agent.",
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
          "description": "How often the agent is started.",
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
          "default": [],
          "description": "What the agent says when all is done; it replaces the built-in markers. Empty means those."
        }
        "#);
    }
}
