//! Finds the snapshots that arguments such as `RUN@6` name.

use std::path::{Path, PathBuf};

use crate::config::SnapshotSettings;
use crate::run::{Host, SnapshotHistory};
use crate::snapshot::{SnapshotId, SnapshotRules, SnapshotStore};
use crate::store::{LATEST, Project, id_from_path};

use super::context::current_project;
use super::error::CliError;
use super::run_lookup::resolve_run;
use super::undo_error::UndoError;

/// The snapshots of one run.
pub(super) struct RunSnapshots {
    pub(super) id: String,
    pub(super) history: SnapshotHistory,
    pub(super) store: SnapshotStore,
}

impl RunSnapshots {
    pub(super) fn of(run: Option<&Path>, host: &Host) -> Result<Self, CliError> {
        let directory = resolve_run(run)?;
        // A run's directory is `projects/NAME/runs/ID`.
        let project = directory.ancestors().nth(2).unwrap_or(&directory);
        Ok(Self {
            id: id_from_path(&directory),
            history: SnapshotHistory::read(&directory.join("events.jsonl"))?,
            store: SnapshotStore::at(project.join("snapshots.git"), host.supervisors()),
        })
    }

    pub(super) fn missing(&self, wanted: impl Into<String>) -> CliError {
        let missing = UndoError::NoSnapshot {
            id: self.id.clone(),
            wanted: wanted.into(),
            available: match (self.history.first(), self.history.last()) {
                (Some(first), Some(last)) => format!("{} to {}", first.iteration, last.iteration),
                (None, _) | (_, None) => "none".to_owned(),
            },
        };
        missing.into()
    }

    /// The snapshot after an iteration.
    pub(super) fn after(&self, iteration: u64) -> Result<SnapshotId, CliError> {
        let wanted = || self.missing(format!("after iteration {iteration}"));
        let record = self.history.after(iteration).ok_or_else(wanted)?;
        SnapshotId::parse(&record.id).ok_or_else(wanted)
    }

    pub(super) fn last(&self) -> Result<SnapshotId, CliError> {
        let last = self.history.last();
        last.and_then(|record| SnapshotId::parse(&record.id))
            .ok_or_else(|| self.missing("at all"))
    }
}

/// A run and one of its iterations: `RUN@N`, or `@N` for the newest run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IterationName {
    pub(super) run: PathBuf,
    pub(super) iteration: u64,
}

impl IterationName {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (run, iteration) = text.rsplit_once('@')?;
        let iteration = iteration.parse().ok()?;
        let run = if run.is_empty() { LATEST } else { run };
        let run = PathBuf::from(run);
        Some(Self { run, iteration })
    }
}

/// Larger numbers are the start of a run's id.
const MAX_ITERATION: u64 = 99_999;

/// The iterations to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IterationRange {
    WholeRun,
    Iteration(u64),
    /// From the end of one iteration to the end of another one.
    Between(u64, u64),
}

/// Each word is a run, an iteration or a range.
pub(super) fn parse_selection(words: &[String]) -> Result<(Option<PathBuf>, IterationRange), CliError> {
    let (mut run, mut range) = (None, IterationRange::WholeRun);
    for word in words {
        if let Some(name) = IterationName::parse(word) {
            (run, range) = (Some(name.run), IterationRange::Iteration(name.iteration));
        } else if let Some(found) = parse_range(word) {
            range = found;
        } else {
            run = Some(PathBuf::from(word));
        }
    }
    Ok((run, range))
}

fn parse_range(word: &str) -> Option<IterationRange> {
    let number = |text: &str| text.parse().ok().filter(|number| *number <= MAX_ITERATION);
    match word.split_once("..") {
        Some((from, to)) => Some(IterationRange::Between(number(from)?, number(to)?)),
        None => number(word).map(IterationRange::Iteration),
    }
}

pub(super) fn compared_snapshots(
    snapshots: &RunSnapshots,
    range: IterationRange,
) -> Result<(SnapshotId, SnapshotId), CliError> {
    let parse = |id: &str| SnapshotId::parse(id).ok_or_else(|| snapshots.missing("with a valid id"));
    match range {
        IterationRange::WholeRun => {
            let first = snapshots.history.first();
            let first = first.ok_or_else(|| snapshots.missing("at all"))?;
            Ok((parse(&first.id)?, snapshots.last()?))
        }
        IterationRange::Iteration(iteration) => {
            let wanted = || snapshots.missing(format!("after iteration {iteration}"));
            let (before, after) = snapshots.history.around(iteration).ok_or_else(wanted)?;
            Ok((parse(&before.id)?, parse(&after.id)?))
        }
        IterationRange::Between(from, to) => Ok((snapshots.after(from)?, snapshots.after(to)?)),
    }
}

/// The store of the current project, and the rules by which its files are recorded.
pub(super) fn project_store(host: &Host) -> Result<(Project, SnapshotStore), CliError> {
    let project = current_project()?;
    let store = SnapshotStore::at(project.snapshots(), host.supervisors());
    Ok((project, store))
}

/// A half-restored project is no starting point.
pub(super) fn require_no_pending_restore(project: &Project, host: &Host) -> Result<(), CliError> {
    let store = SnapshotStore::at(project.snapshots(), host.supervisors());
    match store.has_pending_restore() {
        true => Err(UndoError::RestoreInterrupted.into()),
        false => Ok(()),
    }
}

pub(super) fn rules(project: &Project, settings: &SnapshotSettings) -> SnapshotRules {
    SnapshotRules {
        // The patterns were checked with the configuration.
        include: settings
            .include
            .iter()
            .flat_map(|pattern| pattern.parse())
            .collect(),
        excluded: project.own_files(),
        max_mb: settings.max_mb,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iteration_is_named_with_or_without_a_run() {
        let parsed = |text: &str| {
            let name = IterationName::parse(text)?;
            Some((name.run.display().to_string(), name.iteration))
        };
        assert_eq!(parsed("20261115-2045@6"), Some(("20261115-2045".into(), 6)));
        assert_eq!(parsed("@0"), Some((LATEST.into(), 0)));
        assert_eq!(parsed("a@b@2"), Some(("a@b".into(), 2)));
        assert_eq!((parsed("6"), parsed("run@"), parsed("run@x")), (None, None, None));
    }

    #[test]
    fn words_select_a_run_and_iterations() {
        let select = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let (run, range) = parse_selection(&words).expect("a selection");
            (run.map(|run| run.display().to_string()), range)
        };
        assert_eq!(select(&[]), (None, IterationRange::WholeRun));
        assert_eq!(select(&["3"]), (None, IterationRange::Iteration(3)));
        assert_eq!(
            select(&["20261115-2045"]),
            (Some("20261115-2045".into()), IterationRange::WholeRun)
        );
        assert_eq!(
            select(&["20261115"]),
            (Some("20261115".into()), IterationRange::WholeRun)
        );
        assert_eq!(
            select(&["2026-a", "2..5"]),
            (Some("2026-a".into()), IterationRange::Between(2, 5))
        );
        assert_eq!(select(&["x@4"]), (Some("x".into()), IterationRange::Iteration(4)));
    }
}
