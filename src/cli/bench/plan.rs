//! What a bench is to do, decided before anything starts and kept with it: whoever goes on with it later does exactly
//! what it was begun with, whatever has become of the tasks file.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::agent;
use crate::config::{
    self, CellLimits, FileCommands, Partial, PartialAdapter, Settings, Suite, SuiteAgent, Task, as_yaml,
};
use crate::transcript;

use super::error::BenchError;
use super::results::CellId;
use crate::cli::args::BenchRunArguments;
use crate::cli::context::{Context, settings_of, user_directory};
use crate::cli::error::CliError;

pub(super) const VERSION: u32 = 1;

/// What a cell may use where nothing is said.
const USUAL: CellLimits = CellLimits {
    max_iterations: Some(10),
    max_runtime_seconds: Some(1800),
    max_cost_usd: None,
    max_tokens: None,
};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) version: u32,
    pub(super) ralph: String,
    pub(super) began: Timestamp,
    /// Absolute.
    pub(super) tasks_file: PathBuf,
    pub(super) repeat: u64,
    pub(super) jobs: u64,
    #[serde(default)]
    pub(super) max_cost_usd: Option<f64>,
    pub(super) workspaces: Workspaces,
    /// With their prompts read, and all their limits.
    pub(super) tasks: Vec<Task>,
    pub(super) agents: Vec<PlannedAgent>,
}

/// What becomes of a workspace after its verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Workspaces {
    Keep,
    Discard,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PlannedAgent {
    pub(super) name: String,
    /// What was found under it.
    pub(super) agent: String,
    #[serde(default)]
    pub(super) version: Option<String>,
    /// The `ralph.yml` of its cells, but for what is the task's.
    pub(super) config: String,
}

impl Plan {
    pub(super) fn make(
        arguments: &BenchRunArguments,
        file: &Path,
        context: &Context,
    ) -> Result<Self, CliError> {
        let suite = read(file)?;
        let tasks = chosen_tasks(&suite, &arguments.only)?;
        let agents = chosen_agents(&suite, &arguments.agent)?;
        let users = users_settings()?;
        let plan = |agent: &SuiteAgent| planned(agent, &users, context);
        Ok(Self {
            version: VERSION,
            ralph: env!("CARGO_PKG_VERSION").to_owned(),
            began: Timestamp::now(),
            tasks_file: file.to_owned(),
            repeat: arguments.repeat.or(suite.repeat).unwrap_or(1),
            jobs: arguments.jobs.or(suite.jobs).unwrap_or(1),
            max_cost_usd: arguments.max_cost.or(suite.max_cost_usd),
            workspaces: workspaces(arguments),
            tasks: tasks
                .into_iter()
                .map(|task| ready(task, suite.limits))
                .collect::<Result<_, _>>()?,
            agents: agents.iter().map(plan).collect::<Result<_, _>>()?,
        })
    }

    /// What was said when going on with it replaces what was said before.
    pub(super) fn amend(&mut self, arguments: &BenchRunArguments) {
        self.repeat = arguments.repeat.unwrap_or(self.repeat);
        self.jobs = arguments.jobs.unwrap_or(self.jobs);
        self.max_cost_usd = arguments.max_cost.or(self.max_cost_usd);
        if arguments.discard {
            self.workspaces = Workspaces::Discard;
        }
    }

    /// Everything once, then everything a second time: what is cut off in the middle can still be compared.
    pub(super) fn cells(&self) -> Vec<CellId> {
        let tries = (1..=self.repeat).flat_map(|repeat| self.tasks.iter().map(move |task| (repeat, task)));
        let cells = tries.flat_map(|(repeat, task)| {
            self.agents.iter().map(move |agent| CellId {
                task: task.name.clone(),
                agent: agent.name.clone(),
                repeat,
            })
        });
        cells.collect()
    }

    pub(super) fn task(&self, name: &str) -> Option<&Task> {
        self.tasks.iter().find(|task| task.name == name)
    }

    pub(super) fn agent(&self, name: &str) -> Option<&PlannedAgent> {
        self.agents.iter().find(|agent| agent.name == name)
    }

    /// The directory that the tasks file is in.
    pub(super) fn base(&self) -> &Path {
        self.tasks_file.parent().unwrap_or(Path::new("/"))
    }
}

fn workspaces(arguments: &BenchRunArguments) -> Workspaces {
    if arguments.discard {
        Workspaces::Discard
    } else {
        Workspaces::Keep
    }
}

/// Reads a tasks file.
fn read(file: &Path) -> Result<Suite, CliError> {
    let transcripts: Vec<_> = transcript::names().collect();
    Ok(config::load_suite(file, &agent::names(), &transcripts)?)
}

/// The absolute path of a tasks file that exists.
pub(super) fn found(named: &Path, cwd: &Path) -> Result<PathBuf, CliError> {
    let path = cwd.join(named);
    match fs::canonicalize(&path) {
        Ok(found) if found.is_file() => Ok(found),
        _ => Err(BenchError::NoTasksFile { path }.into()),
    }
}

/// All that a tasks file would have run, whichever part of it is wanted.
pub(super) fn executes(file: &Path) -> Result<Vec<FileCommands>, CliError> {
    let suite = read(file)?;
    let mut commands = Vec::new();
    let mut programs = Vec::new();
    for agent in &suite.agents {
        if let Some(command) = &agent.command {
            let words = format!("{command} {}", agent.args.join(" "));
            commands.push(format!("agent {}: {}", agent.name, words.trim_end()));
            programs.push(PathBuf::from(command));
        } else if !agent.args.is_empty() {
            commands.push(format!(
                "arguments of agent {}: {}",
                agent.name,
                agent.args.join(" ")
            ));
        }
    }
    for task in &suite.tasks {
        let mut say = |what: &str, command: &str| {
            commands.push(format!("{what} of {}: {command}", task.name));
        };
        if let Some(setup) = &task.setup {
            say("setup", setup);
        }
        say("verify", &task.verify);
        task.gates.iter().for_each(|gate| say("gate", &gate.run));
    }
    let itself = FileCommands {
        file: file.to_owned(),
        commands,
    };
    // A bare name is looked up in PATH, which is the user's; a path may lead into a repository.
    let programs = programs.into_iter().filter(|path| path.is_file());
    let programs = programs.map(|file| FileCommands {
        file,
        commands: vec!["itself, as an agent".to_owned()],
    });
    Ok(std::iter::once(itself).chain(programs).collect())
}

fn chosen_tasks(suite: &Suite, only: &[String]) -> Result<Vec<Task>, CliError> {
    let names = || suite.tasks.iter().map(|task| task.name.clone()).collect();
    for name in only {
        if !suite.tasks.iter().any(|task| task.name == *name) {
            return Err(CliError::UnknownName {
                what: "task",
                name: name.clone(),
                known: names(),
            });
        }
    }
    let wanted = |task: &&Task| only.is_empty() || only.contains(&task.name);
    Ok(suite.tasks.iter().filter(wanted).cloned().collect())
}

fn chosen_agents(suite: &Suite, named: &[String]) -> Result<Vec<SuiteAgent>, CliError> {
    if named.is_empty() && !suite.agents.is_empty() {
        return Ok(suite.agents.clone());
    }
    if named.is_empty() {
        return Ok(vec![SuiteAgent::named("auto")]);
    }
    let mut chosen: Vec<SuiteAgent> = Vec::new();
    for name in named {
        if chosen.iter().any(|agent| agent.name == *name) {
            return Err(BenchError::AgentTwice { name: name.clone() }.into());
        }
        let of_the_file = suite.agents.iter().find(|agent| agent.name == *name);
        chosen.push(of_the_file.cloned().unwrap_or_else(|| SuiteAgent::named(name)));
    }
    Ok(chosen)
}

/// A task that needs nothing of the tasks file any more but the directories that it copies.
fn ready(mut task: Task, common: CellLimits) -> Result<Task, BenchError> {
    if let Some(path) = task.prompt_file.take() {
        let name = || task.name.clone();
        let text = fs::read_to_string(&path).map_err(|source| BenchError::PromptFile {
            task: name(),
            path: path.clone(),
            source,
        })?;
        if text.trim().is_empty() {
            return Err(BenchError::EmptyPrompt { task: name(), path });
        }
        task.prompt = Some(text);
    }
    if let Some(path) = task.copy.as_ref().filter(|path| !path.is_dir()) {
        let path = path.clone();
        return Err(BenchError::NothingToCopy {
            task: task.name,
            path,
        });
    }
    task.limits = task.limits.or(common).or(USUAL);
    Ok(task)
}

/// Of the user's own configuration, cells get what is about agents and prices, and nothing else.
fn users_settings() -> Result<Partial, CliError> {
    let Some(file) = user_directory().map(|directory| directory.join("ralph.yml")) else {
        return Ok(Partial::default());
    };
    if !file.is_file() {
        return Ok(Partial::default());
    }
    let settings = settings_of(&file)?;
    let adapters = settings.adapters.into_iter().map(|(name, adapter)| {
        let adapter = PartialAdapter {
            enabled: Some(adapter.enabled),
            timeout: adapter.timeout,
            idle_timeout: adapter.idle_timeout,
            model: adapter.model,
            args: Some(adapter.args),
        };
        (name, adapter)
    });
    Ok(Partial {
        adapters: adapters.collect(),
        pricing: settings.pricing,
        ..Partial::default()
    })
}

fn planned(agent: &SuiteAgent, users: &Partial, context: &Context) -> Result<PlannedAgent, CliError> {
    let mut overrides = agent.wishes(&agent::names());
    for (name, adapter) in &users.adapters {
        let ours = overrides.adapters.entry(name.clone()).or_default();
        let args = ours.args.take();
        *ours = adapter.clone();
        ours.args = args.or(ours.args.take());
    }
    overrides.pricing.clone_from(&users.pricing);
    let config = as_yaml(&overrides);
    // What the cells will find is looked for now, so that a mistake shows before anything is spent.
    let settings = settings_in(&config)?;
    let selected = agent::resolve(&settings, &context.probe())?;
    Ok(PlannedAgent {
        name: agent.name.clone(),
        agent: selected.name,
        version: selected.version,
        config,
    })
}

fn settings_in(config: &str) -> Result<Settings, CliError> {
    let unwritable = |source| CliError::Unwritable {
        path: std::env::temp_dir(),
        source,
    };
    let file = tempfile::NamedTempFile::new().map_err(unwritable)?;
    fs::write(file.path(), config).map_err(unwritable)?;
    settings_of(file.path())
}
