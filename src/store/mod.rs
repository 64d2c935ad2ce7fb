//! The files of runs in the state directory: journal, raw output, lock and inbox, and the files of benches. All files are
//! private to the user, and a new run never overwrites an earlier one.

mod account_report;
mod bench;
mod chain;
mod copy;
mod find;
mod fork;
mod inbox;
mod index;
mod journal;
mod journal_tail;
mod ledger;
mod lock;
mod new_run_id;
mod plan;
mod private_files;
mod project;
mod project_root;
mod raw_output;
mod remove;
mod reopen;
mod restore;
mod spending;
mod state_directory;
mod state_file;
mod sync;
mod view;

pub use account_report::{AccountReport, WindowReport};
pub use bench::BenchFiles;
use chain::VerifiedChain;
pub use chain::{BrokenChain, ChainReport, ChainState, verify_chain};
pub use copy::copy_tree;
pub use find::{LATEST, capture_context, journal_at};
pub use inbox::{Inbox, InboxEntry};
pub use index::{RunEnd, RunEntry, RunIndex, RunState, is_running, par_map, time_from_id};
pub use journal::{Journal, JournalEntry};
pub use journal_tail::JournalTail;
pub use ledger::AccountName;
pub use lock::{Lock, LockHolder, ProjectLock};
pub use new_run_id::NewRunId;
pub use plan::PlanFiles;
pub use project::Project;
pub use project_root::project_root;
pub use raw_output::{RawOutput, raw_outputs};
pub use remove::{directory_size, remove_runs};
pub use reopen::{SettingsFile, id_from_path};
pub use restore::{RestoredRecord, restore_records};
pub use spending::SpendEntry;
pub use state_directory::{STATE_VARIABLE, StateDirectory, state_directory};

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use tempfile::NamedTempFile;

use crate::files::{self, FileError, Links};
use crate::ok_or_log;

/// The directory of the project root with the link to the newest journal. Version 1 of ralph stored its runs there.
pub const DIRECTORY: &str = ".agent";

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("another ralph is running in {}: {holder}", locked_place(root.as_deref()))]
    Locked {
        holder: LockHolder,
        /// The other project, if its root contains this one or lies inside it.
        root: Option<PathBuf>,
    },
    #[error("cannot use the state directory {}: {source}", path.display())]
    StateUnusable { path: PathBuf, source: io::Error },
    #[error("{STATE_VARIABLE} must be an absolute path, but is `{}`", path.display())]
    RelativeState { path: PathBuf },
    #[error("no state directory: none of {STATE_VARIABLE}, XDG_STATE_HOME and HOME is an absolute path")]
    NoState,
    #[error("no runs found in {}", root.display())]
    NoRuns { root: PathBuf },
    #[error("run {id} belongs to the project {}", root.display())]
    OtherProject { id: String, root: PathBuf },
    #[error("run {id} cannot be resumed: it is stored in the workspace, where anyone could have changed it")]
    LegacyRun { id: String },
    #[error("refusing to use {}: {why}", path.display())]
    Refused { path: PathBuf, why: &'static str },
    #[error("run {id} already exists")]
    RunExists { id: String },
    #[error("no run id starts with `{name}`")]
    UnknownRun { name: String, newest: String },
    #[error("several run ids start with `{name}`")]
    AmbiguousRun { name: String, candidates: Vec<String> },
    #[error("{} is not a run directory: events.jsonl is missing", path.display())]
    NotARun { path: PathBuf },
    #[error("no benches found in {}", benches.display())]
    NoBenches { benches: PathBuf },
    #[error("no bench id starts with `{name}`")]
    UnknownBench { name: String, newest: String },
    #[error("several bench ids start with `{name}`")]
    AmbiguousBench { name: String, candidates: Vec<String> },
    #[error("{} is not a bench directory: bench.json is missing", path.display())]
    NotABench { path: PathBuf },
    #[error("cannot copy {} into itself", path.display())]
    CopyIntoItself { path: PathBuf },
    #[error("refusing to follow the symbolic link {}", path.display())]
    Symlink { path: PathBuf },
    #[error("cannot {action} {}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

fn locked_place(root: Option<&Path>) -> String {
    match root {
        None => "this project".to_owned(),
        Some(root) => format!("{}, which overlaps with this project", root.display()),
    }
}

/// The directory of a run, and the lock of its project.
#[derive(Debug)]
pub struct Run {
    id: String,
    directory: PathBuf,
    project: Project,
    verified: OnceLock<VerifiedChain>,
    /// The journal, locked while this process executes the run.
    _alive: File,
    /// Held until the run is dropped.
    _lock: ProjectLock,
}

impl Run {
    /// Locks the project and creates a run directory.
    pub fn create(project: &Project, now: Timestamp) -> Result<Self, StoreError> {
        let lock = project.lock(now)?;
        let (id, directory) = create_run_directory(&project.runs(), now)?;
        private_files::create_directory(&directory.join("iterations"))?;
        Self::locked(project, id, directory, lock)
    }

    /// Locks the project and creates the run directory of this id, which must not exist.
    pub fn create_with_id(project: &Project, id: &NewRunId, now: Timestamp) -> Result<Self, StoreError> {
        let lock = project.lock(now)?;
        let id = id.as_str().to_owned();
        let directory = project.runs().join(&id);
        match DirBuilder::new().mode(0o700).create(&directory) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(StoreError::RunExists { id });
            }
            Err(source) => return Err(io_error("create", &directory)(source)),
        }
        private_files::create_directory(&directory.join("iterations"))?;
        Self::locked(project, id, directory, lock)
    }

    /// Marks the run as running by locking its journal.
    fn locked(
        project: &Project,
        id: String,
        directory: PathBuf,
        lock: ProjectLock,
    ) -> Result<Self, StoreError> {
        let journal = directory.join("events.jsonl");
        let mut alive = restore::open_for_append(&journal)?;
        if !lock::try_lock_file(&mut alive, &journal)? {
            let holder = project.holder();
            let holder = holder.unwrap_or(LockHolder::UNKNOWN);
            return Err(StoreError::Locked { holder, root: None });
        }
        Ok(Self {
            id,
            directory,
            project: project.clone(),
            verified: OnceLock::new(),
            _alive: alive,
            _lock: lock,
        })
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The inbox for commands to this run.
    pub fn inbox(&self) -> Inbox {
        Inbox::new(&self.directory)
    }

    /// The inbox for events that a confined agent publishes. Other commands in it are refused.
    pub fn agent_inbox(&self) -> Inbox {
        Inbox::at(self.directory.join("agent-inbox"))
    }

    /// The project that the run belongs to.
    pub fn project(&self) -> &Project {
        &self.project
    }

    /// Opens the journal for appending and links `.agent/events.jsonl` in the project root to it.
    pub fn journal(&self) -> Result<Journal, StoreError> {
        let path = self.journal_path();
        let journal = Journal::append_verified(&path, self.verified.get())?;
        // The link is a convenience: the run does not depend on it.
        ok_or_log!(
            view::link_journal(&self.project, &path),
            "cannot link the journal in .agent"
        );
        Ok(journal)
    }

    /// Writes `run.json`.
    pub fn write_settings(&self, file: &SettingsFile) -> Result<(), StoreError> {
        replace_file(&self.directory.join("run.json"), file.text())
    }

    /// Opens the debug log for appending.
    pub fn debug_log(&self) -> Result<File, StoreError> {
        private_files::open_with(
            OpenOptions::new().append(true).create(true),
            &debug_log_of(&self.directory),
        )
    }

    pub fn write_summary(&self, text: &str) -> Result<(), StoreError> {
        // An agent can replace the directory by a link.
        private_files::check_directory(&self.directory)?;
        replace_file(&self.directory.join("summary.md"), text.as_bytes())
    }

    pub fn write_receipt(&self, text: &[u8]) -> Result<(), StoreError> {
        private_files::check_directory(&self.directory)?;
        let path = receipt_of(&self.directory);
        // It belongs to an earlier receipt.
        let _ = std::fs::remove_file(path.with_extension("json.sig"));
        replace_file(&path, text)
    }

    /// Creates the directory of one attempt at an iteration. Each attempt has its own directory.
    pub fn create_iteration(&self, iteration: u64, attempt: u64) -> Result<IterationFiles, StoreError> {
        let directory = self.iteration_directory(iteration, attempt);
        private_files::create_directory(&directory)?;
        Ok(IterationFiles { directory })
    }

    /// Creates the directory of a reviewer, below that of the attempt that is reviewed.
    pub fn create_review(
        &self,
        iteration: u64,
        attempt: u64,
        number: u64,
    ) -> Result<IterationFiles, StoreError> {
        let attempt = self.iteration_directory(iteration, attempt);
        private_files::check_directory(&attempt)?;
        let directory = attempt.join(format!("review-{number}"));
        private_files::create_directory(&directory)?;
        Ok(IterationFiles { directory })
    }

    fn iteration_directory(&self, iteration: u64, attempt: u64) -> PathBuf {
        let name = attempt_directory_name(iteration, attempt);
        self.directory.join("iterations").join(name)
    }
}

/// The name of the directory of an attempt: `0003`, `0003-2`. Attempts count from 1.
pub fn attempt_directory_name(iteration: u64, attempt: u64) -> String {
    match attempt {
        0 | 1 => format!("{iteration:04}"),
        attempt => format!("{iteration:04}-{attempt}"),
    }
}

/// Parses the sequence number at the start of a journal line: `{"seq":12,…`.
pub fn record_seq(line: &[u8]) -> Option<u64> {
    let digits = line.strip_prefix(b"{\"seq\":")?;
    // A number at the end of a truncated line may be incomplete.
    let length = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    std::str::from_utf8(&digits[..length]).ok()?.parse().ok()
}

/// The path of a run's receipt, which may not exist.
pub fn receipt_of(run: &Path) -> PathBuf {
    run.join("receipt.json")
}

/// The path of a run's debug log, which may not exist.
pub fn debug_log_of(run: &Path) -> PathBuf {
    run.join("debug.log")
}

/// The files of one attempt at an iteration.
#[derive(Debug, Clone)]
pub struct IterationFiles {
    directory: PathBuf,
}

impl IterationFiles {
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The path of the prompt, which may not have been written yet.
    pub fn prompt_path(&self) -> PathBuf {
        self.directory.join("prompt.md")
    }

    pub fn write_prompt(&self, prompt: &str) -> Result<PathBuf, StoreError> {
        let path = self.prompt_path();
        write_new(&path, prompt.as_bytes())?;
        Ok(path)
    }

    /// The path of the agent's raw output, which may not have been created yet.
    pub fn stdout_path(&self) -> PathBuf {
        self.directory.join("stdout.raw")
    }

    pub fn raw_stdout(&self) -> Result<RawOutput, StoreError> {
        RawOutput::create(self.stdout_path())
    }

    pub fn raw_stderr(&self) -> RawOutput {
        RawOutput::on_first_byte(self.directory.join("stderr.raw"))
    }

    pub fn write_outcome(&self, outcome: &impl Serialize) -> Result<(), StoreError> {
        // Not synced, because the journal contains the same outcome and is synced.
        let path = self.directory.join("outcome.json");
        let written = json_text(outcome).and_then(|text| replace_file_unsynced(&path, &text));
        written.map(drop).map_err(io_error("write", &path))
    }
}

/// Creates a directory with a unique id such as `20261115-204501-k3f9`. The id sorts after all existing ids, even if two
/// runs start within one second or the clock was set back, so the run that started last is the newest one.
fn create_run_directory(runs: &Path, now: Timestamp) -> Result<(String, PathBuf), StoreError> {
    let newest = find::ids_in(runs).iter().rev().find_map(|id| time_from_id(id));
    let after_newest = newest.and_then(|newest| newest.checked_add(Duration::from_secs(1)).ok());
    let stamp = after_newest.map_or(now, |after| after.max(now));
    let stamp = stamp.strftime("%Y%m%d-%H%M%S");
    for _ in 0..100 {
        let suffix: String = std::iter::repeat_with(fastrand::alphanumeric).take(4).collect();
        let id = format!("{stamp}-{}", suffix.to_ascii_lowercase());
        let directory = runs.join(&id);
        match DirBuilder::new().mode(0o700).create(&directory) {
            Ok(()) => return Ok((id, directory)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(source) => return Err(io_error("create", &directory)(source)),
        }
    }
    Err(io_error("create", runs)(io::Error::other("no unused id found")))
}

/// Creates a file with mode 0600. Fails if it already exists.
fn create_new(path: &Path) -> Result<File, StoreError> {
    OpenOptions::new()
        .append(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(io_error("create", path))
}

fn write_new(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    create_new(path)?
        .write_all(bytes)
        .map_err(io_error("write", path))
}

fn json_text(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    Ok(text)
}

/// Replaces a file atomically: readers see the old or the new content, even after a power failure.
fn replace_file(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let write = || {
        let file = write_temporary_file(path, bytes)?;
        file.as_file().sync_data()?;
        file.persist(path).map_err(|error| error.error)
    };
    write().map(drop).map_err(io_error("write", path))
}

/// Like `replace_file`, but a power failure may lose the file.
fn replace_file_unsynced(path: &Path, bytes: &[u8]) -> io::Result<File> {
    write_temporary_file(path, bytes)?
        .persist(path)
        .map_err(|error| error.error)
}

fn write_temporary_file(path: &Path, bytes: &[u8]) -> io::Result<NamedTempFile> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(directory)?;
    file.write_all(bytes)?;
    Ok(file)
}

/// Opens a file for reading that must be a regular one.
fn open_file(path: &Path) -> Result<File, StoreError> {
    files::open(path, Links::Follow)
        .map_err(FileError::into_io)
        .map_err(io_error("read", path))
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Io { action, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn now() -> Timestamp {
        "2026-11-15T20:45:01Z".parse().unwrap()
    }

    fn project(base: &Path) -> Project {
        StateDirectory::at(base.join("state")).project(base)
    }

    #[test]
    fn run_files_are_private() {
        let base = tempfile::tempdir().unwrap();
        let run = Run::create(&project(base.path()), now()).unwrap();
        assert!(run.id().starts_with("20261115-204501-"), "{}", run.id());
        run.journal().unwrap();
        let files = run.create_iteration(1, 1).unwrap();
        let prompt = files.write_prompt("hello").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&prompt), 0o600);
        assert_eq!(mode(run.directory()), 0o700);
        assert_eq!(mode(&run.directory().join("events.jsonl")), 0o600);
    }

    #[test]
    fn run_that_started_last_is_the_newest_even_if_the_clock_was_set_back() {
        let base = tempfile::tempdir().unwrap();
        let project = project(base.path());
        let hour = Duration::from_secs(3600);
        let times = [now(), now(), now() - hour, now() - hour, now() + hour];
        for time in times {
            let id = Run::create(&project, time).unwrap().id().to_owned();
            let newest = project.find_run(LATEST).unwrap();
            assert_eq!(newest.file_name().unwrap().to_str(), Some(id.as_str()));
        }
    }

    #[test]
    fn second_attempt_keeps_the_files_of_the_first() {
        let base = tempfile::tempdir().unwrap();
        let run = Run::create(&project(base.path()), now()).unwrap();
        run.create_iteration(3, 1).unwrap().write_prompt("first").unwrap();
        run.create_iteration(3, 2)
            .unwrap()
            .write_prompt("second")
            .unwrap();
        let read = |name| fs::read_to_string(run.directory().join("iterations").join(name)).unwrap();
        assert_eq!(
            (read("0003/prompt.md"), read("0003-2/prompt.md")),
            ("first".into(), "second".into())
        );
        let overwritten = run.create_iteration(3, 1).unwrap().write_prompt("overwrite");
        assert!(overwritten.is_err());
    }

    #[test]
    fn summary_is_not_written_through_a_link_in_place_of_the_run() {
        let base = tempfile::tempdir().unwrap();
        let project = StateDirectory::at(base.path().join("state")).project(base.path());
        let run = Run::create(&project, Timestamp::UNIX_EPOCH).unwrap();
        let elsewhere = base.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        fs::rename(run.directory(), base.path().join("moved")).unwrap();
        std::os::unix::fs::symlink(&elsewhere, run.directory()).unwrap();
        assert!(matches!(
            run.write_summary("text"),
            Err(StoreError::Symlink { .. })
        ));
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    }

    #[test]
    fn unusable_state_directory_is_an_error_and_an_unusable_view_is_not() {
        let base = tempfile::tempdir().unwrap();
        fs::write(base.path().join(".agent"), "a file").unwrap();
        let run = Run::create(&project(base.path()), now()).unwrap();
        run.journal().unwrap();
        drop(run);
        fs::remove_dir_all(base.path().join("state")).unwrap();
        fs::write(base.path().join("state"), "a file").unwrap();
        let error = Run::create(&project(base.path()), now()).unwrap_err().to_string();
        assert!(error.starts_with("cannot use the state directory "), "{error}");
    }
}
