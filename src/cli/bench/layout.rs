//! The place of a cell: how its workspace is made ready, what becomes of it, and what was spent in it.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::config::{Gate, Partial, PartialEventLoop, as_yaml};
use crate::process::{ProcessSpec, Stdin, Transport};
use crate::store::{DIRECTORY, RunIndex, copy_tree};

use super::cell::{Allowance, Cut, Job, unwritable};
use super::children::Children;
use crate::cli::runs::partial_figures;

impl Job {
    pub(super) fn workspace(&self) -> PathBuf {
        self.place.join("workspace")
    }

    pub(super) fn prepare(&self, children: &Children) -> Result<(), Cut> {
        let workspace = self.workspace();
        fs::create_dir_all(&workspace).map_err(unwritable(&workspace))?;
        if let Some(from) = &self.task.copy {
            copy_tree(from, &workspace)?;
        }
        if let Some(from) = &self.task.clone {
            self.clone_from(from, children)?;
        }
        if let Some(setup) = &self.task.setup {
            let ran = self.command("setup", setup, children)?;
            ran.map_err(|why| Cut::Broken(format!("setup failed: {why}")))?;
        }
        let prompt = self.task.prompt.as_deref().unwrap_or_default();
        for (name, text) in [("prompt.md", prompt), ("ralph.yml", &self.ralph_yml())] {
            let path = self.place.join(name);
            fs::write(&path, text).map_err(unwritable(&path))?;
        }
        Ok(())
    }

    /// The clone has no remote: what an agent does in it stays in it.
    fn clone_from(&self, from: &str, children: &Children) -> Result<(), Cut> {
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
            };
            let what = format!("git {}", arguments[0]);
            let ran = self.captured("clone.log", &spec, children)?;
            ran.map_err(|why| Cut::Broken(format!("{what} failed: {why}")))?;
        }
        Ok(())
    }

    /// What the agent says, with the task's part added.
    fn ralph_yml(&self) -> String {
        let workspace = self.workspace();
        let gates = self.task.gates.iter().map(|gate| Gate {
            cwd: gate.cwd.as_ref().map(|cwd| workspace.join(cwd)),
            ..gate.clone()
        });
        let max_cost_usd = match self.allowance {
            Allowance::Tasks(own) => own,
            Allowance::Rest(rest) => Some(rest),
        };
        let tasks_part = Partial {
            event_loop: PartialEventLoop {
                prompt_file: Some(self.place.join("prompt.md")),
                max_cost_usd,
                ..self.task.limits.wishes()
            },
            gates: (!self.task.gates.is_empty()).then(|| gates.collect()),
            ..Partial::default()
        };
        format!("{}{}", self.config, as_yaml(&tasks_part))
    }

    /// Of the workspace only the runs stay, where `ralph show` finds them.
    pub(super) fn discard(&self) -> io::Result<()> {
        let workspace = self.workspace();
        let (runs, kept) = (workspace.join(DIRECTORY), self.place.join(DIRECTORY));
        if runs.exists() {
            fs::rename(runs, kept)?;
        }
        match fs::remove_dir_all(&workspace) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// What the runs in a cell's directory have cost, whether they ended or not.
pub(super) fn spent_in(place: &Path) -> Option<f64> {
    let costs = [place.join("workspace"), place.to_owned()]
        .into_iter()
        .flat_map(|workspace| {
            let index = RunIndex::of(&workspace);
            let journals: Vec<PathBuf> = index
                .newest_first()
                .map(|id| index.directory(id).join("events.jsonl"))
                .collect();
            journals
                .into_iter()
                .filter_map(|journal| partial_figures(&journal)?.usage.cost_usd)
        });
    costs.reduce(|one, other| one + other)
}
