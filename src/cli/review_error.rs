//! Errors of reviews.

use std::path::PathBuf;

use crate::files::FileError;

use super::exit::Exit;

#[derive(Debug, thiserror::Error)]
pub(super) enum ReviewError {
    #[error("{key}: agent `{agent}` would review its own work")]
    OwnWork { key: String, agent: String },
    #[error("cannot read the prompt of a reviewer in {}: {source}", path.display())]
    Prompt { path: PathBuf, source: FileError },
    #[error("no git revision `{name}`")]
    UnknownRevision { name: String },
    #[error("{0}")]
    Checkout(String),
}

impl ReviewError {
    pub(super) fn exit(&self) -> Exit {
        match self {
            Self::OwnWork { .. } | Self::Prompt { .. } | Self::UnknownRevision { .. } => Exit::Usage,
            Self::Checkout(_) => Exit::Failed,
        }
    }

    pub(super) fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::OwnWork { .. } => "set another `agent` or `model` for the reviewer, or `same: true`",
            Self::Prompt { .. } => "create the file, or fix the gate's `prompt_file`",
            Self::UnknownRevision { .. } => "write a run or two revisions, such as main..HEAD",
            Self::Checkout(_) => return Vec::new(),
        };
        vec![hint.to_owned()]
    }
}
