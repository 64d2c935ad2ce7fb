//! The documentation is loaded and compared, so that it cannot drift from the code.

use serde_json::Value;

use super::{Place, settings_of};
use crate::config::{AdapterSettings, Hat, Settings};

const MANUAL: &str = include_str!("../../../docs/config.md");

fn example() -> &'static str {
    let (_, rest) = MANUAL
        .split_once("```yaml\n")
        .expect("a YAML block in docs/config.md");
    rest.split_once("```").expect("the end of the YAML block").0
}

#[test]
fn the_documented_example_loads_without_a_warning() {
    let loaded = Place::new().write("project/ralph.yml", example()).loaded();
    assert_eq!(loaded.warnings, Vec::<String>::new());
    assert_eq!(loaded.settings.gates.len(), 2);
    assert_eq!(loaded.settings.event_loop.max_cost_usd, Some(20.0));
}

#[test]
fn every_key_is_documented() {
    let mut settings = Settings::default();
    settings
        .adapters
        .insert("NAME".to_owned(), AdapterSettings::default());
    settings.hats.insert("NAME".to_owned(), Hat::default());
    settings.gates = settings_of("gates: [{name: x, run: y}]").gates;
    let Value::Object(sections) = serde_json::to_value(settings).expect("settings as JSON") else {
        panic!("settings are not an object");
    };
    for key in keys(&sections).into_iter().filter(|key| key != "cli.extra_args") {
        assert!(
            MANUAL.contains(&format!("| `{key}` |")),
            "{key} has no row in docs/config.md"
        );
    }
}

fn keys(members: &serde_json::Map<String, Value>) -> Vec<String> {
    let mut keys = Vec::new();
    for (name, value) in members {
        match value {
            Value::Object(inner) => keys.extend(self::keys(inner).iter().map(|key| format!("{name}.{key}"))),
            Value::Array(items) if items.iter().any(Value::is_object) => {
                let inner = items.iter().filter_map(Value::as_object).flat_map(self::keys);
                keys.extend(inner.map(|key| format!("{name}[].{key}")));
            }
            _ => keys.push(name.clone()),
        }
    }
    keys
}
