//! Why a workspace could not be made or saved.

use std::path::PathBuf;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProvisionError {
    /// Another copy of the task has saved a checkpoint in the meantime.
    Fenced,
    /// The remote cannot be reached, or refuses the push although nothing has changed there.
    NotSaved {
        why: String,
    },
    Git {
        command: String,
        why: String,
    },
    File {
        path: PathBuf,
        why: String,
    },
}

impl std::fmt::Display for ProvisionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fenced => f.write_str("another worker has saved a newer checkpoint of this task"),
            Self::NotSaved { why } => write!(f, "the checkpoint was not saved: {why}"),
            Self::Git { command, why } => write!(f, "git {command}: {why}"),
            Self::File { path, why } => write!(f, "{}: {why}", path.display()),
        }
    }
}

impl std::error::Error for ProvisionError {}
