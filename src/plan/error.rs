//! The errors of a plan, with hints.

use std::io;
use std::path::PathBuf;

use super::check::Problems;

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
}

impl PlanError {
    /// Returns what the user can do.
    pub fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::NotFound { .. } => "check the path; for the format, see docs/plans.md",
            Self::Command { .. } => "run the command yourself to see what it prints",
            Self::Unreadable { .. } | Self::Invalid(_) => return Vec::new(),
        };
        vec![hint.to_owned()]
    }
}
