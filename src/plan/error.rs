//! The errors of a plan, with hints.

use std::io;
use std::path::PathBuf;

use super::check::Problems;
use super::git::GitError;
use crate::store::StoreError;

#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("plan not found: {}", path.display())]
    NotFound { path: PathBuf },
    #[error("cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Invalid(#[from] Problems),
    #[error("cannot list the tasks of {name}: {why}")]
    Command { name: String, why: String },
    #[error("no plan has been run in this project")]
    NoPlan,
    #[error("the plan {plan} has not been run in this project")]
    NothingToResume { plan: String },
    #[error("no task named `{name}`")]
    UnknownTask { name: String, known: Vec<String> },
    #[error("the task {task} has no run yet")]
    NoRun { task: String },
    #[error("the task {task} is not running")]
    NotRunning { task: String },
    #[error("--jobs requires a git repository")]
    NoRepository,
    #[error("--jobs requires a repository with at least one commit")]
    NoCommit,
    #[error("the branch {branch} has work of an earlier plan that is not part of your branch")]
    Unmerged { branch: String },
    #[error("cannot create the directory for worktrees: {0}")]
    Worktrees(#[source] io::Error),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("cannot mark the tasks that are done: {why}")]
    Mark { why: String },
    #[error("cannot handle signals: {0}")]
    Signals(#[source] io::Error),
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
    #[error("cannot write output: {0}")]
    Output(#[source] io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl PlanError {
    /// Returns what the user can do.
    pub fn hints(&self) -> Vec<String> {
        let hints: &[&str] = match self {
            Self::NotFound { .. } => &["check the path; for the format, see docs/plans.md"],
            Self::Command { .. } => &["run the command yourself to see what it prints"],
            Self::NoPlan | Self::NothingToResume { .. } => &["to start one: ralph plan run PLAN.md"],
            Self::UnknownTask { .. } => &["to list the tasks: ralph plan status"],
            Self::NoRepository | Self::NoCommit => {
                &["without --jobs, the tasks run one after the other in this directory"]
            }
            Self::Unmerged { .. } => &[
                "to resume the plan: ralph plan run --continue PLAN.md",
                "to take its work: git merge BRANCH; to discard it: git branch -D BRANCH",
            ],
            Self::NoRun { .. }
            | Self::NotRunning { .. }
            | Self::Unreadable { .. }
            | Self::Invalid(_)
            | Self::Worktrees(_)
            | Self::Git(_)
            | Self::Mark { .. }
            | Self::Signals(_)
            | Self::Thread(_)
            | Self::Output(_)
            | Self::Store(_) => &[],
        };
        hints.iter().map(|hint| (*hint).to_owned()).collect()
    }
}
