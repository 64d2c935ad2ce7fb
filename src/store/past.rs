//! Runs that were: which there are, and going on with one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::de::DeserializeOwned;

use super::{DIRECTORY, Lock, OrderBox, Run, StoreError, at, make_directory};

impl Run {
    /// Takes the workspace's lock and opens a run that is already there.
    pub fn reopen(workspace: &Path, id: &str, now: Timestamp) -> Result<Self, StoreError> {
        let directory = find_run(workspace, id)?;
        let lock = Lock::take(&workspace.join(DIRECTORY).join("lock"), now)?;
        make_directory(&directory.join("iterations"))?;
        Ok(Self {
            id: id.to_owned(),
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

/// The directory of a run by its name.
pub fn find_run(workspace: &Path, id: &str) -> Result<PathBuf, StoreError> {
    let no_such_run = || StoreError::NoSuchRun { id: id.to_owned() };
    // A name, not a way to somewhere else.
    if id.is_empty() || id.starts_with('.') || id.contains('/') {
        return Err(no_such_run());
    }
    let directory = workspace.join(DIRECTORY).join("runs").join(id);
    if directory.is_dir() {
        Ok(directory)
    } else {
        Err(no_such_run())
    }
}

/// The name of the run that was begun last: names sort by time.
pub fn newest_run(workspace: &Path) -> Result<String, StoreError> {
    let runs = workspace.join(DIRECTORY).join("runs");
    let entries = match fs::read_dir(&runs) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(StoreError::NoRun),
        entries => entries.map_err(at("read", &runs))?,
    };
    entries
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .max()
        .ok_or(StoreError::NoRun)
}

impl OrderBox {
    /// The inbox of a run, whoever holds it.
    pub fn open(workspace: &Path, id: &str) -> Result<Self, StoreError> {
        find_run(workspace, id).map(|run| Self::of(&run))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_run_is_found_and_goes_on_where_it_was() {
        let workspace = tempfile::tempdir().unwrap();
        assert!(matches!(newest_run(workspace.path()), Err(StoreError::NoRun)));
        for second in [1_000_000_000, 1_000_000_001] {
            drop(Run::create(workspace.path(), Timestamp::from_second(second).unwrap()).unwrap());
        }
        let id = newest_run(workspace.path()).unwrap();
        assert!(id.starts_with("20010909-014641-"), "{id}");
        let run = Run::reopen(workspace.path(), &id, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!((run.id(), run.first_free_attempt(1)), (id.as_str(), 1));
        run.iteration(1, 1).unwrap();
        assert_eq!(run.first_free_attempt(1), 2);
        for id in ["", "..", "a/b", "20010909-000000-none"] {
            let missing = find_run(workspace.path(), id);
            assert!(matches!(missing, Err(StoreError::NoSuchRun { .. })), "{id}");
        }
    }
}
