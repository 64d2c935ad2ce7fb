//! How a plan prepares the worktrees of its tasks and commits their work.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::section::section;

section! {
    /// Worktrees of the tasks of a plan.
    Worktree, PartialWorktree, "worktree" {
        /// A shell command that prepares each new worktree, for example `npm ci`.
        #[check(length(min = 1))]
        setup: String,
        /// What is committed on a task's branch: only the `agent`'s own commits, these and the rest as a commit by
        /// `ralph`, or everything as one commit (`squash`).
        commit: CommitPolicy = CommitPolicy::default(),
        /// A line `Co-authored-by: …` for the commits that ralph creates: a name and an address in angle brackets.
        #[check(length(min = 1))]
        co_author: String,
    }
}

/// Who commits the work of a task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommitPolicy {
    Agent,
    #[default]
    Ralph,
    Squash,
}
