//! What a run changed, from its snapshots. A request names a file by its position in the list of changes, not by a path.

use schemars::JsonSchema;
use serde::Serialize;

use super::Server;
use super::response::{ApiError, ApiResult};
use super::run_files::FoundRun;
use crate::event::Secrets;
use crate::run::SnapshotHistory;
use crate::snapshot::{ChangeKind, FileChange, SnapshotId, SnapshotStore};

/// The longest patch of one file that is sent.
const MAX_PATCH_BYTES: usize = 512 * 1024;

/// The files that differ between two snapshots.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Changes {
    from: String,
    to: String,
    added: u64,
    removed: u64,
    files: Vec<ChangedFile>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ChangedFile {
    path: String,
    change: &'static str,
    /// Absent for binary files.
    #[serde(skip_serializing_if = "Option::is_none")]
    added: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    removed: Option<u64>,
}

/// The patch of one file.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct FilePatch {
    path: String,
    patch: String,
    /// Whether the end of the patch is left out.
    truncated: bool,
}

/// Two snapshots and where they are stored.
struct Compared {
    store: SnapshotStore,
    from: SnapshotId,
    to: SnapshotId,
    changes: Vec<FileChange>,
}

/// The changes of an iteration, or of the whole run.
pub(super) fn list(server: &Server, run: &FoundRun, iteration: Option<u64>) -> ApiResult<Changes> {
    let compared = Compared::read(server, run, iteration)?;
    let lines = |count: fn((u64, u64)) -> u64| {
        let known = compared.changes.iter().filter_map(|change| change.lines);
        known.map(count).sum()
    };
    Ok(Changes {
        from: compared.from.to_string(),
        to: compared.to.to_string(),
        added: lines(|(added, _)| added),
        removed: lines(|(_, removed)| removed),
        files: compared.changes.iter().map(changed_file).collect(),
    })
}

/// The patch of the file at this position of the list. The values of secrets are redacted, as in the journal.
pub(super) fn patch(
    server: &Server,
    run: &FoundRun,
    iteration: Option<u64>,
    file: usize,
) -> ApiResult<FilePatch> {
    let compared = Compared::read(server, run, iteration)?;
    let change = compared.changes.get(file);
    let change = change.ok_or_else(|| ApiError::not_found("file"))?;
    let path = std::slice::from_ref(&change.path);
    let patch = compared.store.diff(compared.from, compared.to, path);
    let patch = patch.map_err(|error| ApiError::internal(&error))?;
    let text = String::from_utf8_lossy(&patch).into_owned();
    let mut patch = Secrets::from_env(std::env::vars_os()).redact_text(text);
    let truncated = patch.len() > MAX_PATCH_BYTES;
    patch.truncate(patch.floor_char_boundary(MAX_PATCH_BYTES));
    Ok(FilePatch {
        path: shown_path(change),
        patch,
        truncated,
    })
}

impl Compared {
    fn read(server: &Server, run: &FoundRun, iteration: Option<u64>) -> ApiResult<Self> {
        let missing = || ApiError::not_found("snapshot");
        let history = SnapshotHistory::read(&run.journal()).map_err(|_| ApiError::not_found("journal"))?;
        let (before, after) = match iteration {
            Some(iteration) => history.around(iteration),
            None => history.first().zip(history.last()),
        }
        .ok_or_else(missing)?;
        let id = |id: &str| SnapshotId::parse(id).ok_or_else(missing);
        let (from, to) = (id(&before.id)?, id(&after.id)?);
        let store = SnapshotStore::at(run.project.snapshots(), &server.supervisors);
        // Snapshots of old runs are removed with `ralph clean`.
        let changes = store.changed_paths(from, to).map_err(|_| missing())?;
        Ok(Self {
            store,
            from,
            to,
            changes,
        })
    }
}

fn changed_file(change: &FileChange) -> ChangedFile {
    ChangedFile {
        path: shown_path(change),
        change: match change.kind {
            ChangeKind::Added => "added",
            ChangeKind::Removed => "deleted",
            ChangeKind::Modified => "modified",
        },
        added: change.lines.map(|(added, _)| added),
        removed: change.lines.map(|(_, removed)| removed),
    }
}

fn shown_path(change: &FileChange) -> String {
    String::from_utf8_lossy(&change.path).into_owned()
}
