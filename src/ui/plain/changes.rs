//! The files that a run has changed, for the final report.

use crate::event::{SnapshotMoment, SnapshotRecord};
use crate::ui::units;

/// Files that are named in the report.
const MAX_NAMES: usize = 6;
/// Files that are remembered.
const MAX_FILES: usize = 1000;

/// What the snapshots of a run report.
#[derive(Debug, Default)]
pub(super) struct RunChanges {
    files: Vec<String>,
    added: u64,
    removed: u64,
    snapshots: u64,
}

impl RunChanges {
    pub(super) fn apply(&mut self, snapshot: &SnapshotRecord) {
        self.snapshots += 1;
        if snapshot.moment == SnapshotMoment::Start {
            return;
        }
        self.added += snapshot.added;
        self.removed += snapshot.removed;
        for change in &snapshot.changes {
            if self.files.len() < MAX_FILES && !self.files.contains(&change.path) {
                self.files.push(change.path.clone());
            }
        }
    }

    pub(super) fn any(&self) -> bool {
        !self.files.is_empty()
    }

    /// `2 files, +12 −3: a.rs, b.rs`; `None` without snapshots.
    pub(super) fn summary(&self) -> Option<String> {
        if self.snapshots == 0 {
            return None;
        }
        if self.files.is_empty() {
            return Some("nothing".to_owned());
        }
        let count = units::count(self.files.len() as u64, "file");
        let names = self.files[..self.files.len().min(MAX_NAMES)].join(", ");
        let more = match self.files.len().saturating_sub(MAX_NAMES) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(format!(
            "{count}, +{} −{}: {names}{more}",
            self.added, self.removed
        ))
    }
}
