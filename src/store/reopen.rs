//! Reopening an earlier run to resume it.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::de::DeserializeOwned;

use super::{Project, Run, StoreError, private_files};

/// Maximum size of `run.json`.
const MAX_HEADER_BYTES: u64 = 16 << 20;

impl Run {
    /// Locks the project and opens an existing run of it. `name` is an id, a unique prefix of one, or `latest`.
    pub fn reopen(project: &Project, name: &str, now: Timestamp) -> Result<Self, StoreError> {
        let directory = project.find_own_run(name)?;
        let lock = project.lock(now)?;
        private_files::check_directory(&directory)?;
        private_files::create_directory(&directory.join("iterations"))?;
        let id = id_from_path(&directory);
        Self::locked(project, id, directory, lock)
    }

    pub fn journal_path(&self) -> PathBuf {
        self.directory.join("events.jsonl")
    }

    /// Reads the run's header; `None` if it is missing or unreadable.
    pub fn read_header<Header: DeserializeOwned>(&self) -> Option<Header> {
        let bytes = private_files::read(&self.directory.join("run.json"), MAX_HEADER_BYTES).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// The lowest attempt number of an iteration that has no directory yet.
    pub fn first_free_attempt(&self, iteration: u64) -> u64 {
        let mut attempt = 1;
        while self.iteration_directory(iteration, attempt).exists() {
            attempt += 1;
        }
        attempt
    }
}

/// The id of the run or bench with this directory.
pub fn id_from_path(directory: &Path) -> String {
    directory
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{LATEST, StateDirectory};

    #[test]
    fn newest_run_is_found_and_reopened() {
        let base = tempfile::tempdir().unwrap();
        let project = StateDirectory::at(base.path().join("state")).project(base.path());
        for second in [1_000_000_000, 1_000_000_001] {
            drop(Run::create(&project, Timestamp::from_second(second).unwrap()).unwrap());
        }
        let run = Run::reopen(&project, LATEST, Timestamp::UNIX_EPOCH).unwrap();
        assert!(run.id().starts_with("20010909-014641-"), "{}", run.id());
        assert_eq!(run.first_free_attempt(1), 1);
        run.create_iteration(1, 1).unwrap();
        assert_eq!(run.first_free_attempt(1), 2);
    }
}
