//! Why `ralph-fleet` cannot be started.

use std::io;
use std::path::PathBuf;

/// The program that runs plans on many machines.
pub(super) const PROGRAM: &str = "ralph-fleet";

/// Why `ralph-fleet` cannot be started.
#[derive(Debug, thiserror::Error)]
pub(super) enum FleetError {
    #[error("{PROGRAM} is neither beside ralph nor on PATH")]
    Missing,
    #[error("{} has version {found}, but ralph has {}", path.display(), env!("CARGO_PKG_VERSION"))]
    OtherVersion { path: PathBuf, found: String },
    #[error("cannot start {}", path.display())]
    NotStarted { path: PathBuf, source: io::Error },
}

impl FleetError {
    pub(super) fn hints(&self) -> Vec<String> {
        match self {
            Self::Missing => vec!["it is a program of its own; see docs/fleet.md".into()],
            Self::OtherVersion { .. } => vec!["install both from the same release".into()],
            Self::NotStarted { .. } => vec!["check the file and its permissions".into()],
        }
    }
}
