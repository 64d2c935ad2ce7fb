//! The integration branch of a plan and the branches of its tasks.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::PlanError;
use super::git::Repository;
use super::job::CommittedWork;
use super::merge::{MERGE_WORKTREE, MergeStyle, TrackedPlan};
use super::source::{Source, SourceFormat};
use super::worktree::Worktrees;
use crate::policy::Gate;

/// Everything that connects the tasks of a plan in git.
pub(crate) struct Integrated {
    pub(super) repository: Repository,
    pub(super) worktrees: Arc<Worktrees>,
    pub(super) branch: String,
    /// The commit from which the branch started.
    pub(super) base: String,
    /// The directory of the agent, relative to the top of the repository.
    pub(super) below: PathBuf,
    /// The gates of the project, with directories relative to the top of the repository.
    pub(super) gates: Vec<Gate>,
    pub(super) style: MergeStyle,
    /// The plan's file relative to the top of the repository, if it is tracked.
    pub(super) tracked: Option<(String, SourceFormat)>,
}

/// The integration branch of a plan.
pub(crate) fn branch_of(plan: &str) -> String {
    format!("ralph/{plan}")
}

/// The prefix of the branches of a plan's tasks. Git cannot have a branch `ralph/x` and a branch `ralph/x/y`.
pub(super) fn task_branches(plan: &str) -> String {
    format!("ralph/{plan}.tasks")
}

impl Integrated {
    /// The branch of an attempt.
    pub(super) fn task_branch(&self, task: &str, attempt: u64) -> String {
        let prefix = task_branches(self.branch.trim_start_matches("ralph/"));
        match attempt {
            1 => format!("{prefix}/{task}"),
            attempt => format!("{prefix}/{task}+{attempt}"),
        }
    }

    pub(super) fn tracks_plan(&self) -> bool {
        self.tracked.is_some()
    }

    pub(super) fn tracked_plan(&self, done: &BTreeSet<String>) -> Option<TrackedPlan> {
        let (path, format) = self.tracked.clone()?;
        let done = done.clone();
        Some(TrackedPlan { path, format, done })
    }

    /// Removes the worktrees of a merged task, and its branch if the integration branch contains it.
    pub(super) fn clean_up(&self, task: &str, attempts: u64, work: Option<&CommittedWork>) {
        for attempt in 1..=attempts {
            self.worktrees.remove(&format!("{task}-{attempt}"));
        }
        let Some(work) = work else { return };
        let integration = format!("refs/heads/{}", self.branch);
        if self.repository.is_ancestor(&work.commit, &integration) {
            // The branch stays if it cannot be removed; its commits are merged.
            let deleted = self.repository.delete_branch(&work.branch, &work.commit);
            crate::ok_or_log!(deleted, "cannot delete the branch of a task");
        }
    }

    /// Removes everything of an earlier execution whose result is part of the user's branch.
    pub(super) fn start_over(&self) -> Result<(), PlanError> {
        self.worktrees.remove_all();
        let prefix = task_branches(self.branch.trim_start_matches("ralph/"));
        for (branch, commit) in self.repository.branches(&prefix) {
            if self.repository.is_ancestor(&commit, "HEAD") {
                self.repository.delete_branch(&branch, &commit)?;
            } else {
                self.keep(&branch, &commit)?;
            }
        }
        let name = format!("refs/heads/{}", self.branch);
        let old = self.repository.commit_of(&name).unwrap_or_default();
        Ok(self.repository.move_branch(&self.branch, &self.base, &old)?)
    }

    /// Moves the branch of an earlier execution out of the way; its commits stay reachable.
    fn keep(&self, branch: &str, commit: &str) -> Result<(), PlanError> {
        let short = &commit[..commit.len().min(12)];
        let kept = branch.replacen(".tasks/", ".old/", 1);
        let kept = format!("{kept}-{short}");
        if self.repository.commit_of(&format!("refs/heads/{kept}")).is_none() {
            self.repository.move_branch(&kept, commit, "")?;
        }
        Ok(self.repository.delete_branch(branch, commit)?)
    }

    /// The worktree for the gates is kept warm until the plan is complete.
    pub(super) fn finish(&self) {
        self.worktrees.remove(MERGE_WORKTREE);
    }
}

/// The plan's file relative to the top of the repository, if git tracks it.
pub(super) fn tracked_file(source: &Source, repository: &Repository) -> Option<(String, SourceFormat)> {
    let Source::File(path) = source else { return None };
    let path = std::fs::canonicalize(path).ok()?;
    let root = std::fs::canonicalize(repository.root()).ok()?;
    let relative = path.strip_prefix(root).ok()?.to_str()?.to_owned();
    repository.file_in("HEAD", &relative)?;
    Some((relative, source.format()))
}

/// The directory relative to the top of the repository.
pub(super) fn below(directory: &Path, repository: &Repository) -> PathBuf {
    let directory = std::fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
    let root = std::fs::canonicalize(repository.root()).unwrap_or_else(|_| repository.root().to_owned());
    directory
        .strip_prefix(root)
        .map(PathBuf::from)
        .unwrap_or_default()
}
