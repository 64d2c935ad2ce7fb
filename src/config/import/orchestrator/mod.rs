//! Imports a `ralph.yml` of ralph-orchestrator. The file has the name of ralph's own, so it is recognized by keys that only
//! ralph-orchestrator has.

mod hats;

use std::path::Path;

use serde_json::Value;

use super::builder::{Rejected, SettingsBuilder};
use super::{ImportedFrom, ImportedSettings};
use crate::config::diagnostic::{Problem, suggestion};
use crate::config::schema::{self, YEAR};
use crate::config::spans::Spans;

/// Keys that only ralph-orchestrator has; `*` is a name of the user's choice. One of them is enough to recognize a file.
pub(in crate::config) const RECOGNIZED_BY: &[&str] = &[
    "_suppress_warnings",
    "agent_priority",
    "archive_prompts",
    "backpressure",
    "cli.pty_interactive",
    "core",
    "enable_metrics",
    "event_loop.cancellation_promise",
    "event_loop.checkpoint_interval",
    "event_loop.context_window_tokens",
    "event_loop.cooldown_delay_seconds",
    "event_loop.enforce_hat_scope",
    "event_loop.idle_timeout_secs",
    "event_loop.mutation_score_warn_threshold",
    "event_loop.persistent",
    "event_loop.starting_hat",
    "features",
    "hats.*.aggregate",
    "hats.*.backend",
    "hats.*.backend_args",
    "hats.*.concurrency",
    "hats.*.extra_instructions",
    "hats.*.name",
    "hats.*.scratchpad",
    "memories",
    "retry_delay",
    "RObot",
    "skills",
];
/// Keys without a counterpart, which are listed in one warning.
const NO_COUNTERPART: &[&str] = &[
    "agent_priority",
    "archive_prompts",
    "backpressure.gates[].on_fail",
    "cli.pty_interactive",
    "core.scratchpad",
    "core.specs_dir",
    "enable_metrics",
    "event_loop.cancellation_promise",
    "event_loop.checkpoint_interval",
    "event_loop.context_window_tokens",
    "event_loop.enforce_hat_scope",
    "event_loop.mutation_score_warn_threshold",
    "event_loop.persistent",
    "events",
    "features",
    "hats.*.aggregate",
    "hats.*.concurrency",
    "hats.*.scratchpad",
    "hats.*.timeout",
    "hooks",
    "max_tokens",
    "memories",
    "retry_delay",
    "RObot",
    "skills",
    "tasks",
    "tui",
    "verbose",
];

/// True if the file has a key that only ralph-orchestrator has.
pub(in crate::config) fn is_recognized(spans: &Spans) -> bool {
    let is_foreign = |key: &str| RECOGNIZED_BY.iter().any(|pattern| matches(pattern, key));
    spans.entries().iter().any(|entry| is_foreign(&entry.key))
}

fn matches(pattern: &str, key: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == key,
        Some((before, after)) => key
            .strip_prefix(before)
            .and_then(|rest| rest.strip_suffix(after))
            .is_some_and(|name| !name.is_empty() && !name.contains('.')),
    }
}

/// The imported settings, or all problems of the file.
pub(in crate::config) fn read(
    path: &Path,
    values: &Value,
    spans: &Spans,
    agents: &[&str],
) -> Result<ImportedSettings, Vec<Problem>> {
    let mut import = OrchestratorImport {
        spans,
        agents,
        backend: backend(values),
        completion_topic: text(&values["event_loop"]["completion_promise"]),
        builder: SettingsBuilder::default(),
        no_counterpart: Vec::new(),
        problems: Vec::new(),
    };
    for (key, value) in members(values) {
        import.section(key, value);
    }
    import.starting_hat(&values["event_loop"]["starting_hat"], &values["hats"]);
    import.add_coordinator(&values["hats"]);
    import.finish(path)
}

/// The agent that the file names.
fn backend(values: &Value) -> String {
    let named = text(&values["cli"]["backend"]).or_else(|| text(&values["agent"]));
    named.unwrap_or_else(|| "auto".to_owned())
}

fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

fn members(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let members = value.as_object().into_iter().flatten();
    members
        .filter(|(_, value)| !value.is_null())
        .map(|(key, value)| (key.as_str(), value))
}

struct OrchestratorImport<'a> {
    spans: &'a Spans,
    agents: &'a [&'a str],
    backend: String,
    /// Publishing this topic ends the run.
    completion_topic: Option<String>,
    builder: SettingsBuilder,
    no_counterpart: Vec<String>,
    problems: Vec<Problem>,
}

impl OrchestratorImport<'_> {
    fn section(&mut self, key: &str, value: &Value) {
        match key {
            "event_loop" => self.each(key, value, Self::event_loop),
            "cli" => self.each(key, value, Self::cli),
            "core" => self.each(key, value, Self::core),
            "adapters" => self.adapters(value),
            "hats" => self.hats(value),
            "backpressure" => self.gates(&value["gates"]),
            "hooks" if value["enabled"] == false => {}
            "agent" => self.set(key, &["cli", "backend"], value),
            "prompt_file" | "completion_promise" | "max_iterations" => {
                self.set(key, &["event_loop", key], value);
            }
            "max_runtime" => self.set(key, &["event_loop", "max_runtime_seconds"], &within_a_year(value)),
            "max_cost" => self.set(key, &["event_loop", "max_cost_usd"], value),
            "_suppress_warnings" => {}
            _ => self.other(key, &[key], value),
        }
    }

    fn each(&mut self, section: &str, value: &Value, read: fn(&mut Self, &str, &Value)) {
        if !value.is_object() && !value.is_null() {
            self.problems
                .push(Problem::at_value(section, "expected a mapping"));
        }
        for (key, value) in members(value) {
            read(self, key, value);
        }
    }

    fn event_loop(&mut self, key: &str, value: &Value) {
        let from = format!("event_loop.{key}");
        match key {
            "cooldown_delay_seconds" => self.set(&from, &["event_loop", "cooldown_seconds"], value),
            "max_runtime_seconds" => self.set(&from, &["event_loop", key], &within_a_year(value)),
            "idle_timeout_secs" => {
                for agent in self.agents_in_use() {
                    self.set(&from, &["adapters", &agent, "idle_timeout"], value);
                }
            }
            "completion_promise" if text(value).is_none() => {}
            // Converted together with the hats.
            "starting_hat" => {}
            // The text of the prompt takes precedence over the file.
            "prompt_file" if self.builder.is_set(&["event_loop", "prompt"]) => {}
            _ => self.other(&from, &["event_loop", key], value),
        }
    }

    fn cli(&mut self, key: &str, value: &Value) {
        let from = format!("cli.{key}");
        match key {
            "args" if self.backend != "custom" => {
                for agent in self.agents_in_use() {
                    self.set(&from, &["adapters", &agent, "args"], value);
                }
            }
            _ => self.other(&from, &["cli", key], value),
        }
    }

    fn core(&mut self, key: &str, value: &Value) {
        let from = format!("core.{key}");
        match key {
            "guardrails" => self.set(&from, &["event_loop", "guardrails"], value),
            _ => self.other(&from, &["core", key], value),
        }
    }

    fn adapters(&mut self, value: &Value) {
        for (agent, settings) in members(value) {
            for (key, value) in members(settings) {
                let from = format!("adapters.{agent}.{key}");
                let is_empty = value.as_array().is_some_and(Vec::is_empty);
                match key {
                    "tool_permissions" if is_empty => {}
                    // Permissions are never dropped.
                    "tool_permissions" => self.problems.push(
                        Problem::at_key(from, "tool permissions cannot be enforced for this agent")
                            .with_help(Some(
                                "remove the key, or use hats.NAME.disallowed_tools".to_owned(),
                            )),
                    ),
                    _ => self.other(&from, &["adapters", agent, key], value),
                }
            }
        }
    }

    /// `{name, command, on_fail}`
    fn gates(&mut self, value: &Value) {
        let mut gates = Vec::new();
        for gate in value.as_array().into_iter().flatten() {
            let name = text(&gate["name"]).or_else(|| text(&gate["command"]));
            gates.push(serde_json::json!({ "name": name, "run": gate["command"] }));
            if !gate["on_fail"].is_null() {
                self.not_there("backpressure.gates[].on_fail");
            }
        }
        if !gates.is_empty() {
            self.set("backpressure.gates", &["gates"], &Value::Array(gates));
        }
    }

    /// The agents to which a setting of the whole file applies.
    fn agents_in_use(&self) -> Vec<String> {
        match self.backend.as_str() {
            "auto" => self.agents.iter().map(ToString::to_string).collect(),
            // An unknown agent is reported when it is resolved.
            name if name != "custom" && !self.agents.contains(&name) => Vec::new(),
            name => vec![name.to_owned()],
        }
    }

    /// A key that both have, one without a counterpart, or an unknown one.
    fn other(&mut self, from: &str, to: &[&str], value: &Value) {
        if NO_COUNTERPART.iter().any(|pattern| matches(pattern, from)) {
            self.not_there(from);
        } else {
            self.set(from, to, value);
        }
    }

    fn not_there(&mut self, key: &str) {
        if !self.no_counterpart.iter().any(|known| known == key) {
            self.no_counterpart.push(key.to_owned());
        }
    }

    fn set(&mut self, from: &str, to: &[&str], value: &Value) {
        let line = self.spans.nearest(from).map_or(1, |entry| entry.line);
        match self.builder.set(to, value.clone(), &ImportedFrom::Line(line)) {
            Ok(()) => {}
            Err(Rejected::UnknownKey) => {
                let problem = Problem::at_key(from, "unknown key").with_help(Some(known_keys(to)));
                self.problems.push(problem);
            }
            Err(Rejected::Value(message)) => self.problems.push(Problem::at_value(from, message)),
        }
    }

    fn finish(self, path: &Path) -> Result<ImportedSettings, Vec<Problem>> {
        if !self.problems.is_empty() {
            return Err(self.problems);
        }
        let mut imported = ImportedSettings::default();
        self.builder.finish(&mut imported);
        if !self.no_counterpart.is_empty() {
            imported.warnings.push(format!(
                "{} is a file of ralph-orchestrator; settings without a counterpart: {}",
                path.display(),
                self.no_counterpart.join(", ")
            ));
        }
        Ok(imported)
    }
}

/// Suggests a key of the section in which the unknown key is.
fn known_keys(key: &[&str]) -> String {
    let (last, section) = key.split_last().unwrap_or((&"", &[]));
    let rules = schema::find(&schema::SETTINGS, &section.join("."));
    let known = rules.and_then(|rules| rules["properties"].as_object());
    let known: Vec<&str> = known
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str())
        .collect();
    suggestion(last, &known)
}

/// A run that may take longer than a year has no limit in practice.
fn within_a_year(value: &Value) -> Value {
    match value.as_u64() {
        Some(seconds) => Value::from(seconds.min(YEAR)),
        None => value.clone(),
    }
}

#[cfg(test)]
mod tests;
