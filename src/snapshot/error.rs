//! Errors of snapshots.

use std::io;
use std::path::{Path, PathBuf};

use crate::process::ProcessError;

#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("cannot {action} {}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("cannot run git")]
    Start(#[source] ProcessError),
    #[error("git {command} failed in {}", store.display())]
    Git {
        command: &'static str,
        store: PathBuf,
        source: io::Error,
    },
    #[error("`{text}` is not a snapshot id")]
    InvalidId { text: String },
    #[error("snapshot {id} is damaged: {why}")]
    Damaged { id: String, why: &'static str },
    #[error("the project has more than {max} files that git does not ignore")]
    TooManyFiles { max: usize },
    #[error(
        "the snapshot needs {needed_mb} MB and the limit is {max_mb} MB; ignore large files or increase `snapshots.max_mb`"
    )]
    TooLarge { needed_mb: u64, max_mb: u64 },
    #[error("{} is in the way: it contains {} that no snapshot contains", path.display(), name.display())]
    Blocked { path: PathBuf, name: PathBuf },
}

pub(super) fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> SnapshotError {
    let path = path.to_owned();
    move |source| SnapshotError::Io { action, path, source }
}
