//! Lists the commands that a configuration file would run, for the trust prompt.

use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use super::LoadedConfig;

/// A configuration file and descriptions of the commands in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileCommands {
    pub file: PathBuf,
    /// The text from which the commands were parsed; `None` for a file that another program will read.
    pub text: Option<String>,
    pub commands: Vec<String>,
}

impl LoadedConfig {
    /// The configuration files that contain commands.
    pub fn file_commands(&self) -> Vec<FileCommands> {
        let files = self.layers.iter().filter_map(super::layers::Layer::file);
        files
            .map(|(file, text, values)| FileCommands {
                file: file.to_owned(),
                text: Some(text.to_owned()),
                commands: prompt_outside(file, values)
                    .into_iter()
                    .chain(commands(values))
                    .collect(),
            })
            .filter(|file| !file.commands.is_empty())
            .collect()
    }
}

/// A prompt file outside of the file's own directory: its text would be sent to the agent.
fn prompt_outside(file: &Path, values: &Value) -> Option<String> {
    let name = values["event_loop"]["prompt_file"].as_str()?;
    let mut depth: usize = 0;
    let directory = file.parent()?;
    let path = Path::new(name);
    for component in path.strip_prefix(directory).unwrap_or(path).components() {
        match component {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir if depth > 0 => depth -= 1,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Some(format!("prompt file: {name}"));
            }
        }
    }
    None
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn words(value: &Value) -> String {
    let words = value.as_array().into_iter().flatten().filter_map(Value::as_str);
    words.collect::<Vec<_>>().join(" ")
}

fn commands(values: &Value) -> Vec<String> {
    let cli = &values["cli"];
    let mut commands = Vec::new();
    match (text(&cli["command"]), words(&cli["args"])) {
        (Some(command), args) => commands.push(format!("agent: {}", format!("{command} {args}").trim_end())),
        (None, args) if !args.is_empty() => commands.push(format!("agent arguments: {args}")),
        (None, _) => {}
    }
    match (text(&cli["claude_command"]), text(&cli["claude_args"])) {
        (Some(command), args) => {
            let args = args.unwrap_or_default();
            commands.push(format!(
                "claude wrapper: {}",
                format!("{command} {args}").trim_end()
            ));
        }
        (None, Some(args)) if !args.is_empty() => commands.push(format!("claude arguments: {args}")),
        (None, _) => {}
    }
    if let Some(command) =
        text(&cli["backend"]).and_then(|backend| Some(backend.strip_prefix("acp:")?.to_owned()))
    {
        commands.push(format!("agent: {command}"));
    }
    if let Some(driver) = text(&cli["backend"]).filter(|backend| backend.starts_with("driver:")) {
        commands.push(format!("driver script: {}", driver.trim_start_matches("driver:")));
    }
    if let Some(directory) = text(&cli["driver_dir"]) {
        commands.push(format!("driver directory: {directory}"));
    }
    commands.extend(commands_of_agents(values));
    for gate in values["gates"].as_array().into_iter().flatten() {
        if gate["run"].is_string() {
            commands.push(describe_gate(gate));
        } else {
            commands.extend(commands_of_review(gate));
        }
    }
    if let Some(checkpoint) = text(&values["event_loop"]["checkpoint"]) {
        commands.push(format!("checkpoint: {checkpoint}"));
    }
    for (name, hook) in values["hooks"].as_object().into_iter().flatten() {
        if !hook.is_null() {
            commands.push(format!(
                "hook {name}: {}",
                text(hook).unwrap_or_else(|| hook.to_string())
            ));
        }
    }
    for (kind, address) in values["notify"].as_object().into_iter().flatten() {
        // The owner of the address learns about the runs.
        if let Some(address) = text(address) {
            commands.push(format!("notification by {kind}: {address}"));
        }
    }
    commands
}

/// What a sandbox allows beyond the defaults.
fn sandbox(values: &Value) -> Option<String> {
    let weakens = |(key, value): &(&String, &Value)| match key.as_str() {
        "mode" => *value == "off",
        "net" => !value.is_null() && *value != "none",
        _ => value.as_array().is_some_and(|paths| !paths.is_empty()),
    };
    let parts = values.as_object()?.iter().filter(weakens);
    let parts: Vec<String> = parts.map(|(key, value)| format!("{key} {value}")).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// What adapters and hats add to the calls of agents.
fn commands_of_agents(values: &Value) -> Vec<String> {
    let mut commands = Vec::new();
    commands.extend(sandbox(&values["sandbox"]).map(|text| format!("sandbox: {text}")));
    for agent in values["cli"]["fallback"].as_array().into_iter().flatten() {
        if let Some(driver) = agent.as_str().and_then(|agent| agent.strip_prefix("driver:")) {
            commands.push(format!("driver script: {driver}"));
        }
    }
    for (name, adapter) in values["adapters"].as_object().into_iter().flatten() {
        commands.extend(sandbox(&adapter["sandbox"]).map(|text| format!("{name} sandbox: {text}")));
        let args = words(&adapter["args"]);
        if !args.is_empty() {
            commands.push(format!("{name} arguments: {args}"));
        }
        for (variable, value) in adapter["env"].as_object().into_iter().flatten() {
            commands.push(format!(
                "{name} environment: {variable}={}",
                value.as_str().unwrap_or_default()
            ));
        }
    }
    for (name, hat) in values["hats"].as_object().into_iter().flatten() {
        if let Some(driver) = text(&hat["agent"]).filter(|agent| agent.starts_with("driver:")) {
            commands.push(format!("driver script: {}", driver.trim_start_matches("driver:")));
        }
        commands.extend(sandbox(&hat["sandbox"]).map(|text| format!("hat {name} sandbox: {text}")));
        let args = words(&hat["args"]);
        if !args.is_empty() {
            commands.push(format!("hat {name} arguments: {args}"));
        }
    }
    if let Some(setup) = text(&values["worktree"]["setup"]) {
        commands.push(format!("worktree setup: {setup}"));
    }
    commands
}

/// What a review adds to the calls of its agents.
fn commands_of_review(gate: &Value) -> Vec<String> {
    let mut commands = Vec::new();
    let reviewers = gate["reviewers"].as_array().into_iter().flatten();
    for reviewer in std::iter::once(gate).chain(reviewers) {
        let name = reviewer["name"].as_str().unwrap_or_default();
        if let Some(driver) = text(&reviewer["agent"]).filter(|agent| agent.starts_with("driver:")) {
            commands.push(format!("driver script: {}", driver.trim_start_matches("driver:")));
        }
        if let Some(command) =
            text(&reviewer["agent"]).and_then(|agent| Some(agent.strip_prefix("acp:")?.to_owned()))
        {
            commands.push(format!("agent: {command}"));
        }
        let args = words(&reviewer["args"]);
        if !args.is_empty() {
            commands.push(format!("reviewer {name} arguments: {args}"));
        }
    }
    commands
}

fn describe_gate(gate: &Value) -> String {
    let text = |key: &str| gate[key].as_str().unwrap_or_default();
    let sandbox = sandbox(&gate["sandbox"])
        .map(|text| format!(" (sandbox: {text})"))
        .unwrap_or_default();
    let variables = gate["env"].as_object().into_iter().flatten();
    let variables: String = variables
        .filter_map(|(variable, value)| Some(format!("{variable}={} ", value.as_str()?)))
        .collect();
    let directory = gate["cwd"].as_str().map(|cwd| format!(" (in {cwd})"));
    let directory = directory.unwrap_or_default();
    format!(
        "gate {}: {variables}{}{directory}{sandbox}",
        text("name"),
        text("run")
    )
}
