//! Builds the settings of an imported file key by key, so that each value is checked on its own.

use serde_json::{Map, Value};

use super::{ImportedFrom, ImportedSettings};
use crate::config::diagnostic::quoted;
use crate::config::expected::FileKind;
use crate::config::settings::PartialSettings;

/// Values in the structure of `ralph.yml`, and their sources.
#[derive(Debug, Default)]
pub(super) struct SettingsBuilder {
    values: Map<String, Value>,
    origins: Vec<(String, ImportedFrom)>,
}

/// Why a value was not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Rejected {
    UnknownKey,
    /// What was expected and found.
    Value(String),
}

impl SettingsBuilder {
    /// Sets a key of `ralph.yml`. Names that the user chose may contain dots, so the key is a list.
    pub(super) fn set(&mut self, key: &[&str], value: Value, origin: &ImportedFrom) -> Result<(), Rejected> {
        let mut alone = Map::new();
        insert(&mut alone, key, value.clone());
        if let Err(error) = serde_json::from_value::<PartialSettings>(Value::Object(alone)) {
            return Err(match error.to_string().starts_with("unknown field") {
                true if value.is_object() => Rejected::Value("expected other keys".to_owned()),
                true => Rejected::UnknownKey,
                false => {
                    let expected = FileKind::Settings.expected_type(&key.join(".")).phrase();
                    let found = quoted(&shown(&value));
                    Rejected::Value(format!("expected {expected}, found {found}"))
                }
            });
        }
        insert(&mut self.values, key, value);
        self.origins.push((key.join("."), origin.clone()));
        Ok(())
    }

    pub(super) fn is_set(&self, key: &[&str]) -> bool {
        self.get(key).is_some()
    }

    pub(super) fn get(&self, key: &[&str]) -> Option<&Value> {
        let (last, sections) = key.split_last()?;
        let mut at = &self.values;
        for section in sections {
            at = at.get(*section)?.as_object()?;
        }
        at.get(*last)
    }

    /// The settings. Each value has been accepted on its own, so they are valid together.
    pub(super) fn finish(self, imported: &mut ImportedSettings) {
        imported.settings = serde_json::from_value(Value::Object(self.values)).unwrap_or_default();
        imported.origins = self.origins;
    }
}

fn insert(into: &mut Map<String, Value>, key: &[&str], value: Value) {
    match key {
        [] => {}
        [last] => drop(into.insert((*last).to_owned(), value)),
        [section, rest @ ..] => {
            let inner = into.entry(*section).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(inner) = inner {
                insert(inner, rest, value);
            }
        }
    }
}

/// A value for an error message.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
