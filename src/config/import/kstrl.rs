//! Imports kstrl's `kstrl.toml` (earlier `ralph.toml`) and the environment variables that kstrl reads.

mod toml;

use std::path::Path;

use serde_json::{Value, json};

use super::builder::{Rejected, SettingsBuilder};
use super::{ImportContext, ImportedFrom, ImportedSettings};
use crate::config::diagnostic::printable;
use toml::Entry;

/// Environment variables, and the keys of the file that they override.
const VARIABLES: &[(&str, &str, &str)] = &[
    ("AGENT_CMD", "agent", "command"),
    ("KSTRL_AGENT_TYPE", "agent", "type"),
    ("MODEL", "agent", "model"),
    ("MAX_ITERATIONS", "run", "max_iterations"),
    ("SLEEP_SECONDS", "run", "sleep_seconds"),
    ("ALLOWED_PATHS", "paths", "allowed"),
    ("PROMPT_FILE", "paths", "prompt"),
];
/// Keys that change nothing here.
const IGNORED: &[(&str, &str)] = &[("run", "interactive"), ("ui", "ascii"), ("git", "auto_checkout")];
/// The prompts of a project without a `[paths]` section.
const PROMPTS: &[&str] = &["scripts/kstrl/prompt.md", "scripts/ralph/prompt.md"];

pub(super) fn read(text: &str, context: &ImportContext<'_>) -> ImportedSettings {
    let is_toml = context
        .path
        .extension()
        .is_some_and(|extension| extension == "toml");
    let (mut entries, ignored) = if is_toml {
        toml::parse(text)
    } else {
        Default::default()
    };
    let mut import = KstrlImport {
        context,
        builder: SettingsBuilder::default(),
        imported: ImportedSettings::default(),
        unsupported: Vec::new(),
    };
    let location = context.path.display();
    let warnings = ignored
        .iter()
        .map(|line| format!("{location}:{line}: cannot read this line; ignored"));
    import.imported.warnings.extend(warnings);
    for (variable, section, key) in VARIABLES {
        let found = context
            .environment
            .iter()
            .find(|(name, value)| name == variable && !value.is_empty());
        if let Some((_, value)) = found {
            entries.retain(|entry| (entry.section.as_str(), entry.key.as_str()) != (*section, *key));
            entries.push(Entry {
                section: (*section).to_owned(),
                key: (*key).to_owned(),
                value: from_environment(key, value),
                origin: ImportedFrom::Variable((*variable).to_owned()),
            });
        }
    }
    // A custom command takes precedence over the type of the agent.
    entries.sort_by_key(|entry| entry.key == "command");
    let timeout = entries
        .iter()
        .find(|entry| entry.section == "verify" && entry.key == "subprocess_timeout");
    let timeout = timeout
        .and_then(|entry| seconds(&entry.value))
        .filter(|seconds| *seconds > 0);
    let mut gates = Vec::new();
    for entry in &entries {
        match (entry.section.as_str(), entry.key.as_str()) {
            ("verify", "test_command" | "typecheck_command" | "lint_command") => gates.push(entry),
            ("verify", "subprocess_timeout") => {}
            _ => import.entry(entry),
        }
    }
    import.gates(&gates, timeout.unwrap_or(300));
    import.default_prompt();
    import.finish()
}

/// The value of a variable, in the type of the key.
fn from_environment(key: &str, text: &str) -> Value {
    match key {
        "allowed" => text
            .split(',')
            .map(str::trim)
            .filter(|path| !path.is_empty())
            .collect(),
        "max_iterations" | "sleep_seconds" => {
            serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
        }
        _ => Value::from(text),
    }
}

struct KstrlImport<'a> {
    context: &'a ImportContext<'a>,
    builder: SettingsBuilder,
    imported: ImportedSettings,
    unsupported: Vec<String>,
}

impl KstrlImport<'_> {
    fn entry(&mut self, entry: &Entry) {
        let Entry {
            section, key, value, ..
        } = entry;
        let is_unset =
            *value == json!("") || *value == json!([]) || *value == json!(false) || *value == json!(0);
        match (section.as_str(), key.as_str()) {
            (section, key) if IGNORED.contains(&(section, key)) => {}
            ("run", "max_iterations") => self.set(entry, &["event_loop", "max_iterations"], value.clone()),
            ("run", "sleep_seconds") => self.seconds(entry, &["event_loop", "cooldown_seconds"]),
            ("timeout", "agent_iteration") => {
                for agent in self.agents() {
                    if seconds(value) != Some(0) {
                        self.seconds(entry, &["adapters", &agent, "timeout"]);
                    }
                }
            }
            ("breaker", "no_progress_iterations") => {
                self.set(entry, &["event_loop", "max_no_progress"], value.clone());
            }
            _ if is_unset || value.as_f64() == Some(0.0) => {}
            ("agent", "type") => self.agent_type(entry),
            ("agent", "command") => self.agent_command(entry),
            ("agent", "model") => self.set(entry, &["cli", "model"], value.clone()),
            ("agent", "budget_usd") | ("factory", "max_cost_usd") => {
                self.set(entry, &["event_loop", "max_cost_usd"], value.clone());
            }
            ("factory", "max_total_tokens") => self.set(entry, &["event_loop", "max_tokens"], value.clone()),
            ("paths", "prompt") => self.set(entry, &["event_loop", "prompt_file"], value.clone()),
            ("paths", "allowed") => self.allowed_paths(entry),
            ("notify", "on_complete") => self.set(entry, &["hooks", "on_complete"], value.clone()),
            ("notify", "on_first_failure") => self.set(entry, &["hooks", "on_fail"], value.clone()),
            ("sandbox", "enabled") => self.imported.refusals.push(format!(
                "{}: `[sandbox] enabled` cannot be honored; remove it, or set it to false",
                self.context.path.display()
            )),
            ("agent" | "run" | "paths" | "git", key) => self.not_there(format!("{section}.{key}")),
            (section, _) => self.not_there(section.to_owned()),
        }
    }

    /// The agents to which a limit applies.
    fn agents(&self) -> Vec<String> {
        let backend = self.builder.get(&["cli", "backend"]).and_then(Value::as_str);
        match backend {
            Some(backend) => vec![backend.to_owned()],
            None => self
                .context
                .agents
                .iter()
                .map(ToString::to_string)
                .chain(["custom".to_owned()])
                .collect(),
        }
    }

    fn agent_type(&mut self, entry: &Entry) {
        let agent = match entry.value.as_str() {
            Some("claude-code" | "claude-sdk") => "claude",
            Some("codex") => "codex",
            Some("auto") => return,
            _ => return self.invalid(entry, "claude-code, claude-sdk, codex or auto"),
        };
        self.set(entry, &["cli", "backend"], agent.into());
    }

    /// A shell command with the prompt on stdin.
    fn agent_command(&mut self, entry: &Entry) {
        self.set(entry, &["cli", "backend"], "custom".into());
        self.set(entry, &["cli", "command"], "sh".into());
        self.set(entry, &["cli", "args"], json!(["-c", entry.value]));
        self.set(entry, &["cli", "prompt_mode"], "stdin".into());
    }

    /// Prefixes of paths become patterns.
    fn allowed_paths(&mut self, entry: &Entry) {
        let paths = entry
            .value
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        let patterns: Vec<String> = paths
            .map(|path| path.strip_prefix("./").unwrap_or(path))
            .map(|path| match path.strip_suffix('/') {
                Some(directory) => format!("{directory}/**"),
                None => path.to_owned(),
            })
            .collect();
        self.set(entry, &["event_loop", "allowed_paths"], patterns.into());
    }

    fn gates(&mut self, commands: &[&Entry], timeout: u64) {
        let gates: Vec<Value> = commands
            .iter()
            .filter_map(|entry| {
                let name = entry.key.trim_end_matches("_command");
                let run = entry.value.as_str().filter(|run| !run.is_empty())?;
                Some(json!({ "name": name, "run": run, "timeout": timeout }))
            })
            .collect();
        if let Some(first) = commands.first().filter(|_| !gates.is_empty()) {
            self.set(first, &["gates"], gates.into());
        }
    }

    fn default_prompt(&mut self) {
        let root = root_of(self.context.path);
        let found = PROMPTS.iter().find(|prompt| root.join(prompt).is_file());
        if let Some(prompt) = found
            && !self.builder.is_set(&["event_loop", "prompt_file"])
        {
            let set = self.builder.set(
                &["event_loop", "prompt_file"],
                (*prompt).into(),
                &ImportedFrom::Line(1),
            );
            debug_assert!(set.is_ok(), "a path is a valid prompt file");
        }
    }

    fn seconds(&mut self, entry: &Entry, to: &[&str]) {
        match seconds(&entry.value) {
            Some(seconds) => self.set(entry, to, seconds.into()),
            None => self.invalid(entry, "a number of seconds"),
        }
    }

    fn set(&mut self, entry: &Entry, to: &[&str], value: Value) {
        match self.builder.set(to, value, &entry.origin) {
            Ok(()) => {}
            Err(Rejected::UnknownKey) => self.not_there(format!("{}.{}", entry.section, entry.key)),
            Err(Rejected::Value(message)) => self.warn(entry, &message),
        }
    }

    fn invalid(&mut self, entry: &Entry, expected: &str) {
        let found = printable(&entry.value.to_string());
        self.warn(entry, &format!("expected {expected}, found {found}"));
    }

    fn warn(&mut self, entry: &Entry, message: &str) {
        let location = match &entry.origin {
            ImportedFrom::Line(line) => format!("{}:{line}: `{}`", self.context.path.display(), entry.key),
            ImportedFrom::Variable(variable) => format!("environment variable `{variable}`"),
        };
        self.imported
            .warnings
            .push(format!("{location}: {message}; ignored"));
    }

    fn not_there(&mut self, name: String) {
        if !self.unsupported.contains(&name) {
            self.unsupported.push(name);
        }
    }

    fn finish(mut self) -> ImportedSettings {
        self.builder.finish(&mut self.imported);
        let unsupported: Vec<String> = self.unsupported.iter().map(|name| printable(name)).collect();
        self.imported.warn_unsupported(self.context, &unsupported);
        self.imported
    }
}

/// The directory to which the paths of a file are relative.
pub(super) fn root_of(path: &Path) -> &Path {
    let names_prompt = PROMPTS.iter().any(|prompt| path.ends_with(prompt));
    path.ancestors()
        .nth(if names_prompt { 3 } else { 1 })
        .unwrap_or(path)
}

/// Whole seconds, rounded up. Nothing below 0 is a limit.
fn seconds(value: &Value) -> Option<u64> {
    let seconds = value.as_f64()?.ceil().clamp(0.0, 31_536_000.0);
    format!("{seconds:.0}").parse().ok()
}

#[cfg(test)]
mod tests;
