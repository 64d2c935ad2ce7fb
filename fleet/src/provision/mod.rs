//! The workspace of a task on a worker: made from a git remote, saved there after each iteration, restored on another host.
//!
//! A checkpoint consists of four refs that one atomic push moves together: the task's branch, and under `refs/ralph/` the commit
//! that the agent made (`head`), all files of the workspace (`tree`) and the directory of the run (`state`). The push names the
//! expected value of each ref, so a worker that has lost its task cannot overwrite its successor's work.

mod checkpoint;
mod error;
mod git;
mod journal;
mod restore;
#[cfg(test)]
mod tests;

pub(crate) use checkpoint::save;
pub(crate) use error::ProvisionError;
pub(crate) use git::{Git, redacted};
pub(crate) use journal::JournalSummary;
pub(crate) use restore::{Provisioned, TaskSource, prepare};

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What the worker knows about its copy of a task. It is stored outside of the workspace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Copy {
    pub(crate) remote: String,
    /// `plan/task`; names the branch and the refs.
    pub(crate) name: String,
    pub(crate) branch: String,
    pub(crate) run_id: String,
    pub(crate) workspace: PathBuf,
    pub(crate) run_directory: PathBuf,
    pub(crate) worker: String,
    pub(crate) attempt: u32,
    /// Patterns of ignored files that belong to a checkpoint.
    pub(crate) ship: Vec<String>,
    /// The refs at the remote as this copy knows them; an empty value means that the ref does not exist.
    pub(crate) refs: BTreeMap<String, String>,
    /// The blobs of the journal's segments.
    pub(crate) segments: Vec<String>,
    /// How much of the journal the segments contain.
    pub(crate) journal_bytes: u64,
    /// The journal of the last checkpoint.
    pub(crate) summary: JournalSummary,
}

impl Copy {
    pub(crate) fn read(path: &Path) -> Result<Self, ProvisionError> {
        let unreadable = |why: String| ProvisionError::File {
            path: path.to_owned(),
            why,
        };
        let bytes = fs::read(path).map_err(|error| unreadable(error.to_string()))?;
        serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))
    }

    /// Replaces the file, so that a reader never sees half of it.
    pub(crate) fn write(&self, path: &Path) -> Result<(), ProvisionError> {
        let text = serde_json::to_vec_pretty(self).unwrap_or_default();
        let new = path.with_extension("new");
        let write = || {
            let mut file = fs::File::create(&new)?;
            file.write_all(&text)?;
            file.sync_data()?;
            fs::rename(&new, path)
        };
        write().map_err(|error| ProvisionError::File {
            path: path.to_owned(),
            why: error.to_string(),
        })
    }

    pub(crate) fn branch_ref(&self) -> String {
        format!("refs/heads/{}", self.branch)
    }

    pub(crate) fn state_ref(&self, part: &str) -> String {
        state_ref(&self.name, part)
    }

    /// A file beside the workspace.
    fn beside(&self, name: &str) -> PathBuf {
        self.workspace.with_file_name(name)
    }
}

/// `refs/ralph/PLAN/TASK/PART`.
pub(crate) fn state_ref(name: &str, part: &str) -> String {
    format!("refs/ralph/{name}/{part}")
}

/// The parts of a checkpoint besides the branch.
pub(crate) const PARTS: [&str; 3] = ["head", "tree", "state"];
