//! Forks a run: a new run in another directory, with the journal and the files of a run up to the end of an iteration.

use std::path::Path;

use jiff::Timestamp;
use serde_json::Value;

use crate::config::PartialSettings;
use crate::event::{FORMAT_VERSION, ForkOrigin, Record, RunEvent, RunHeader, Sink as _};
use crate::snapshot::{Checkout, SnapshotError, SnapshotId, SnapshotStore};
use crate::store::{
    Journal, Project, RestoredRecord, Run, SettingsFile, StoreError, id_from_path, restore_records,
};

use super::Host;
use super::rerun::snapshots_of;
use super::saved_run::SavedRun;

/// The place in a journal from which a fork continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForkPoint {
    /// The last record that the fork contains.
    seq: u64,
    pub at: Timestamp,
    /// The files of the project then.
    tree: SnapshotId,
}

/// The new run.
pub struct ForkRequest<'a> {
    /// The directory of the run that is continued.
    pub source: &'a Path,
    pub saved: SavedRun,
    pub point: ForkPoint,
    pub iteration: u64,
    /// The project of the fork, whose root is an empty directory or a new worktree.
    pub project: &'a Project,
    /// The directory in which the agent runs.
    pub workspace: &'a Path,
    /// The flags of the fork, which take precedence over those of the run.
    pub flags: &'a PartialSettings,
}

#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    #[error("cannot write the journal of the fork")]
    Journal(#[source] std::io::Error),
}

impl ForkPoint {
    /// The end of an iteration; for 0, the start of the first one. `None` if the run did not reach it or took no snapshot.
    pub fn find(journal: &Path, iteration: u64) -> Result<Option<Self>, StoreError> {
        let (mut point, mut tree, mut has_passed) = (None, None, false);
        restore_records(journal, |record| {
            let RestoredRecord::Parsed(record) = record else {
                return;
            };
            match &record.event {
                RunEvent::IterationStarted { iteration: next, .. } => has_passed |= *next > iteration,
                RunEvent::RunEnded { .. } if iteration == 0 => has_passed = true,
                _ => {}
            }
            if has_passed {
                return;
            }
            if let RunEvent::Snapshot(snapshot) = &record.event {
                tree = SnapshotId::parse(&snapshot.id);
            }
            let is_end = match &record.event {
                RunEvent::IterationEnded { iteration: ended, .. } => *ended == iteration,
                _ => iteration == 0,
            };
            if let (true, Some(tree)) = (is_end, tree) {
                let (seq, at) = (record.seq, record.at);
                point = Some(Self { seq, at, tree });
            }
        })?;
        Ok(point)
    }
}

impl ForkRequest<'_> {
    /// Creates the fork and returns the id of its run, which is then resumed like any other.
    pub fn create(self, host: &Host, now: Timestamp) -> Result<String, ForkError> {
        let run = Run::create(self.project, now)?;
        let from = SnapshotStore::at(snapshots_of(self.source), host.supervisors());
        let store = SnapshotStore::at(self.project.snapshots(), host.supervisors());
        store.adopt_run(&from, &id_from_path(self.source), run.id())?;
        Checkout::new(self.project.root(), Vec::new()).update(&store, self.point.tree)?;
        run.adopt_iterations(self.source, self.iteration)?;
        let header = self.header(&run);
        let settings_file = SettingsFile::new(&self.saved_run(&header))?;
        run.write_settings(&settings_file)?;
        let mut journal = run.journal()?;
        for record in Journal::read(&self.source.join("events.jsonl"))? {
            if record.seq > self.point.seq {
                break;
            }
            let record = moved_record(record, &header, &settings_file.sha256());
            journal.accept(&record).map_err(ForkError::Journal)?;
        }
        journal.flush().map_err(ForkError::Journal)?;
        Ok(run.id().to_owned())
    }

    fn header(&self, run: &Run) -> RunHeader {
        RunHeader {
            version: FORMAT_VERSION,
            run_id: run.id().to_owned(),
            workspace: self.workspace.display().to_string(),
            project_root: Some(self.project.root().display().to_string()),
            directory: Some(run.directory().display().to_string()),
            settings_sha256: None,
            forked_from: Some(ForkOrigin {
                run: id_from_path(self.source),
                iteration: self.iteration,
            }),
            ..self.saved.header.clone()
        }
    }

    /// The settings of the run, with paths in the project moved to the fork. What differs from them when the fork starts
    /// was changed since, and needs the user's consent.
    fn saved_run(&self, header: &RunHeader) -> SavedRun {
        let mut flags = self.saved.merged_flags(self.flags);
        let mut settings = self.saved.settings.clone();
        if self.flags.cli.backend.is_some() {
            // The model and the format were chosen for the other agent.
            for (key, flag) in [
                ("model", &mut flags.cli.model),
                ("transcript", &mut flags.cli.transcript),
            ] {
                let given = match key {
                    "model" => &self.flags.cli.model,
                    _ => &self.flags.cli.transcript,
                };
                if given.is_none() && flag.take().is_some() {
                    settings["cli"][key] = Value::Null;
                }
            }
        }
        let old = self.saved.header.project_root.clone();
        let old = old.unwrap_or_else(|| self.saved.header.workspace.clone());
        let new = self.project.root().display().to_string();
        let mut flags = serde_json::to_value(&flags).unwrap_or_default();
        move_paths(&mut settings, &old, &new);
        move_paths(&mut flags, &old, &new);
        SavedRun {
            header: header.clone(),
            settings,
            flags,
        }
    }
}

/// The record of the other run as the fork's own.
fn moved_record(mut record: Record, header: &RunHeader, settings_sha256: &str) -> Record {
    let move_header = |own: &mut RunHeader, settings_sha256: Option<String>| {
        own.run_id.clone_from(&header.run_id);
        own.workspace.clone_from(&header.workspace);
        own.project_root.clone_from(&header.project_root);
        own.directory.clone_from(&header.directory);
        own.settings_sha256 = settings_sha256;
    };
    match &mut record.event {
        RunEvent::RunStarted(own) => move_header(own, Some(settings_sha256.to_owned())),
        RunEvent::RunResumed(resumption) => move_header(&mut resumption.header, None),
        _ => {}
    }
    record.chain = None;
    record
}

/// Replaces the root in all paths below it.
fn move_paths(value: &mut Value, old: &str, new: &str) {
    match value {
        Value::String(text) => {
            if let Some(below) = text.strip_prefix(old)
                && (below.is_empty() || below.starts_with('/'))
            {
                *text = format!("{new}{below}");
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| move_paths(item, old, new)),
        Value::Object(members) => members
            .values_mut()
            .for_each(|member| move_paths(member, old, new)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_in_the_project_are_moved_and_others_are_not() {
        let mut settings =
            json!({"gates": [{"cwd": "/project/sub"}], "a": "/project", "b": "/projects", "c": 1});
        move_paths(&mut settings, "/project", "/fork");
        let expected = json!({"gates": [{"cwd": "/fork/sub"}], "a": "/fork", "b": "/projects", "c": 1});
        assert_eq!(settings, expected);
    }
}
