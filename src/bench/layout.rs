//! The directory of a cell: prepares and removes its workspace, and calculates the cost of its runs.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::config::{PartialEventLoop, PartialSettings, to_yaml};
use crate::event::Usd;
use crate::plan::ChildProcesses;
use crate::policy::Gate;
use crate::process::{ProcessSpec, Stdin, Transport};
use crate::run::partial_totals;
use crate::store::{RunIndex, RunState, StateDirectory, copy_tree};

use super::cell::{CellError, CellJob, CostLimit, unwritable};

impl CellJob {
    pub(super) fn workspace(&self) -> PathBuf {
        self.path.join("workspace")
    }

    pub(super) fn prepare(&self, children: &ChildProcesses) -> Result<(), CellError> {
        let workspace = self.workspace();
        fs::create_dir_all(&workspace).map_err(unwritable(&workspace))?;
        if let Some(from) = &self.task.copy {
            copy_tree(from, &workspace)?;
        }
        if let Some(from) = &self.task.clone {
            self.clone_from(from, children)?;
        }
        if let Some(setup) = &self.task.setup {
            let result = self.command("setup", setup, children)?;
            result.map_err(|why| CellError::Broken(format!("setup failed: {why}")))?;
        }
        let prompt = self.task.prompt.as_deref().unwrap_or_default();
        for (name, text) in [("prompt.md", prompt), ("ralph.yml", &self.ralph_yml())] {
            let path = self.path.join(name);
            fs::write(&path, text).map_err(unwritable(&path))?;
        }
        Ok(())
    }

    /// Clones a repository and removes its remote, so that the agent cannot push.
    fn clone_from(&self, from: &str, children: &ChildProcesses) -> Result<(), CellError> {
        let mut steps = vec![vec!["clone", "--quiet", "--", from, "."]];
        if let Some(reference) = &self.task.reference {
            steps.push(vec!["checkout", "--quiet", reference]);
        }
        steps.push(vec!["remote", "remove", "origin"]);
        for arguments in steps {
            let spec = ProcessSpec {
                program: PathBuf::from("git"),
                args: arguments.iter().map(OsString::from).collect(),
                environment: self.environment(),
                cwd: self.workspace(),
                stdin: Stdin::Null,
                stdout: Transport::Pipe,
                confinement: None,
            };
            let what = format!("git {}", arguments[0]);
            let result = self.run_logged("clone.log", &spec, children)?;
            result.map_err(|why| CellError::Broken(format!("{what} failed: {why}")))?;
        }
        Ok(())
    }

    /// Returns the agent's configuration with the task's settings added.
    fn ralph_yml(&self) -> String {
        let workspace = self.workspace();
        let gates = self.task.gates.iter().map(|gate| Gate {
            cwd: gate.cwd.as_ref().map(|cwd| workspace.join(cwd)),
            ..gate.clone()
        });
        let max_cost_usd = match self.cost_limit {
            CostLimit::Task(limit) => limit,
            CostLimit::Remainder(rest) => Some(rest),
        };
        let task_settings = PartialSettings {
            event_loop: PartialEventLoop {
                prompt_file: Some(self.path.join("prompt.md")),
                max_cost_usd,
                ..self.task.limits.to_event_loop()
            },
            gates: (!self.task.gates.is_empty()).then(|| gates.collect()),
            ..PartialSettings::default()
        };
        format!("{}{}", self.config, to_yaml(&task_settings))
    }

    /// Removes the workspace. Its runs are stored beside it.
    pub(super) fn discard(&self) -> io::Result<()> {
        match fs::remove_dir_all(self.workspace()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// The state directory of a cell's runs.
pub(super) fn state_of_cell(directory: &Path) -> StateDirectory {
    StateDirectory::at(directory.join("state"))
}

/// Returns the state of a cell's newest run.
pub(super) fn newest_state(directory: &Path) -> Option<RunState> {
    let mut projects = state_of_cell(directory).projects();
    let index = RunIndex::load(&projects.pop()?);
    let newest = index.newest_first().next()?;
    Some(index.entry(newest).state)
}

/// Returns the cost of all runs in a cell's directory, including unfinished ones.
pub(super) fn cost_in(directory: &Path) -> Option<f64> {
    let projects = state_of_cell(directory).projects().into_iter();
    let costs = projects.flat_map(|project| {
        let index = RunIndex::load(&project);
        let journals: Vec<PathBuf> = index
            .newest_first()
            .map(|id| index.directory(id).join("events.jsonl"))
            .collect();
        journals
            .into_iter()
            .filter_map(|journal| partial_totals(&journal)?.usage.cost_usd)
    });
    costs.reduce(Usd::saturating_add).map(f64::from)
}
