//! `run.json`: the header, settings and flags of a run, used to resume it and to detect changed settings.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::{PartialSettings, Settings, flatten};
use crate::event::RunHeader;
use crate::policy::Gate;

/// The contents of `run.json`; `version` is the header's.
#[derive(Debug, Serialize, Deserialize)]
pub struct SavedRun {
    #[serde(flatten)]
    pub header: RunHeader,
    /// All settings of the run.
    #[serde(default)]
    pub settings: Value,
    /// The settings from the command line, so that they need not be repeated.
    #[serde(default)]
    pub flags: Value,
}

impl SavedRun {
    pub fn new(header: RunHeader, settings: &Settings, flags: &PartialSettings) -> Self {
        // Settings contain only strings, numbers and lists, so serialization cannot fail.
        Self {
            header,
            settings: serde_json::to_value(settings).unwrap_or_default(),
            flags: serde_json::to_value(flags).unwrap_or_default(),
        }
    }

    /// The gates of the run.
    pub fn gates(&self) -> Vec<Gate> {
        let gates = self.settings.get("gates").cloned().unwrap_or_default();
        serde_json::from_value(gates).unwrap_or_default()
    }

    /// Used if `run.json` is missing: the journal has a copy of the header.
    pub fn from_journal(header: RunHeader) -> Self {
        Self {
            header,
            settings: Value::Null,
            flags: Value::Null,
        }
    }

    /// Merges the original flags with the given ones, which take precedence.
    pub fn merged_flags(&self, given: &PartialSettings) -> PartialSettings {
        let mut flags = self.flags.clone();
        let overrides = serde_json::to_value(given).unwrap_or_default();
        if given.event_loop.prompt.is_some() || given.event_loop.prompt_file.is_some() {
            // A new prompt or prompt file replaces both.
            for key in ["/event_loop/prompt", "/event_loop/prompt_file"] {
                if let Some(value) = flags.pointer_mut(key) {
                    *value = Value::Null;
                }
            }
        }
        merge(&mut flags, overrides);
        // These keys exist only on the command line, so `PartialSettings` does not deserialize them.
        let mut take = |key| {
            let cli = flags.pointer_mut("/cli").and_then(Value::as_object_mut);
            let words = cli.and_then(|cli| cli.remove(key));
            words.and_then(|words| serde_json::from_value::<Option<Vec<String>>>(words).ok()?)
        };
        let (extra_args, extra_gates) = (take("extra_args"), take("extra_gates"));
        let mut merged: PartialSettings = serde_json::from_value(flags).unwrap_or_else(|_| given.clone());
        (merged.cli.extra_args, merged.cli.extra_gates) = (extra_args, extra_gates);
        merged
    }

    /// Lists the changed settings; empty if the original settings are unknown.
    pub fn changes(&self, settings: &Settings) -> Vec<SettingChange> {
        if self.settings.is_null() {
            return Vec::new();
        }
        let now = serde_json::to_value(settings).unwrap_or_default();
        let flat = |settings| flatten(settings).into_iter().collect::<BTreeMap<_, _>>();
        let (before, after) = (flat(&self.settings), flat(&now));
        let mut keys: Vec<&String> = before.keys().chain(after.keys()).collect();
        keys.sort_unstable();
        keys.dedup();
        let null = Value::Null;
        keys.into_iter()
            .map(|key| SettingChange {
                key: key.clone(),
                before: before.get(key).copied().unwrap_or(&null).clone(),
                after: after.get(key).copied().unwrap_or(&null).clone(),
            })
            .filter(|change| change.before != change.after)
            .collect()
    }
}

/// A changed setting.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingChange {
    /// Dotted: `event_loop.max_iterations`.
    pub key: String,
    before: Value,
    after: Value,
}

impl std::fmt::Display for SettingChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}: {} → {}",
            self.key,
            short_value(&self.before),
            short_value(&self.after)
        )
    }
}

fn short_value(value: &Value) -> String {
    const MAX_CHARS: usize = 60;
    let text = match value {
        Value::Null => "(not set)".to_owned(),
        Value::String(text) => text.lines().next().unwrap_or_default().to_owned(),
        other => other.to_string(),
    };
    if text.chars().count() > MAX_CHARS {
        text.chars().take(MAX_CHARS).chain(['…']).collect()
    } else {
        text
    }
}

/// Merges `upper` into `lower`; `null` values do not override.
fn merge(lower: &mut Value, upper: Value) {
    match (lower, upper) {
        (_, Value::Null) => {}
        (Value::Object(lower), Value::Object(upper)) => {
            for (name, value) in upper {
                merge(lower.entry(name).or_insert(Value::Null), value);
            }
        }
        (lower, upper) => *lower = upper,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{PartialCli, PartialEventLoop};

    fn header() -> RunHeader {
        serde_json::from_str(
            r#"{"version":1,"run_id":"r","ralph":"0","agent":"a","transcript":"t","workspace":"/w","max_iterations":1}"#,
        )
        .unwrap()
    }

    fn flags(prompt: Option<&str>, iterations: Option<u64>, extra: Option<&str>) -> PartialSettings {
        PartialSettings {
            cli: PartialCli {
                extra_args: extra.map(|extra| vec![extra.to_owned()]),
                ..PartialCli::default()
            },
            event_loop: PartialEventLoop {
                prompt: prompt.map(str::to_owned),
                max_iterations: iterations,
                ..PartialEventLoop::default()
            },
            ..PartialSettings::default()
        }
    }

    #[test]
    fn original_flags_apply_unless_overridden() {
        let first = flags(Some("task"), Some(10), Some("--fast"));
        let saved = SavedRun::new(header(), &Settings::default(), &first);
        let text = serde_json::to_string(&saved).unwrap();
        let saved: SavedRun = serde_json::from_str(&text).unwrap();
        assert_eq!(saved.merged_flags(&PartialSettings::default()), first);
        let again = flags(None, Some(20), None);
        assert_eq!(
            saved.merged_flags(&again),
            flags(Some("task"), Some(20), Some("--fast"))
        );
        let mut file = PartialSettings::default();
        file.event_loop.prompt_file = Some("other.md".into());
        let merged = saved.merged_flags(&file);
        assert_eq!(merged.event_loop.prompt, None);
        assert_eq!(merged.event_loop.prompt_file, Some("other.md".into()));
    }

    #[test]
    fn changes_are_listed_per_setting() {
        let saved = SavedRun::new(header(), &Settings::default(), &PartialSettings::default());
        assert_eq!(saved.changes(&Settings::default()), []);
        let mut settings = Settings::default();
        settings.event_loop.max_iterations = 20;
        settings.event_loop.max_cost_usd = Some(1.5);
        settings.cli.args = vec!["--x".into()];
        let changes: Vec<String> = saved.changes(&settings).iter().map(ToString::to_string).collect();
        assert_eq!(
            changes,
            [
                "cli.args: [] → [\"--x\"]",
                "event_loop.max_cost_usd: (not set) → 1.5",
                "event_loop.max_iterations: 100 → 20",
            ]
        );
    }
}
