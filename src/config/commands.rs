//! What a file of configuration would have run. Whether it may is decided elsewhere.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Loaded;

/// A file, and every command in it, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileCommands {
    pub file: PathBuf,
    pub commands: Vec<String>,
}

impl Loaded {
    /// Every file that says something that would be executed.
    pub fn executes(&self) -> Vec<FileCommands> {
        let files = self.layers.iter().filter_map(super::layers::Layer::file);
        files
            .map(|(file, said)| FileCommands {
                file: file.to_owned(),
                commands: commands(said),
            })
            .filter(|executes| !executes.commands.is_empty())
            .collect()
    }

    /// Whether this file is one of the configuration.
    pub fn has_read(&self, path: &Path) -> bool {
        self.files.iter().any(|file| file == path)
    }
}

fn commands(said: &Value) -> Vec<String> {
    let cli = &said["cli"];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let words = |value: &Value| {
        let words = value.as_array().into_iter().flatten().filter_map(Value::as_str);
        words.collect::<Vec<_>>().join(" ")
    };
    let mut commands = Vec::new();
    match (text(&cli["command"]), words(&cli["args"])) {
        (Some(command), args) => {
            commands.push(format!("the agent: {}", format!("{command} {args}").trim_end()))
        }
        (None, args) if !args.is_empty() => commands.push(format!("arguments of the agent: {args}")),
        (None, _) => {}
    }
    match (text(&cli["claude_command"]), text(&cli["claude_args"])) {
        (Some(command), args) => {
            let args = args.unwrap_or_default();
            commands.push(format!(
                "in place of claude: {}",
                format!("{command} {args}").trim_end()
            ));
        }
        (None, Some(args)) if !args.is_empty() => commands.push(format!("arguments of claude: {args}")),
        (None, _) => {}
    }
    if let Some(driver) = text(&cli["backend"]).filter(|backend| backend.starts_with("driver:")) {
        commands.push(format!(
            "the driver script: {}",
            driver.trim_start_matches("driver:")
        ));
    }
    if let Some(directory) = text(&cli["driver_dir"]) {
        commands.push(format!("driver scripts in: {directory}"));
    }
    for (name, adapter) in said["adapters"].as_object().into_iter().flatten() {
        let args = words(&adapter["args"]);
        if !args.is_empty() {
            commands.push(format!("arguments of {name}: {args}"));
        }
    }
    for gate in said["gates"].as_array().into_iter().flatten() {
        commands.push(gate_in_words(gate));
    }
    for (name, hook) in said["hooks"].as_object().into_iter().flatten() {
        if !hook.is_null() {
            commands.push(format!(
                "the hook {name}: {}",
                text(hook).unwrap_or_else(|| hook.to_string())
            ));
        }
    }
    commands
}

fn gate_in_words(gate: &Value) -> String {
    let text = |key: &str| gate[key].as_str().unwrap_or_default();
    let set = gate["env"].as_object().into_iter().flatten();
    let set: String = set
        .filter_map(|(variable, value)| Some(format!("{variable}={} ", value.as_str()?)))
        .collect();
    let place = gate["cwd"].as_str().map(|cwd| format!(" (in {cwd})"));
    let place = place.unwrap_or_default();
    format!("the gate {}: {set}{}{place}", text("name"), text("run"))
}
