//! Reopening an earlier run to resume it.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::chain::Chain;
use super::{Project, Run, StoreError, find, io_error, json_text, private_files};

/// Maximum size of `run.json`.
const MAX_SETTINGS_BYTES: u64 = 16 << 20;
/// Maximum size of an `outcome.json`.
const MAX_OUTCOME_BYTES: u64 = 16 << 20;

/// The content of `run.json`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsFile(Vec<u8>);

impl SettingsFile {
    pub fn new(contents: &impl Serialize) -> Result<Self, StoreError> {
        let text = json_text(contents).map_err(io_error("write", Path::new("run.json")))?;
        Ok(Self(text))
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.0
    }

    /// The hash that the journal stores.
    pub fn sha256(&self) -> String {
        let mut hash = Chain::default();
        hash.update(&self.0);
        hash.head()
    }

    /// The contents; `None` if they are malformed.
    pub fn parse<Contents: DeserializeOwned>(&self) -> Option<Contents> {
        serde_json::from_slice(&self.0).ok()
    }
}

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

    /// Reads `run.json`; `None` if it is missing or unreadable.
    pub fn read_settings(&self) -> Option<SettingsFile> {
        let path = self.directory.join("run.json");
        private_files::read(&path, MAX_SETTINGS_BYTES)
            .ok()
            .map(SettingsFile)
    }

    /// Reads every `outcome.json`, in the order of the iterations.
    pub fn stored_outcomes<Outcome: DeserializeOwned>(&self) -> Vec<Outcome> {
        let iterations = self.directory.join("iterations");
        let read = |name: &String| {
            let path = iterations.join(name).join("outcome.json");
            let bytes = private_files::read(&path, MAX_OUTCOME_BYTES).ok()?;
            serde_json::from_slice(&bytes).ok()
        };
        find::ids_in(&iterations).iter().filter_map(read).collect()
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
