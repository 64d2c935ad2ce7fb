//! The plan of a bench: tasks and agents, resolved before the first cell starts and stored with the bench, so that
//! `--continue` does not depend on the tasks file.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::agent::{self, Probe};
use crate::config::{
    self, CellLimits, FileCommands, LoadRequest, PartialAdapter, PartialSettings, Settings, Suite,
    SuiteAgent, SuiteTask, to_yaml, user_directory,
};
use crate::files::{self, ReadRule};
use crate::policy::Seconds;
use crate::transcript;

use super::error::BenchError;
use super::results::CellId;

pub(super) const VERSION: u32 = 1;

/// The options of a bench that override its tasks file.
#[derive(Debug, Clone, Default)]
pub struct BenchOptions {
    /// All agents of the tasks file if empty.
    pub agents: Vec<String>,
    /// All tasks if empty.
    pub only: Vec<String>,
    pub repeat: Option<u64>,
    pub jobs: Option<u64>,
    pub max_cost_usd: Option<f64>,
    pub workspaces: Option<Workspaces>,
}

/// Default limits of a cell.
const DEFAULT_LIMITS: CellLimits = CellLimits {
    max_iterations: Some(10),
    max_runtime_seconds: Some(Seconds(1800)),
    max_cost_usd: None,
    max_tokens: None,
};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BenchPlan {
    pub(super) version: u32,
    pub(super) ralph: String,
    pub(super) began: Timestamp,
    /// The absolute path.
    pub(super) tasks_file: PathBuf,
    pub(super) repeat: u64,
    pub(super) jobs: u64,
    #[serde(default)]
    pub(super) max_cost_usd: Option<f64>,
    pub(super) workspaces: Workspaces,
    /// With prompts and limits resolved.
    pub(super) tasks: Vec<SuiteTask>,
    pub(super) agents: Vec<PlannedAgent>,
}

/// Whether workspaces are kept after verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Workspaces {
    Keep,
    Discard,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PlannedAgent {
    pub(super) name: String,
    /// The name of the resolved agent.
    pub(super) agent: String,
    #[serde(default)]
    pub(super) version: Option<String>,
    /// The `ralph.yml` of its cells, without the task's settings.
    pub(super) config: String,
}

impl BenchPlan {
    pub(super) fn new(
        options: &BenchOptions,
        file: &Path,
        probe: &Arc<dyn Probe>,
    ) -> Result<Self, BenchError> {
        let suite = read_suite(file)?;
        let tasks = selected_tasks(&suite, &options.only)?;
        let agents = selected_agents(&suite, &options.agents)?;
        let user_settings = user_settings()?;
        let plan = |agent: &SuiteAgent| plan_agent(agent, &user_settings, probe);
        Ok(Self {
            version: VERSION,
            ralph: env!("CARGO_PKG_VERSION").to_owned(),
            began: Timestamp::now(),
            tasks_file: file.to_owned(),
            repeat: options.repeat.or(suite.repeat).unwrap_or(1),
            jobs: options.jobs.or(suite.jobs).unwrap_or(1),
            max_cost_usd: options.max_cost_usd.or(suite.max_cost_usd),
            workspaces: options.workspaces.unwrap_or(Workspaces::Keep),
            tasks: tasks
                .into_iter()
                .map(|task| resolve_task(task, suite.limits))
                .collect::<Result<_, _>>()?,
            agents: agents.iter().map(plan).collect::<Result<_, _>>()?,
        })
    }

    /// Overrides the plan with the options given to `--continue`.
    pub(super) fn override_with(&mut self, options: &BenchOptions) {
        self.repeat = options.repeat.unwrap_or(self.repeat);
        self.jobs = options.jobs.unwrap_or(self.jobs);
        self.max_cost_usd = options.max_cost_usd.or(self.max_cost_usd);
        self.workspaces = options.workspaces.unwrap_or(self.workspaces);
    }

    /// Returns all cells, one repeat after the other, so that an interrupted bench can still be compared.
    pub(super) fn cells(&self) -> Vec<CellId> {
        let repeats = (1..=self.repeat).flat_map(|repeat| self.tasks.iter().map(move |task| (repeat, task)));
        let cells = repeats.flat_map(|(repeat, task)| {
            self.agents.iter().map(move |agent| CellId {
                task: task.name.clone(),
                agent: agent.name.clone(),
                repeat,
            })
        });
        cells.collect()
    }

    pub(super) fn task(&self, name: &str) -> Option<&SuiteTask> {
        self.tasks.iter().find(|task| task.name == name)
    }

    pub(super) fn agent(&self, name: &str) -> Option<&PlannedAgent> {
        self.agents.iter().find(|agent| agent.name == name)
    }

    /// The directory of the tasks file.
    pub(super) fn base(&self) -> &Path {
        self.tasks_file.parent().unwrap_or(Path::new("/"))
    }
}

/// Reads a tasks file.
fn read_suite(file: &Path) -> Result<Suite, BenchError> {
    let transcripts: Vec<_> = transcript::names().collect();
    Ok(config::load_suite(file, &agent::names(), &transcripts)?)
}

/// Returns the absolute path of an existing tasks file.
pub fn find_tasks_file(path: &Path, cwd: &Path) -> Result<PathBuf, BenchError> {
    let path = cwd.join(path);
    match fs::canonicalize(&path) {
        Ok(found) if found.is_file() => Ok(found),
        _ => Err(BenchError::NoTasksFile { path }),
    }
}

/// Returns all commands of a tasks file, including those of tasks that are not selected.
pub fn commands_to_run(file: &Path) -> Result<Vec<FileCommands>, BenchError> {
    let suite = read_suite(file)?;
    let mut commands = Vec::new();
    let mut programs = Vec::new();
    for agent in &suite.agents {
        if let Some(command) = &agent.command {
            let words = format!("{command} {}", agent.args.join(" "));
            commands.push(format!("agent {}: {}", agent.name, words.trim_end()));
            programs.push(PathBuf::from(command));
        } else if !agent.args.is_empty() {
            commands.push(format!(
                "options of agent {}: {}",
                agent.name,
                agent.args.join(" ")
            ));
        }
    }
    for task in &suite.tasks {
        let mut add = |what: &str, command: &str| {
            commands.push(format!("{what} of {}: {command}", task.name));
        };
        if let Some(setup) = &task.setup {
            add("setup", setup);
        }
        add("verify", &task.verify);
        task.gates.iter().for_each(|gate| add("gate", &gate.run));
    }
    let tasks_file = FileCommands {
        file: file.to_owned(),
        text: None,
        commands,
    };
    // A bare name is searched for in PATH, which the user controls; a path may point into a repository.
    let programs = programs.into_iter().filter(|path| path.is_file());
    let programs = programs.map(|file| FileCommands {
        file,
        text: None,
        commands: vec!["the program itself, as an agent".to_owned()],
    });
    Ok(std::iter::once(tasks_file).chain(programs).collect())
}

fn selected_tasks(suite: &Suite, only: &[String]) -> Result<Vec<SuiteTask>, BenchError> {
    let names = || suite.tasks.iter().map(|task| task.name.clone()).collect();
    for name in only {
        if !suite.tasks.iter().any(|task| task.name == *name) {
            return Err(BenchError::UnknownTask {
                name: name.clone(),
                known: names(),
            });
        }
    }
    let is_selected = |task: &&SuiteTask| only.is_empty() || only.contains(&task.name);
    Ok(suite.tasks.iter().filter(is_selected).cloned().collect())
}

fn selected_agents(suite: &Suite, names: &[String]) -> Result<Vec<SuiteAgent>, BenchError> {
    if names.is_empty() && !suite.agents.is_empty() {
        return Ok(suite.agents.clone());
    }
    if names.is_empty() {
        return Ok(vec![SuiteAgent::named("auto")]);
    }
    let mut selected: Vec<SuiteAgent> = Vec::new();
    for name in names {
        if selected.iter().any(|agent| agent.name == *name) {
            return Err(BenchError::DuplicateAgent { name: name.clone() });
        }
        let from_file = suite.agents.iter().find(|agent| agent.name == *name);
        selected.push(from_file.cloned().unwrap_or_else(|| SuiteAgent::named(name)));
    }
    Ok(selected)
}

/// Reads the prompt and resolves the limits, so that the tasks file is needed only for directories to copy.
fn resolve_task(mut task: SuiteTask, common: CellLimits) -> Result<SuiteTask, BenchError> {
    if let Some(path) = task.prompt_file.take() {
        let name = || task.name.clone();
        let text = files::read_text(&path, ReadRule::PROMPT).map_err(|error| BenchError::PromptFile {
            task: name(),
            path: path.clone(),
            source: error.into_io(),
        })?;
        if text.trim().is_empty() {
            return Err(BenchError::EmptyPrompt { task: name(), path });
        }
        task.prompt = Some(text);
    }
    if let Some(path) = task.copy.as_ref().filter(|path| !path.is_dir()) {
        let path = path.clone();
        return Err(BenchError::CopySourceMissing {
            task: task.name,
            path,
        });
    }
    task.limits = task.limits.or(common).or(DEFAULT_LIMITS);
    Ok(task)
}

/// Returns the user's agent and price settings; cells use no other user settings.
fn user_settings() -> Result<PartialSettings, BenchError> {
    let Some(file) = user_directory().map(|directory| directory.join("ralph.yml")) else {
        return Ok(PartialSettings::default());
    };
    if !file.is_file() {
        return Ok(PartialSettings::default());
    }
    let settings = settings_of(&file)?;
    let adapters = settings.adapters.into_iter().map(|(name, adapter)| {
        let adapter = PartialAdapter {
            enabled: Some(adapter.enabled),
            timeout: adapter.timeout,
            idle_timeout: adapter.idle_timeout,
            model: adapter.model,
            args: Some(adapter.args),
            env: Some(adapter.env),
            sandbox: Some(adapter.sandbox),
        };
        (name, adapter)
    });
    Ok(PartialSettings {
        adapters: adapters.collect(),
        pricing: settings.pricing,
        ..PartialSettings::default()
    })
}

fn plan_agent(
    agent: &SuiteAgent,
    user_settings: &PartialSettings,
    probe: &Arc<dyn Probe>,
) -> Result<PlannedAgent, BenchError> {
    let mut overrides = agent.to_settings(&agent::names());
    for (name, adapter) in &user_settings.adapters {
        let merged = overrides.adapters.entry(name.clone()).or_default();
        let args = merged.args.take();
        *merged = adapter.clone();
        merged.args = args.or(merged.args.take());
    }
    overrides.pricing.clone_from(&user_settings.pricing);
    let config = to_yaml(&overrides);
    // Resolve the agent now, so that errors are reported before any cost arises.
    let settings = settings_in(&config)?;
    let selected = agent::resolve(&settings, probe)?;
    Ok(PlannedAgent {
        name: agent.name.clone(),
        agent: selected.name,
        version: selected.version,
        config,
    })
}

fn settings_in(config: &str) -> Result<Settings, BenchError> {
    let unwritable = |source| BenchError::Unwritable {
        path: std::env::temp_dir(),
        source,
    };
    let file = tempfile::NamedTempFile::new().map_err(unwritable)?;
    fs::write(file.path(), config).map_err(unwritable)?;
    settings_of(file.path())
}

/// Loads the settings of one file, without any other layer.
fn settings_of(file: &Path) -> Result<Settings, BenchError> {
    let (agents, transcripts) = (agent::names(), transcript::names().collect::<Vec<_>>());
    let loaded = config::load(&LoadRequest::of_file(file, &agents, &transcripts))?;
    Ok(loaded.settings)
}
