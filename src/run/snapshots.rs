//! Converts snapshots to what the journal records about them, and finds them in the journal of a run.

use std::path::Path;

use crate::event::{ChangedFile, FileChangeKind, RunEvent, SnapshotMoment, SnapshotRecord};
use crate::snapshot::{ChangeKind, FileChange, SnapshotError, TakenSnapshot};
use crate::store::{RestoredRecord, StoreError, restore_records};

/// How many changed files are listed by name.
const MAX_LISTED: usize = 100;

pub(super) fn record(
    iteration: u64,
    moment: SnapshotMoment,
    taken: Result<TakenSnapshot, SnapshotError>,
) -> Result<Box<SnapshotRecord>, String> {
    let taken = taken.map_err(|error| with_causes(&error))?;
    let lines = |count: fn((u64, u64)) -> u64| {
        taken
            .changes
            .iter()
            .filter_map(|change| change.lines)
            .map(count)
            .sum()
    };
    Ok(Box::new(SnapshotRecord {
        iteration,
        moment,
        id: taken.id.to_string(),
        files: taken.changes.len() as u64,
        added: lines(|(added, _)| added),
        removed: lines(|(_, removed)| removed),
        bytes: taken.bytes,
        total_files: taken.files,
        changes: taken.changes.iter().take(MAX_LISTED).map(changed_file).collect(),
    }))
}

fn changed_file(change: &FileChange) -> ChangedFile {
    ChangedFile {
        path: String::from_utf8_lossy(&change.path).into_owned(),
        change: match change.kind {
            ChangeKind::Added => FileChangeKind::Added,
            ChangeKind::Removed => FileChangeKind::Deleted,
            ChangeKind::Modified => FileChangeKind::Modified,
        },
        added: change.lines.map(|(added, _)| added),
        removed: change.lines.map(|(_, removed)| removed),
    }
}

fn with_causes(error: &SnapshotError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

/// The snapshots of a run, in the order in which they were taken.
#[derive(Debug, Default)]
pub struct SnapshotHistory {
    records: Vec<SnapshotRecord>,
}

impl SnapshotHistory {
    pub fn read(journal: &Path) -> Result<Self, StoreError> {
        let mut history = Self::default();
        restore_records(journal, |record| {
            if let RestoredRecord::Parsed(record) = record
                && let RunEvent::Snapshot(snapshot) = record.event
            {
                history.records.push(*snapshot);
            }
        })?;
        Ok(history)
    }

    pub fn first(&self) -> Option<&SnapshotRecord> {
        self.records.first()
    }

    pub fn last(&self) -> Option<&SnapshotRecord> {
        self.records.last()
    }

    /// The last snapshot after an iteration; before the first one for 0. It includes changes before the run was resumed.
    pub fn after(&self, iteration: u64) -> Option<&SnapshotRecord> {
        self.records
            .iter()
            .rev()
            .find(|record| record.iteration == iteration)
    }

    /// The snapshots before the first attempt at an iteration and after the last one.
    pub fn around(&self, iteration: u64) -> Option<(&SnapshotRecord, &SnapshotRecord)> {
        let is_end =
            |record: &SnapshotRecord| record.iteration == iteration && record.moment == SnapshotMoment::End;
        let last = self.records.iter().rposition(is_end)?;
        let before = self.records[..last].iter().rposition(|record| !is_end(record))?;
        Some((&self.records[before], &self.records[last]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use SnapshotMoment::{End, Start};

    fn history(records: &[(u64, SnapshotMoment)]) -> SnapshotHistory {
        let record = |(index, (iteration, moment)): (usize, &(u64, SnapshotMoment))| SnapshotRecord {
            iteration: *iteration,
            moment: *moment,
            id: index.to_string(),
            files: 0,
            added: 0,
            removed: 0,
            bytes: 0,
            total_files: 0,
            changes: Vec::new(),
        };
        SnapshotHistory {
            records: records.iter().enumerate().map(record).collect(),
        }
    }

    #[test]
    fn changes_between_two_processes_belong_to_no_iteration() {
        // Iteration 2 has two attempts, and the run is resumed before iteration 3.
        let history = history(&[(0, Start), (1, End), (2, End), (2, End), (2, Start), (3, End)]);
        let around = |iteration| {
            let (before, after) = history.around(iteration)?;
            Some((before.id.as_str(), after.id.as_str()))
        };
        assert_eq!(around(1), Some(("0", "1")));
        assert_eq!(around(2), Some(("1", "3")));
        assert_eq!(around(3), Some(("4", "5")));
        assert_eq!((around(0), around(4)), (None, None));
        assert_eq!(history.after(2).map(|record| record.id.as_str()), Some("4"));
        assert_eq!(history.after(0).map(|record| record.id.as_str()), Some("0"));
    }
}
