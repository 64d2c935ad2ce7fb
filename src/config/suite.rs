//! The tasks file of a bench: which tasks, which agents, within which limits. Reads and checks it; how a bench is run
//! is decided elsewhere.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::checks::{self, Known};
use super::diagnostic::{ConfigError, Problem, quoted};
use super::layers::read_text;
use super::partial::{Partial, PartialAdapter, PartialCli, PartialEventLoop, may_be_empty};
use super::settings::{Gate, PromptMode};
use super::yaml::Document;

/// What a tasks file says.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// How often each agent tries each task.
    pub repeat: Option<u64>,
    /// How many cells run at the same time.
    pub jobs: Option<u64>,
    /// What the whole bench may cost.
    pub max_cost_usd: Option<f64>,
    /// For every task that does not say otherwise.
    #[serde(default, deserialize_with = "may_be_empty")]
    pub limits: CellLimits,
    #[serde(default)]
    pub agents: Vec<SuiteAgent>,
    #[serde(default)]
    pub tasks: Vec<Task>,
}

/// What one cell may use; the keys are those of `event_loop` in `ralph.yml`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellLimits {
    pub max_iterations: Option<u64>,
    pub max_runtime_seconds: Option<u64>,
    pub max_cost_usd: Option<f64>,
    pub max_tokens: Option<u64>,
}

/// Whether a key is one of them.
pub(super) fn is_limit(key: &str) -> bool {
    let limits = serde_json::to_value(CellLimits::default()).unwrap_or_default();
    limits.get(key).is_some()
}

impl CellLimits {
    /// What these do not say, the others do.
    pub fn or(self, others: Self) -> Self {
        Self {
            max_iterations: self.max_iterations.or(others.max_iterations),
            max_runtime_seconds: self.max_runtime_seconds.or(others.max_runtime_seconds),
            max_cost_usd: self.max_cost_usd.or(others.max_cost_usd),
            max_tokens: self.max_tokens.or(others.max_tokens),
        }
    }

    /// These limits as wishes for a run.
    pub fn wishes(self) -> PartialEventLoop {
        PartialEventLoop {
            max_iterations: self.max_iterations,
            max_runtime_seconds: self.max_runtime_seconds,
            max_cost_usd: self.max_cost_usd,
            max_tokens: self.max_tokens,
            ..PartialEventLoop::default()
        }
    }
}

/// One task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    pub name: String,
    pub prompt: Option<String>,
    pub prompt_file: Option<PathBuf>,
    /// A directory whose content the workspace begins with.
    pub copy: Option<PathBuf>,
    /// A git repository, by URL or path, of which the workspace is a clone.
    pub clone: Option<String>,
    /// What of the clone to check out.
    #[serde(rename = "ref")]
    pub reference: Option<String>,
    /// A command that makes the workspace ready.
    pub setup: Option<String>,
    /// The command whose success means that the task is done.
    pub verify: String,
    /// Seconds that `setup` and `verify` may take, each.
    #[serde(default = "Task::default_timeout")]
    pub timeout: u64,
    #[serde(default, deserialize_with = "may_be_empty")]
    pub limits: CellLimits,
    /// Checks that the agent is told about, as in `ralph.yml`.
    #[serde(default)]
    pub gates: Vec<Gate>,
}

impl Task {
    fn default_timeout() -> u64 {
        600
    }
}

/// One agent under a name of its own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SuiteAgent {
    pub name: String,
    /// As in `ralph.yml`; without it, `command` makes it `custom`, and else it is the name.
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
    /// A built-in agent, or a driver, as the command line names it; `NAME@MODEL` says which model it is to use.
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

    /// What a run with this agent is to be configured with. `agents` are the names of the built-in ones.
    pub fn wishes(&self, agents: &[&str]) -> Partial {
        let of_its_own = self.command.as_ref().map(|_| "custom".to_owned());
        let backend = self.backend.clone().or(of_its_own);
        let backend = backend.unwrap_or_else(|| self.name.clone());
        // The arguments of a built-in agent come after those that ralph gives it.
        let is_builtin = agents.contains(&backend.as_str());
        let args = (!self.args.is_empty()).then(|| self.args.clone());
        let (own_args, adapter_args) = if is_builtin { (None, args) } else { (args, None) };
        let mut wishes = Partial::default();
        if let Some(args) = adapter_args {
            let adapter = PartialAdapter {
                args: Some(args),
                ..PartialAdapter::default()
            };
            wishes.adapters.insert(backend.clone(), adapter);
        }
        wishes.cli = PartialCli {
            backend: Some(backend),
            model: self.model.clone(),
            command: self.command.clone(),
            args: own_args,
            prompt_mode: self.prompt_mode,
            prompt_flag: self.prompt_flag.clone(),
            transcript: self.transcript.clone(),
            jq_filter: self.jq_filter.clone(),
            ..PartialCli::default()
        };
        wishes
    }
}

/// Reads a tasks file; a mistake in it is explained as one in `ralph.yml` is. `agents` and `transcripts` are the names
/// of what is built in.
pub fn load_suite(path: &Path, agents: &[&str], transcripts: &[&str]) -> Result<Suite, ConfigError> {
    let text = read_text(path)?;
    let document = Document::of_suite(path, &text);
    let mut suite: Suite = document.read().map_err(ConfigError::Diagnostic)?;
    let known = Known { agents, transcripts };
    check(&suite, known)
        .map_err(|complaint| ConfigError::Diagnostic(Box::new(document.mistake(complaint))))?;
    suite.anchor_paths(path.parent().unwrap_or(Path::new(".")));
    Ok(suite)
}

impl Suite {
    /// What the file says is relative to it. A command without a slash is looked up in PATH.
    fn anchor_paths(&mut self, base: &Path) {
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

fn check(suite: &Suite, known: Known<'_>) -> Result<(), Problem> {
    for (key, given) in [("repeat", suite.repeat), ("jobs", suite.jobs)] {
        if given == Some(0) {
            return Err(Problem::about_value(key, "must be at least 1, but is `0`"));
        }
    }
    let whole = CellLimits {
        max_cost_usd: suite.max_cost_usd,
        ..CellLimits::default()
    };
    check_limits(whole, known).map_err(moved("event_loop.", ""))?;
    check_limits(suite.limits, known).map_err(moved("event_loop.", "limits."))?;
    if suite.tasks.is_empty() {
        let help = "a task has a `name`, a `prompt` and a `verify`".to_owned();
        return Err(Problem::about_name("tasks", "must hold at least one task").with_help(Some(help)));
    }
    check_names("tasks", suite.tasks.iter().map(|task| task.name.as_str()))?;
    for (index, task) in suite.tasks.iter().enumerate() {
        check_task(&format!("tasks[{index}]"), task, known)?;
    }
    check_names("agents", suite.agents.iter().map(|agent| agent.name.as_str()))?;
    for (index, agent) in suite.agents.iter().enumerate() {
        let here = format!("agents[{index}].");
        checks::check(&agent.wishes(known.agents), known).map_err(moved("cli.", &here))?;
    }
    Ok(())
}

fn check_limits(limits: CellLimits, known: Known<'_>) -> Result<(), Problem> {
    let wishes = Partial {
        event_loop: limits.wishes(),
        ..Partial::default()
    };
    checks::check(&wishes, known)
}

/// A complaint about what stands in another place here.
fn moved<'a>(from: &'a str, to: &'a str) -> impl FnOnce(Problem) -> Problem + 'a {
    move |mut complaint| {
        let rest = complaint.key.strip_prefix(from).unwrap_or(&complaint.key);
        complaint.key = format!("{to}{rest}");
        complaint
    }
}

/// Names become names of directories, and are typed on command lines.
fn check_names<'a>(list: &str, names: impl Iterator<Item = &'a str>) -> Result<(), Problem> {
    let mut seen = BTreeMap::new();
    for (index, name) in names.enumerate() {
        let key = format!("{list}[{index}].name");
        let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "._-".contains(sign);
        if name.is_empty() || name.starts_with(['.', '-']) || !name.chars().all(is_plain) {
            let problem = format!(
                "must be made of letters, digits, `.`, `_` and `-`, but is {}",
                quoted(name)
            );
            return Err(Problem::about_value(key, problem)
                .with_help(Some("a short word, such as `fix-the-parser`".to_owned())));
        }
        if let Some(first) = seen.insert(name.to_ascii_lowercase(), index) {
            let problem = format!(
                "must be unique, but {} is also the name of `{list}[{first}]`",
                quoted(name)
            );
            return Err(Problem::about_value(key, problem)
                .with_help(Some("give one of the two another name".to_owned())));
        }
    }
    Ok(())
}

fn check_task(key: &str, task: &Task, known: Known<'_>) -> Result<(), Problem> {
    let together = |one: &str, other: &str| {
        Problem::about_name(
            format!("{key}.{one}"),
            format!("cannot be given together with `{key}.{other}`"),
        )
        .with_help(Some("keep one of the two".to_owned()))
    };
    match (&task.prompt, &task.prompt_file) {
        (Some(_), Some(_)) => return Err(together("prompt_file", "prompt")),
        (None, None) => {
            return Err(Problem::about_name(key, "has no prompt").with_help(Some(
                "say what is to be done with `prompt`, or in a file with `prompt_file`".to_owned(),
            )));
        }
        (Some(_), None) | (None, Some(_)) => {}
    }
    if task.copy.is_some() && task.clone.is_some() {
        return Err(together("clone", "copy"));
    }
    if task.reference.is_some() && task.clone.is_none() {
        let key = format!("{key}.ref");
        return Err(Problem::about_name(key, "has no meaning without `clone`")
            .with_help(Some("name the repository with `clone`, or remove it".to_owned())));
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
    checks::check_range(&format!("{key}.timeout"), Some(task.timeout), checks::SOME_TIME)?;
    check_limits(task.limits, known).map_err(moved("event_loop.", &format!("{key}.limits.")))?;
    let gates = Partial {
        gates: Some(task.gates.clone()),
        ..Partial::default()
    };
    checks::check(&gates, known).map_err(moved("", &format!("{key}.")))
}
