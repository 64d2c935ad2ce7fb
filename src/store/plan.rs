//! The files of a plan: a directory per execution with a journal, a lock and an inbox. The newest one is current.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::bench::{append_line, read_lines};
use super::find::ids_in;
use super::{
    Lock, LockHolder, Project, StoreError, create_run_directory, io_error, private_files, replace_file,
};

const JOURNAL: &str = "plan.jsonl";
/// Maximum size of a command in the inbox.
const MAX_COMMAND: u64 = 1 << 16;

/// The files of one execution of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanFiles {
    directory: PathBuf,
}

impl PlanFiles {
    /// Creates the directory of a new execution of the plan with this name.
    pub fn create(project: &Project, name: &str, now: Timestamp) -> Result<Self, StoreError> {
        project.create()?;
        let plans = project.directory().join("plans");
        private_files::create_directory(&plans)?;
        let plan = plans.join(name);
        private_files::create_directory(&plan)?;
        let (_, directory) = create_run_directory(&plan, now)?;
        Ok(Self { directory })
    }

    /// The newest execution of a plan.
    pub fn newest(project: &Project, name: &str) -> Option<Self> {
        let plan = project.directory().join("plans").join(name);
        let ids = ids_in(&plan).into_iter().rev();
        let mut all = ids.map(|id| Self {
            directory: plan.join(id),
        });
        all.find(|files| files.journal_path().is_file())
    }

    /// The names of the project's plans, the most recently started first.
    pub fn names(project: &Project) -> Vec<String> {
        let plans = project.directory().join("plans");
        let Ok(entries) = fs::read_dir(&plans) else {
            return Vec::new();
        };
        let names = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok());
        let mut started: Vec<(String, String)> = names
            .filter_map(|name| Some((ids_in(&plans.join(&name)).pop()?, name)))
            .collect();
        started.sort_unstable();
        started.into_iter().rev().map(|(_, name)| name).collect()
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub fn journal_path(&self) -> PathBuf {
        self.directory.join(JOURNAL)
    }

    /// Locks the plan, so that only one process runs it, whichever execution.
    pub fn lock(&self, now: Timestamp) -> Result<Lock, StoreError> {
        Lock::acquire(&self.lock_path(), now)
    }

    /// The process that runs the plan.
    pub fn holder(&self) -> Option<LockHolder> {
        Lock::holder(&self.lock_path())
    }

    fn lock_path(&self) -> PathBuf {
        self.directory.with_file_name("lock")
    }

    /// Appends a record to the journal and syncs it.
    pub fn append(&self, record: &impl Serialize) -> Result<(), StoreError> {
        append_line(&self.journal_path(), record)
    }

    /// All records, without lines that cannot be parsed.
    pub fn records<Record: DeserializeOwned>(&self) -> Result<Vec<Record>, StoreError> {
        read_lines(&self.journal_path())
    }

    /// Adds a command to the inbox. File names start with the time.
    pub fn put_command(&self, command: &impl Serialize, now: Timestamp) -> Result<(), StoreError> {
        let inbox = self.directory.join("inbox");
        private_files::create_directory(&inbox)?;
        let name = format!(
            "{:020}-{:04x}.json",
            now.as_nanosecond().max(0),
            fastrand::u16(..)
        );
        let path = inbox.join(name);
        let text = super::json_text(command).map_err(io_error("write", &path))?;
        replace_file(&path, &text)
    }

    /// The commands in the inbox, oldest first, with their file names. A file that cannot be parsed is removed.
    pub fn commands<Command: DeserializeOwned>(&self) -> Vec<(String, Command)> {
        let inbox = self.directory.join("inbox");
        let Ok(entries) = fs::read_dir(&inbox) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| name.ends_with(".json"))
            .collect();
        names.sort_unstable();
        let read = |name: String| {
            let bytes = private_files::read(&inbox.join(&name), MAX_COMMAND).ok()?;
            match serde_json::from_slice(&bytes) {
                Ok(command) => Some((name, command)),
                Err(_) => {
                    self.remove_command(&name);
                    None
                }
            }
        };
        names.into_iter().filter_map(read).collect()
    }

    pub fn remove_command(&self, name: &str) {
        // The journal contains the id, so that a file that cannot be removed is not applied again.
        let removed = fs::remove_file(self.directory.join("inbox").join(name));
        crate::ok_or_log!(removed, "cannot remove a command from the inbox");
    }
}
