//! The record of a snapshot: what was stored, and which files changed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FileChangeKind, units};

/// A snapshot of the project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotRecord {
    /// The iteration that ended; 0 before the first one. At the start of a resumed run, the last iteration that ended.
    pub iteration: u64,
    pub moment: SnapshotMoment,
    /// The name of the snapshot in the store.
    pub id: String,
    /// Number of files that differ from the previous snapshot.
    pub files: u64,
    /// Number of lines that were added and removed in them.
    pub added: u64,
    pub removed: u64,
    /// Bytes of content that were stored.
    pub bytes: u64,
    /// Number of files in the snapshot.
    pub total_files: u64,
    /// The first of the files that differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ChangedFile>,
}

/// When a snapshot was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotMoment {
    /// Before the first agent of a run, or of a resumed run, started.
    Start,
    /// After an agent ended.
    End,
    /// After files were restored because the iteration broke a gate.
    Restored,
}

/// A file that differs between two snapshots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedFile {
    pub path: String,
    pub change: FileChangeKind,
    /// Number of added lines; absent for binary files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<u64>,
    /// Number of removed lines; absent for binary files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<u64>,
}

impl SnapshotRecord {
    /// `3 files changed, +12 −4: a.rs +12 −4, …`; `None` without changes.
    pub fn summary(&self) -> Option<String> {
        const MAX_NAMES: usize = 5;
        if self.files == 0 {
            return None;
        }
        let files = units::count(self.files, "file");
        let mut text = format!("{files} changed, +{} −{}", self.added, self.removed);
        let names: Vec<String> = self
            .changes
            .iter()
            .take(MAX_NAMES)
            .map(ChangedFile::label)
            .collect();
        if !names.is_empty() {
            text = format!("{text}: {}", names.join(", "));
        }
        if let more @ 1.. = self.files.saturating_sub(names.len() as u64)
            && !names.is_empty()
        {
            text = format!("{text} and {more} more");
        }
        Some(text)
    }
}

impl ChangedFile {
    /// `a.rs +12 −4`
    pub fn label(&self) -> String {
        let lines = match (self.added, self.removed) {
            (Some(added), Some(removed)) => format!("+{added} −{removed}"),
            (None, _) | (_, None) => "(binary)".to_owned(),
        };
        match self.change {
            FileChangeKind::Deleted => format!("{} (deleted)", self.path),
            FileChangeKind::Added | FileChangeKind::Modified => format!("{} {lines}", self.path),
        }
    }
}
