//! Errors of the commands for snapshots, with their hints.

use std::path::PathBuf;

use crate::run::{ForkError, ReceiptError};
use crate::snapshot::SnapshotError;

use super::exit::Exit;

#[derive(Debug, thiserror::Error)]
pub(super) enum UndoError {
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    #[error("run {id} has no snapshot {wanted}")]
    NoSnapshot {
        id: String,
        wanted: String,
        available: String,
    },
    #[error("{} not been recorded and would be lost:\n  {}", has_changes(files.len()), listed(files))]
    Unrecorded { files: Vec<String> },
    #[error("`{name}` does not name an iteration of a run")]
    NoIteration { name: String },
    #[error("cannot create the directory of the fork: {why}")]
    NoForkWorkspace { why: String },
    #[error("cannot create the fork")]
    Fork(#[source] ForkError),
    #[error("the run has no gates, so no agent could win")]
    RaceWithoutGates,
    #[error("run {id} is still active")]
    RunActive { id: String },
    #[error("cannot sign the receipt: {why}")]
    Unsigned { why: String },
    #[error("cannot create the receipt")]
    Receipt(#[source] ReceiptError),
    #[error("a newer ralph wrote this receipt (format {version})")]
    NewerReceipt { version: u32 },
    #[error("a restore of this project was interrupted")]
    RestoreInterrupted,
    #[error("no restore of this project was interrupted")]
    NothingToContinue,
    #[error("`{name}` is neither a snapshot nor RUN@N")]
    UnknownSnapshot { name: String },
    #[error("{} is outside of the project {}", path.display(), root.display())]
    OutsideProject { path: PathBuf, root: PathBuf },
}

impl UndoError {
    pub(super) fn exit(&self) -> Exit {
        match self {
            Self::Snapshot(_)
            | Self::Receipt(_)
            | Self::Fork(_)
            | Self::NoForkWorkspace { .. }
            | Self::Unsigned { .. } => Exit::Failed,
            _ => Exit::Usage,
        }
    }

    /// Returns the hints for this error, one per line.
    pub(super) fn hints(&self) -> Vec<String> {
        match self {
            Self::Snapshot(SnapshotError::Blocked { .. }) => {
                vec!["move it away, then restore again; nothing was changed".into()]
            }
            Self::Snapshot(SnapshotError::Start(_)) => vec!["snapshots require git 2.30 or later".into()],
            Self::Snapshot(_) => vec!["check disk space and the permissions of the state directory".into()],
            Self::NoSnapshot { id, available, .. } => vec![format!(
                "snapshots of this run: {available}; for its iterations: ralph show {id}"
            )],
            Self::Unrecorded { .. } => {
                vec!["to overwrite them, pass --yes; their content is recorded first, so that it can be restored".into()]
            }
            Self::RestoreInterrupted => vec!["to complete it: ralph restore --continue".into()],
            Self::NoForkWorkspace { .. } => vec!["to create it elsewhere: --into DIR".into()],
            Self::Fork(_) => vec!["check disk space and the permissions of the state directory".into()],
            Self::RaceWithoutGates => vec!["start the run with --gate COMMAND, or configure `gates`".into()],
            Self::NoIteration { .. } | Self::UnknownSnapshot { .. } => {
                vec!["name an iteration of a run, such as 20261115-2045@6, or @6 for the newest run".into()]
            }
            Self::OutsideProject { .. } => vec!["pass a path inside the project".into()],
            Self::RunActive { id } => vec![format!(
                "the receipt is written when it ends; to stop it: ralph tell {id} --stop"
            )],
            Self::Unsigned { .. } => {
                vec!["pass an SSH key that needs no passphrase here, or whose agent is running".into()]
            }
            Self::Receipt(_) => {
                vec!["`ralph clean` removes snapshots with their runs; check the state directory".into()]
            }
            Self::NewerReceipt { .. } => vec!["use that ralph, or a newer one".into()],
            Self::NothingToContinue => Vec::new(),
        }
    }
}

/// `1 change has`, `2 changes have`.
fn has_changes(count: usize) -> String {
    match count {
        1 => "1 change has".to_owned(),
        count => format!("{count} changes have"),
    }
}

fn listed(files: &[String]) -> String {
    const MAX: usize = 20;
    let mut lines: Vec<String> = files.iter().take(MAX).cloned().collect();
    if let more @ 1.. = files.len().saturating_sub(MAX) {
        lines.push(format!("… and {more} more"));
    }
    lines.join("\n  ")
}
