//! Loads and validates the tasks file of a benchmark: tasks, agents and limits.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::policy::{Gate, Seconds};

use super::checks::{self, KnownNames};
use super::diagnostic::{ConfigError, Problem, quoted};
use super::layers::read_text;
use super::partial::null_as_default;
use super::schema::YEAR;
use super::settings::{PartialAdapter, PartialCli, PartialEventLoop, PartialSettings, PromptMode};
use super::yaml::Document;

/// The contents of a tasks file.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// Number of attempts of each agent at each task.
    pub repeat: Option<u64>,
    /// Number of cells that run in parallel.
    pub jobs: Option<u64>,
    /// Maximum cost of the whole benchmark.
    pub max_cost_usd: Option<f64>,
    /// Limits for tasks that do not set their own.
    #[serde(default, deserialize_with = "null_as_default")]
    pub limits: CellLimits,
    #[serde(default)]
    pub agents: Vec<SuiteAgent>,
    #[serde(default)]
    pub tasks: Vec<SuiteTask>,
}

/// Limits of one cell (one attempt of one agent at one task), with the same keys as `event_loop` in `ralph.yml`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CellLimits {
    pub max_iterations: Option<u64>,
    pub max_runtime_seconds: Option<Seconds>,
    pub max_cost_usd: Option<f64>,
    pub max_tokens: Option<u64>,
}

/// True if the key is a limit.
pub(super) fn is_limit(key: &str) -> bool {
    let limits = serde_json::to_value(CellLimits::default()).unwrap_or_default();
    limits.get(key).is_some()
}

impl CellLimits {
    /// Fills unset limits from `others`.
    pub fn or(self, others: Self) -> Self {
        Self {
            max_iterations: self.max_iterations.or(others.max_iterations),
            max_runtime_seconds: self.max_runtime_seconds.or(others.max_runtime_seconds),
            max_cost_usd: self.max_cost_usd.or(others.max_cost_usd),
            max_tokens: self.max_tokens.or(others.max_tokens),
        }
    }

    /// These limits as settings for a run.
    pub fn to_event_loop(self) -> PartialEventLoop {
        PartialEventLoop {
            max_iterations: self.max_iterations,
            max_runtime_seconds: self.max_runtime_seconds,
            max_cost_usd: self.max_cost_usd,
            max_tokens: self.max_tokens,
            ..PartialEventLoop::default()
        }
    }
}

/// One task of a benchmark.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SuiteTask {
    pub name: String,
    pub prompt: Option<String>,
    pub prompt_file: Option<PathBuf>,
    /// A directory to copy into the workspace.
    pub copy: Option<PathBuf>,
    /// URL or path of a git repository to clone into the workspace.
    pub clone: Option<String>,
    /// The git ref to check out after cloning.
    #[serde(rename = "ref")]
    pub reference: Option<String>,
    /// A command that prepares the workspace.
    pub setup: Option<String>,
    /// The command that succeeds if the task is done.
    pub verify: String,
    /// Maximum duration of `setup` and of `verify`.
    #[serde(default = "SuiteTask::default_timeout")]
    pub timeout: Seconds,
    #[serde(default, deserialize_with = "null_as_default")]
    pub limits: CellLimits,
    /// Gates for the run, as in `ralph.yml`.
    #[serde(default)]
    pub gates: Vec<Gate>,
}

impl SuiteTask {
    fn default_timeout() -> Seconds {
        Seconds(600)
    }
}

/// A named agent configuration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SuiteAgent {
    pub name: String,
    /// As in `ralph.yml`. Default: `custom` if `command` is set, otherwise the name.
    pub backend: Option<String>,
    pub model: Option<String>,
    pub command: Option<String>,
    #[serde(default)]
    pub args: Vec<String>,
    pub prompt_mode: Option<PromptMode>,
    pub prompt_flag: Option<String>,
    pub transcript: Option<String>,
    pub jq_filter: Option<String>,
}

impl SuiteAgent {
    /// A built-in agent or driver from the command line: `NAME` or `NAME@MODEL`.
    pub fn named(name: &str) -> Self {
        let (backend, model) = match name.split_once('@') {
            Some((backend, model)) => (backend, Some(model.to_owned())),
            None => (name, None),
        };
        Self {
            name: name.to_owned(),
            backend: Some(backend.to_owned()),
            model,
            ..Self::default()
        }
    }

    /// The settings for a run with this agent. `agents` are the names of the built-in agents.
    pub fn to_settings(&self, agents: &[&str]) -> PartialSettings {
        let custom = self.command.as_ref().map(|_| "custom".to_owned());
        let backend = self.backend.clone().or(custom);
        let backend = backend.unwrap_or_else(|| self.name.clone());
        // Arguments of a built-in agent are appended to ralph's own.
        let is_builtin = agents.contains(&backend.as_str());
        let args = (!self.args.is_empty()).then(|| self.args.clone());
        let (command_args, adapter_args) = if is_builtin { (None, args) } else { (args, None) };
        let mut settings = PartialSettings::default();
        if let Some(args) = adapter_args {
            let adapter = PartialAdapter {
                args: Some(args),
                ..PartialAdapter::default()
            };
            settings.adapters.insert(backend.clone(), adapter);
        }
        settings.cli = PartialCli {
            backend: Some(backend),
            model: self.model.clone(),
            command: self.command.clone(),
            args: command_args,
            prompt_mode: self.prompt_mode,
            prompt_flag: self.prompt_flag.clone(),
            transcript: self.transcript.clone(),
            jq_filter: self.jq_filter.clone(),
            ..PartialCli::default()
        };
        settings
    }
}

/// Loads a tasks file. Errors have the same form as those of `ralph.yml`. `agents` and `transcripts` are the built-in
/// names.
pub fn load_suite(path: &Path, agents: &[&str], transcripts: &[&str]) -> Result<Suite, ConfigError> {
    let text = read_text(path)?;
    let document = Document::of_suite(path, &text);
    let mut suite: Suite = document.read().map_err(ConfigError::Diagnostic)?;
    let known = KnownNames { agents, transcripts };
    check(&suite, known)
        .map_err(|problem| ConfigError::Diagnostic(Box::new(document.diagnostic(problem))))?;
    suite.make_paths_absolute(path.parent().unwrap_or(Path::new(".")));
    Ok(suite)
}

impl Suite {
    /// Makes paths absolute, relative to the file. Commands without a slash are looked up in PATH.
    fn make_paths_absolute(&mut self, base: &Path) {
        for task in &mut self.tasks {
            for path in [&mut task.prompt_file, &mut task.copy].into_iter().flatten() {
                *path = base.join(&path);
            }
            if let Some(clone) = &mut task.clone
                && base.join(&clone).exists()
            {
                *clone = base.join(&clone).to_string_lossy().into_owned();
            }
        }
        for agent in &mut self.agents {
            if let Some(command) = agent.command.as_mut().filter(|command| command.contains('/')) {
                let below = command.trim_start_matches("./");
                *command = base.join(below).to_string_lossy().into_owned();
            }
        }
    }
}

fn check(suite: &Suite, known: KnownNames<'_>) -> Result<(), Problem> {
    for (key, given) in [("repeat", suite.repeat), ("jobs", suite.jobs)] {
        if given == Some(0) {
            return Err(Problem::at_value(key, "expected at least 1, found `0`"));
        }
    }
    let whole = CellLimits {
        max_cost_usd: suite.max_cost_usd,
        ..CellLimits::default()
    };
    check_limits(whole, known).map_err(rebased("event_loop.", ""))?;
    check_limits(suite.limits, known).map_err(rebased("event_loop.", "limits."))?;
    if suite.tasks.is_empty() {
        let help = "a task needs `name`, `prompt` and `verify`".to_owned();
        return Err(Problem::at_key("tasks", "expected at least one task, found none").with_help(Some(help)));
    }
    check_names("tasks", suite.tasks.iter().map(|task| task.name.as_str()))?;
    for (index, task) in suite.tasks.iter().enumerate() {
        check_task(&format!("tasks[{index}]"), task, known)?;
    }
    check_names("agents", suite.agents.iter().map(|agent| agent.name.as_str()))?;
    for (index, agent) in suite.agents.iter().enumerate() {
        let prefix = format!("agents[{index}].");
        checks::check(&agent.to_settings(known.agents), known).map_err(rebased("cli.", &prefix))?;
    }
    Ok(())
}

fn check_limits(limits: CellLimits, known: KnownNames<'_>) -> Result<(), Problem> {
    let settings = PartialSettings {
        event_loop: limits.to_event_loop(),
        ..PartialSettings::default()
    };
    checks::check(&settings, known)
}

/// Replaces the key prefix of a problem: the checks are written for `ralph.yml`.
fn rebased<'a>(from: &'a str, to: &'a str) -> impl FnOnce(Problem) -> Problem + 'a {
    move |mut problem| {
        let rest = problem.key.strip_prefix(from).unwrap_or(&problem.key);
        problem.key = format!("{to}{rest}");
        problem
    }
}

/// Names must be usable as directory names and on the command line.
fn check_names<'a>(list: &str, names: impl Iterator<Item = &'a str>) -> Result<(), Problem> {
    let mut seen = BTreeMap::new();
    for (index, name) in names.enumerate() {
        let key = format!("{list}[{index}].name");
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if name.is_empty() || name.starts_with(['.', '-']) || !name.chars().all(is_plain) {
            let message = format!(
                "expected letters, digits, `.`, `_` and `-`, found {}",
                quoted(name)
            );
            return Err(Problem::at_value(key, message)
                .with_help(Some("use a short name such as `fix-the-parser`".to_owned())));
        }
        if let Some(first) = seen.insert(name.to_ascii_lowercase(), index) {
            let message = format!(
                "duplicate name {}, already used by `{list}[{first}]`",
                quoted(name)
            );
            return Err(Problem::at_value(key, message).with_help(Some("rename one of the two".to_owned())));
        }
    }
    Ok(())
}

fn check_task(key: &str, task: &SuiteTask, known: KnownNames<'_>) -> Result<(), Problem> {
    let conflict = |one: &str, other: &str| {
        Problem::at_key(
            format!("{key}.{one}"),
            format!("cannot be combined with `{key}.{other}`"),
        )
        .with_help(Some("remove one of the two".to_owned()))
    };
    match (&task.prompt, &task.prompt_file) {
        (Some(_), Some(_)) => return Err(conflict("prompt_file", "prompt")),
        (None, None) => {
            return Err(
                Problem::at_key(key, "missing required key `prompt`").with_help(Some(
                    "add `prompt: …`, or `prompt_file: …` to read it from a file".to_owned(),
                )),
            );
        }
        (Some(_), None) | (None, Some(_)) => {}
    }
    if task.copy.is_some() && task.clone.is_some() {
        return Err(conflict("clone", "copy"));
    }
    if task.reference.is_some() && task.clone.is_none() {
        let key = format!("{key}.ref");
        return Err(Problem::at_key(key, "requires `clone`")
            .with_help(Some("set `clone` to a repository, or remove `ref`".to_owned())));
    }
    for (part, text) in [
        ("prompt", task.prompt.as_deref()),
        ("clone", task.clone.as_deref()),
        ("ref", task.reference.as_deref()),
        ("setup", task.setup.as_deref()),
        ("verify", Some(task.verify.as_str())),
    ] {
        checks::not_blank(&format!("{key}.{part}"), text)?;
    }
    checks::check_range(&format!("{key}.timeout"), Some(task.timeout), 1..=YEAR)?;
    check_limits(task.limits, known).map_err(rebased("event_loop.", &format!("{key}.limits.")))?;
    if let Some(index) = task.gates.iter().position(Gate::is_review) {
        let key = format!("{key}.gates[{index}]");
        return Err(Problem::at_key(key, "missing required key `run`")
            .with_help(Some("add `run: …`; reviews belong in ralph.yml".to_owned())));
    }
    let gates = PartialSettings {
        gates: Some(task.gates.clone()),
        ..PartialSettings::default()
    };
    checks::check(&gates, known).map_err(rebased("", &format!("{key}.")))
}
