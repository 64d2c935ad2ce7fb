//! Runs that were: which there are, and going on with one.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::de::DeserializeOwned;

use super::{DIRECTORY, Lock, Run, StoreError, find_run, make_directory};

impl Run {
    /// Takes the workspace's lock and opens a run that is already there, called as `find_run` takes it.
    pub fn reopen(workspace: &Path, name: &str, now: Timestamp) -> Result<Self, StoreError> {
        let directory = find_run(workspace, name)?;
        let lock = Lock::take(&workspace.join(DIRECTORY).join("lock"), now)?;
        make_directory(&directory.join("iterations"))?;
        Ok(Self {
            id: id_of(&directory),
            directory,
            _lock: lock,
        })
    }

    pub fn journal_path(&self) -> PathBuf {
        self.directory.join("events.jsonl")
    }

    /// The run's header as it was written; `None` if it was not, or cannot be read.
    pub fn read_header<Header: DeserializeOwned>(&self) -> Option<Header> {
        serde_json::from_slice(&fs::read(self.directory.join("run.json")).ok()?).ok()
    }

    /// The first attempt of an iteration that has left no files.
    pub fn first_free_attempt(&self, iteration: u64) -> u64 {
        let mut attempt = 1;
        while self.iteration_directory(iteration, attempt).exists() {
            attempt += 1;
        }
        attempt
    }
}

/// The id of the run that has this directory.
pub fn id_of(run: &Path) -> String {
    run.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::LATEST;
    use super::*;

    #[test]
    fn the_newest_run_is_found_and_goes_on_where_it_was() {
        let workspace = tempfile::tempdir().unwrap();
        assert!(matches!(
            find_run(workspace.path(), LATEST),
            Err(StoreError::NoRuns { .. })
        ));
        for second in [1_000_000_000, 1_000_000_001] {
            drop(Run::create(workspace.path(), Timestamp::from_second(second).unwrap()).unwrap());
        }
        let id = id_of(&find_run(workspace.path(), LATEST).unwrap());
        assert!(id.starts_with("20010909-014641-"), "{id}");
        let run = Run::reopen(workspace.path(), &id, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!((run.id(), run.first_free_attempt(1)), (id.as_str(), 1));
        run.iteration(1, 1).unwrap();
        assert_eq!(run.first_free_attempt(1), 2);
        for id in ["", "..", "a/b", "20010909-000000-none"] {
            let missing = find_run(workspace.path(), id);
            assert!(matches!(missing, Err(StoreError::UnknownRun { .. })), "{id}");
        }
    }
}
