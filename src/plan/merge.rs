//! Merges verified tasks: builds the merged tree without touching any checkout, runs the gates on it in a worktree of
//! ralph's own, and moves the integration branch only if they pass and the branch has not moved.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::children::{ChildOutcome, ChildProcesses};
use super::git::{GitError, MergedTree, Repository};
use super::source::{self, SourceFormat, set_marks};
use super::step::{Input, PlanEvent, Rejection};
use super::worktree::Worktrees;
use crate::agent;
use crate::agent::NESTED_SESSION;
use crate::event::GateResult;
use crate::policy::Gate;
use crate::process::Environment;
use crate::run::GateRun;

/// The name of the worktree in which merged trees are checked.
pub(super) const MERGE_WORKTREE: &str = "merge";

/// A task that is ready to be merged.
#[derive(Debug, Clone)]
pub(super) struct MergeTask {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) commit: String,
    pub(super) gates: Vec<Gate>,
}

/// The plan's file in the repository, which is marked in the merged tree.
#[derive(Debug, Clone)]
pub(super) struct TrackedPlan {
    /// Relative to the top of the repository.
    pub(super) path: String,
    pub(super) format: SourceFormat,
    /// The tasks that are done, without those that are being merged.
    pub(super) done: BTreeSet<String>,
}

/// How the work of a task becomes part of the branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MergeStyle {
    /// A merge commit, with the commits of the tasks as parents.
    Merge,
    /// One commit with one parent.
    Squash,
}

/// One merge.
pub(super) struct MergeJob {
    pub(super) repository: Repository,
    pub(super) branch: String,
    pub(super) tasks: Vec<MergeTask>,
    /// The gates of the project, with directories relative to the top of the repository.
    pub(super) gates: Vec<Gate>,
    pub(super) plan: Option<TrackedPlan>,
    pub(super) style: MergeStyle,
    pub(super) trailers: String,
    pub(super) port_base: u64,
}

impl MergeJob {
    /// Merges, and returns what happened. `record` is called before the branch moves.
    pub(super) fn run(
        &self,
        worktrees: &Worktrees,
        children: &ChildProcesses,
        record: impl FnOnce(PlanEvent) -> Result<(), String>,
    ) -> Input {
        let started = Instant::now();
        let result = self.merge(worktrees, children, record);
        let gates = started.elapsed();
        let tasks: Vec<String> = self.tasks.iter().map(|task| task.id.clone()).collect();
        match result {
            Ok(commit) => Input::Merged { tasks, commit, gates },
            Err(_) if children.are_stopping() => Input::MergeRejected {
                tasks,
                why: Rejection::Stopped,
                gates,
            },
            Err(why) => Input::MergeRejected { tasks, why, gates },
        }
    }

    fn merge(
        &self,
        worktrees: &Worktrees,
        children: &ChildProcesses,
        record: impl FnOnce(PlanEvent) -> Result<(), String>,
    ) -> Result<String, Rejection> {
        let base = self.repository.commit_of(&format!("refs/heads/{}", self.branch));
        let base =
            base.ok_or_else(|| failed(format!("the branch {} does not exist any more", self.branch)))?;
        let tree = self.merged_tree(&base)?;
        let tree = self.with_marks(tree)?;
        let mut parents = vec![base.clone()];
        if self.style == MergeStyle::Merge {
            parents.extend(self.tasks.iter().map(|task| task.commit.clone()));
        }
        let commit = self
            .repository
            .commit_tree(&tree, &parents, &self.message())
            .map_err(git_failed)?;
        let worktree = worktrees
            .prepare(MERGE_WORKTREE, None, &commit, children)
            .map_err(failed)?;
        self.repository
            .check_out(&worktree, &commit)
            .map_err(git_failed)?;
        self.run_gates(&worktree, children)?;
        let prepared = PlanEvent::MergePrepared {
            tasks: self.tasks.iter().map(|task| task.id.clone()).collect(),
            base: base.clone(),
            commit: commit.clone(),
        };
        record(prepared).map_err(failed)?;
        // Fails if the branch is not at `base` any more.
        match self.repository.move_branch(&self.branch, &commit, &base) {
            Ok(()) => Ok(commit),
            Err(_)
                if self
                    .repository
                    .commit_of(&format!("refs/heads/{}", self.branch))
                    .as_ref()
                    != Some(&base) =>
            {
                Err(Rejection::Moved)
            }
            Err(error) => Err(git_failed(error)),
        }
    }

    fn merged_tree(&self, base: &str) -> Result<String, Rejection> {
        let mut current = base.to_owned();
        let mut tree = String::new();
        for task in &self.tasks {
            match self
                .repository
                .merge_trees(&current, &task.commit)
                .map_err(git_failed)?
            {
                MergedTree::Tree(merged) => tree = merged,
                MergedTree::Conflict { files } => {
                    let task = task.id.clone();
                    return Err(Rejection::Conflict { task, files });
                }
            }
            let parents = [current, task.commit.clone()];
            current = self
                .repository
                .commit_tree(&tree, &parents, "merge")
                .map_err(git_failed)?;
        }
        Ok(tree)
    }

    /// Marks exactly the tasks that are done in the merged plan. Other edits of the plan are kept.
    fn with_marks(&self, tree: String) -> Result<String, Rejection> {
        let Some(plan) = &self.plan else { return Ok(tree) };
        let Some(text) = self.repository.file_in(&tree, &plan.path) else {
            return Ok(tree);
        };
        // A plan that an agent has made invalid keeps its text; the journal records what is done.
        let Ok(tasks) = source::read(&text, plan.format, &plan.path, &agent::names()) else {
            return Ok(tree);
        };
        let mut done = plan.done.clone();
        done.extend(self.tasks.iter().map(|task| task.id.clone()));
        let marked = set_marks(&text, &tasks, &done);
        match marked == text {
            true => Ok(tree),
            false => self
                .repository
                .replace_file(&tree, &plan.path, &marked)
                .map_err(git_failed),
        }
    }

    fn message(&self) -> String {
        let mut message = match self.tasks.as_slice() {
            [task] => format!("{}\n", task.title),
            several => {
                let titles = several.iter().map(|task| format!("- {}\n", task.title));
                format!("Merge {} tasks\n\n{}", several.len(), titles.collect::<String>())
            }
        };
        message.push('\n');
        for task in &self.tasks {
            message.push_str(&format!("Ralph-Task: {}\n", task.id));
        }
        message.push_str(&self.trailers);
        message
    }

    /// Runs the gates of the project, then those of the tasks. Equal commands run once.
    fn run_gates(&self, worktree: &Path, children: &ChildProcesses) -> Result<(), Rejection> {
        let mut seen = BTreeSet::new();
        let all = self
            .gates
            .iter()
            .chain(self.tasks.iter().flat_map(|task| &task.gates));
        // Each task was reviewed in its own run.
        let commands = all.filter(|gate| !gate.is_review());
        for gate in commands.filter(|gate| seen.insert((gate.run.clone(), gate.cwd.clone()))) {
            self.run_gate(gate, worktree, children)?;
        }
        Ok(())
    }

    fn run_gate(&self, gate: &Gate, worktree: &Path, children: &ChildProcesses) -> Result<(), Rejection> {
        let cwd = gate
            .cwd
            .as_ref()
            .map_or_else(|| worktree.to_owned(), |cwd| worktree.join(cwd));
        let gate_run = GateRun::new(
            Gate {
                cwd: Some(cwd),
                ..gate.clone()
            },
            worktree,
        );
        let environment = Environment {
            remove: NESTED_SESSION.iter().map(Into::into).collect(),
            set: vec![("RALPH_PORT_BASE".into(), self.port_base.to_string().into())],
        };
        let (outcome, output) = children.run_captured(&gate_run.spec(environment), gate.timeout.duration());
        let end = match outcome {
            ChildOutcome::Ended(end) => end,
            ChildOutcome::TimedOut => {
                return Err(gate_failed(
                    gate,
                    format!("timed out after {}\n{output}", gate.timeout),
                ));
            }
            ChildOutcome::Stopped => return Err(Rejection::Stopped),
            ChildOutcome::CouldNotStart(why) => {
                return Err(failed(format!("cannot start gate {}: {why}", gate.name)));
            }
        };
        let ended = gate_run.ended(Some(end), output);
        let tests = ended.tests();
        match ended.result(gate, tests.as_ref()) {
            GateResult::Passed => Ok(()),
            _ => Err(gate_failed(gate, format!("{end}\n{}", ended.output))),
        }
    }
}

/// The output of a hidden gate does not become part of a prompt.
fn gate_failed(gate: &Gate, output: String) -> Rejection {
    Rejection::GateFailed {
        gate: gate.name.clone(),
        output: if gate.hidden { String::new() } else { output },
    }
}

fn failed(reason: String) -> Rejection {
    Rejection::Failed { reason }
}

fn git_failed(error: GitError) -> Rejection {
    failed(error.to_string())
}

/// The gate's directory relative to the top of the repository, so that it can be used in a worktree.
pub(super) fn relative_gate(gate: &Gate, root: &Path, default: &Path) -> Gate {
    let cwd = gate.cwd.as_deref().unwrap_or(default);
    let relative = root.join(cwd).strip_prefix(root).map(PathBuf::from).ok();
    Gate {
        cwd: relative.or_else(|| gate.cwd.clone()),
        ..gate.clone()
    }
}
