//! `run.json`: what a run was begun with, so that it can go on with the same, and so that a change is noticed.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::config::{Partial, Settings};
use crate::event::RunHeader;

/// The versioned header of a run: its `version` is the header's.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SavedRun {
    #[serde(flatten)]
    pub(super) header: RunHeader,
    /// Every setting that the run had.
    #[serde(default)]
    pub(super) settings: Value,
    /// What of that came from the command line: it need not be said again.
    #[serde(default)]
    pub(super) flags: Value,
}

impl SavedRun {
    pub(super) fn new(header: RunHeader, settings: &Settings, flags: &Partial) -> Self {
        // Text, numbers and lists: there is nothing in them that JSON could refuse.
        Self {
            header,
            settings: serde_json::to_value(settings).unwrap_or_default(),
            flags: serde_json::to_value(flags).unwrap_or_default(),
        }
    }

    /// Of a run whose `run.json` is lost, the journal still has this.
    pub(super) fn from_journal(header: RunHeader) -> Self {
        Self {
            header,
            settings: Value::Null,
            flags: Value::Null,
        }
    }

    /// The flags of the run's first call under those of this one.
    pub(super) fn flags_under(&self, given: &Partial) -> Partial {
        let mut flags = self.flags.clone();
        let over = serde_json::to_value(given).unwrap_or_default();
        if given.event_loop.prompt.is_some() || given.event_loop.prompt_file.is_some() {
            // Two ways to say one thing.
            for key in ["/event_loop/prompt", "/event_loop/prompt_file"] {
                if let Some(said) = flags.pointer_mut(key) {
                    *said = Value::Null;
                }
            }
        }
        lay_over(&mut flags, over);
        // Only the command line can say these, so a file's reader does not know them.
        let extra = flags.pointer_mut("/cli").and_then(Value::as_object_mut);
        let extra = extra.and_then(|cli| cli.remove("extra_args"));
        let mut merged: Partial = serde_json::from_value(flags).unwrap_or_else(|_| given.clone());
        merged.cli.extra_args = extra.and_then(|extra| serde_json::from_value(extra).ok());
        merged
    }

    /// What is different now, a line for each setting. What is not known cannot have changed.
    pub(super) fn changes(&self, settings: &Settings) -> Vec<Change> {
        if self.settings.is_null() {
            return Vec::new();
        }
        let now = serde_json::to_value(settings).unwrap_or_default();
        let (mut before, mut after) = (Map::new(), Map::new());
        flatten("", &self.settings, &mut before);
        flatten("", &now, &mut after);
        let mut keys: Vec<&String> = before.keys().chain(after.keys()).collect();
        keys.sort_unstable();
        keys.dedup();
        let null = Value::Null;
        keys.into_iter()
            .map(|key| Change {
                key: key.clone(),
                before: before.get(key).unwrap_or(&null).clone(),
                after: after.get(key).unwrap_or(&null).clone(),
            })
            .filter(|change| change.before != change.after)
            .collect()
    }
}

/// A setting that is not what it was.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Change {
    /// Dotted: `event_loop.max_iterations`.
    pub(super) key: String,
    before: Value,
    after: Value,
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}: {} → {}",
            self.key,
            shown(&self.before),
            shown(&self.after)
        )
    }
}

fn shown(value: &Value) -> String {
    const LONGEST: usize = 60;
    let text = match value {
        Value::Null => "(not set)".to_owned(),
        Value::String(text) => text.lines().next().unwrap_or_default().to_owned(),
        other => other.to_string(),
    };
    if text.chars().count() > LONGEST {
        text.chars().take(LONGEST).chain(['…']).collect()
    } else {
        text
    }
}

/// What the upper one says replaces what the lower one says; `null` says nothing.
fn lay_over(lower: &mut Value, upper: Value) {
    match (lower, upper) {
        (_, Value::Null) => {}
        (Value::Object(lower), Value::Object(upper)) => {
            for (name, value) in upper {
                lay_over(lower.entry(name).or_insert(Value::Null), value);
            }
        }
        (lower, upper) => *lower = upper,
    }
}

/// Sections become dotted keys; a list is one value.
fn flatten(key: &str, value: &Value, into: &mut Map<String, Value>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let dot = if key.is_empty() { "" } else { "." };
                flatten(&format!("{key}{dot}{name}"), member, into);
            }
        }
        value => {
            into.insert(key.to_owned(), value.clone());
        }
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

    fn flags(prompt: Option<&str>, iterations: Option<u64>, extra: Option<&str>) -> Partial {
        Partial {
            cli: PartialCli {
                extra_args: extra.map(|extra| vec![extra.to_owned()]),
                ..PartialCli::default()
            },
            event_loop: PartialEventLoop {
                prompt: prompt.map(str::to_owned),
                max_iterations: iterations,
                ..PartialEventLoop::default()
            },
            ..Partial::default()
        }
    }

    #[test]
    fn flags_of_the_first_call_hold_unless_said_otherwise() {
        let first = flags(Some("task"), Some(10), Some("--fast"));
        let saved = SavedRun::new(header(), &Settings::default(), &first);
        let text = serde_json::to_string(&saved).unwrap();
        let saved: SavedRun = serde_json::from_str(&text).unwrap();
        assert_eq!(saved.flags_under(&Partial::default()), first);
        let again = flags(None, Some(20), None);
        assert_eq!(
            saved.flags_under(&again),
            flags(Some("task"), Some(20), Some("--fast"))
        );
        let mut file = Partial::default();
        file.event_loop.prompt_file = Some("other.md".into());
        let merged = saved.flags_under(&file);
        assert_eq!(merged.event_loop.prompt, None);
        assert_eq!(merged.event_loop.prompt_file, Some("other.md".into()));
    }

    #[test]
    fn changes_are_told_setting_by_setting() {
        let saved = SavedRun::new(header(), &Settings::default(), &Partial::default());
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
