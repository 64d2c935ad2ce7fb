//! Memory: everything a run leaves on disk, under `.agent/` in the workspace. Private to the user; append-only;
//! never overwrites an earlier run. Knows records and bytes, not what they mean.

mod bench;
mod copy;
mod discard;
mod find;
mod inbox;
mod index;
mod journal;
mod lock;
mod past;
mod raw;
mod restore;
mod sync;
mod tail;

pub use bench::BenchFiles;
pub use copy::copy_tree;
pub use discard::{Discarded, discard, size_of};
pub use find::{CaptureContext, LATEST, context_of_capture, find_run, journal_at};
pub use inbox::{Found, Inbox};
pub use index::{Ending, RunEntry, RunIndex, State, is_at_work, par_map, time_of};
pub use journal::{Entry, Journal};
pub use lock::{Holder, Lock};
pub use past::id_of;
pub use raw::{RawFile, RawOutput, raw_outputs};
pub use restore::{RestoredRecord, recall};
pub use tail::Tail;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use tempfile::NamedTempFile;

/// The name of the directory in the workspace that holds all runs.
pub const DIRECTORY: &str = ".agent";

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("another ralph is at work in this directory: {holder}")]
    Locked { holder: Holder },
    #[error("there is no run in {}", runs.display())]
    NoRuns { runs: PathBuf },
    #[error("no run has an id that begins with `{name}`")]
    UnknownRun { name: String, newest: String },
    #[error("more than one run has an id that begins with `{name}`")]
    AmbiguousRun { name: String, candidates: Vec<String> },
    #[error("{} is not the directory of a run: it has no events.jsonl", path.display())]
    NotARun { path: PathBuf },
    #[error("there is no bench in {}", benches.display())]
    NoBenches { benches: PathBuf },
    #[error("no bench has an id that begins with `{name}`")]
    UnknownBench { name: String, newest: String },
    #[error("more than one bench has an id that begins with `{name}`")]
    AmbiguousBench { name: String, candidates: Vec<String> },
    #[error("{} is not the directory of a bench: it has no bench.json", path.display())]
    NotABench { path: PathBuf },
    #[error("{} cannot be copied into a directory inside it", path.display())]
    CopyIntoItself { path: PathBuf },
    #[error("{} is a symbolic link", path.display())]
    LeadsElsewhere { path: PathBuf },
    #[error("cannot {action} {}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

/// One run on disk.
#[derive(Debug)]
pub struct Run {
    id: String,
    directory: PathBuf,
    /// Held as long as the run lives.
    _lock: Lock,
}

impl Run {
    /// Takes the workspace's lock and makes the run's directory.
    pub fn create(workspace: &Path, now: Timestamp) -> Result<Self, StoreError> {
        let agent = workspace.join(DIRECTORY);
        let runs = agent.join("runs");
        make_directory(&runs)?;
        // Runs are the user's own: no `git status`, and no `git add -A` of an agent, should pick them up.
        write_new(&agent.join(".gitignore"), b"*\n").or_else(unless_present)?;
        let lock = Lock::take(&agent.join("lock"), now)?;
        let (id, directory) = make_run_directory(&runs, now)?;
        make_directory(&directory.join("iterations"))?;
        Ok(Self {
            id,
            directory,
            _lock: lock,
        })
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Opens the inbox through which the user speaks to this run.
    pub fn orders(&self) -> Inbox {
        Inbox::of(&self.directory)
    }

    /// Opens the journal, and points `.agent/events.jsonl` at it.
    pub fn journal(&self) -> Result<Journal, StoreError> {
        let journal = Journal::append(&self.journal_path())?;
        let link = self.directory.join("../../events.jsonl");
        let target = Path::new("runs").join(&self.id).join("events.jsonl");
        replace_link(&link, &target).map_err(at("link", &link))?;
        Ok(journal)
    }

    /// Writes the versioned header of the run.
    pub fn write_header(&self, header: &impl Serialize) -> Result<(), StoreError> {
        self.write_json(&self.directory.join("run.json"), header)
    }

    pub fn write_summary(&self, text: &str) -> Result<(), StoreError> {
        replace(&self.directory.join("summary.md"), text.as_bytes())
    }

    /// Makes the directory of one try of an iteration. A later try never overwrites an earlier one.
    pub fn iteration(&self, iteration: u64, attempt: u64) -> Result<IterationFiles, StoreError> {
        let directory = self.iteration_directory(iteration, attempt);
        make_directory(&directory)?;
        Ok(IterationFiles { directory })
    }

    fn iteration_directory(&self, iteration: u64, attempt: u64) -> PathBuf {
        let name = match attempt {
            1 => format!("{iteration:04}"),
            attempt => format!("{iteration:04}-{attempt}"),
        };
        self.directory.join("iterations").join(name)
    }

    fn write_json(&self, path: &Path, value: &impl Serialize) -> Result<(), StoreError> {
        replace(path, &json_text(value).map_err(at("write", path))?)
    }
}

/// The files of one try of an iteration.
#[derive(Debug, Clone)]
pub struct IterationFiles {
    directory: PathBuf,
}

impl IterationFiles {
    /// Where the prompt is, or will be.
    pub fn prompt_path(&self) -> PathBuf {
        self.directory.join("prompt.md")
    }

    pub fn write_prompt(&self, prompt: &str) -> Result<PathBuf, StoreError> {
        let path = self.prompt_path();
        write_new(&path, prompt.as_bytes())?;
        Ok(path)
    }

    /// Where the agent's output is, or will be.
    pub fn stdout_path(&self) -> PathBuf {
        self.directory.join("stdout.raw")
    }

    pub fn raw_stdout(&self) -> Result<RawOutput, StoreError> {
        RawOutput::create(&self.stdout_path())
    }

    pub fn raw_stderr(&self) -> Result<RawOutput, StoreError> {
        RawOutput::create(&self.directory.join("stderr.raw"))
    }

    pub fn write_outcome(&self, outcome: &impl Serialize) -> Result<(), StoreError> {
        // Not synced: the journal has the same verdict, and is.
        let path = self.directory.join("outcome.json");
        let written = json_text(outcome).and_then(|text| replace_unsynced(&path, &text));
        written.map(drop).map_err(at("write", &path))
    }
}

/// A name that sorts by time and does not repeat: `20261115-204501-k3f9`. It sorts after every earlier one, even if two
/// runs begin in one second or the clock was set back: the newest run is the one that began last.
fn make_run_directory(runs: &Path, now: Timestamp) -> Result<(String, PathBuf), StoreError> {
    let newest = find::ids_in(runs).iter().rev().find_map(|id| time_of(id));
    let after_newest = newest.and_then(|newest| newest.checked_add(Duration::from_secs(1)).ok());
    let stamp = after_newest.map_or(now, |after| after.max(now));
    let stamp = stamp.strftime("%Y%m%d-%H%M%S");
    for _ in 0..100 {
        let tail: String = std::iter::repeat_with(fastrand::alphanumeric).take(4).collect();
        let id = format!("{stamp}-{}", tail.to_ascii_lowercase());
        let directory = runs.join(&id);
        match DirBuilder::new().mode(0o700).create(&directory) {
            Ok(()) => return Ok((id, directory)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(source) => return Err(at("create", &directory)(source)),
        }
    }
    Err(at("create", runs)(io::Error::other("no free run name")))
}

fn make_directory(path: &Path) -> Result<(), StoreError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(at("create", path))
}

/// A private file that must not exist yet.
fn create_new(path: &Path) -> Result<File, StoreError> {
    OpenOptions::new()
        .append(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(at("create", path))
}

/// For a file that may be there already: one that a link leads to is not ours, whoever put the link there.
const NO_LINKS: i32 = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();

/// What was in the way of opening a file with `NO_LINKS`.
fn unless_a_link(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| {
        if path.is_symlink() {
            StoreError::LeadsElsewhere { path }
        } else {
            StoreError::Io { action, path, source }
        }
    }
}

fn write_new(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    create_new(path)?.write_all(bytes).map_err(at("write", path))
}

fn json_text(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    Ok(text)
}

/// Replaces a whole file at once: a reader sees the old one or the new one, never half of it, after a power cut too.
fn replace(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let write = || {
        let file = written_beside(path, bytes)?;
        file.as_file().sync_data()?;
        file.persist(path).map_err(|error| error.error)
    };
    write().map(drop).map_err(at("write", path))
}

/// The same, where a power cut may take the file away.
fn replace_unsynced(path: &Path, bytes: &[u8]) -> io::Result<File> {
    written_beside(path, bytes)?
        .persist(path)
        .map_err(|error| error.error)
}

fn written_beside(path: &Path, bytes: &[u8]) -> io::Result<NamedTempFile> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(directory)?;
    file.write_all(bytes)?;
    Ok(file)
}

fn replace_link(link: &Path, target: &Path) -> io::Result<()> {
    let fresh = link.with_extension(format!("new-{}", std::process::id()));
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    std::os::unix::fs::symlink(target, &fresh)?;
    fs::rename(&fresh, link)
}

fn unless_present(error: StoreError) -> Result<(), StoreError> {
    match &error {
        StoreError::Io { source, .. } if source.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        _ => Err(error),
    }
}

fn at(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Io { action, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn now() -> Timestamp {
        "2026-11-15T20:45:01Z".parse().unwrap()
    }

    #[test]
    fn a_run_has_private_files_and_the_newest_journal_is_linked() {
        let workspace = tempfile::tempdir().unwrap();
        let run = Run::create(workspace.path(), now()).unwrap();
        assert!(run.id().starts_with("20261115-204501-"), "{}", run.id());
        run.journal().unwrap();
        let files = run.iteration(1, 1).unwrap();
        let prompt = files.write_prompt("hello").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&prompt), 0o600);
        assert_eq!(mode(run.directory()), 0o700);
        assert_eq!(mode(&run.directory().join("events.jsonl")), 0o600);
        let linked = fs::canonicalize(workspace.path().join(".agent/events.jsonl")).unwrap();
        assert_eq!(
            linked,
            fs::canonicalize(run.directory().join("events.jsonl")).unwrap()
        );
        assert_eq!(
            fs::read_to_string(workspace.path().join(".agent/.gitignore")).unwrap(),
            "*\n"
        );
    }

    #[test]
    fn the_newest_run_is_the_one_that_began_last_whatever_the_clock_says() {
        let workspace = tempfile::tempdir().unwrap();
        let an_hour = Duration::from_secs(3600);
        let times = [now(), now(), now() - an_hour, now() - an_hour, now() + an_hour];
        for time in times {
            let id = Run::create(workspace.path(), time).unwrap().id().to_owned();
            let newest = find_run(workspace.path(), LATEST).unwrap();
            assert_eq!(newest.file_name().unwrap().to_str(), Some(id.as_str()));
        }
    }

    #[test]
    fn a_second_try_of_an_iteration_keeps_the_first_ones_files() {
        let workspace = tempfile::tempdir().unwrap();
        let run = Run::create(workspace.path(), now()).unwrap();
        run.iteration(3, 1).unwrap().write_prompt("first").unwrap();
        run.iteration(3, 2).unwrap().write_prompt("second").unwrap();
        let read = |name| fs::read_to_string(run.directory().join("iterations").join(name)).unwrap();
        assert_eq!(
            (read("0003/prompt.md"), read("0003-2/prompt.md")),
            ("first".into(), "second".into())
        );
        let again = run.iteration(3, 1).unwrap().write_prompt("overwrite");
        assert!(again.is_err());
    }

    #[test]
    fn an_unwritable_workspace_is_named() {
        let workspace = tempfile::tempdir().unwrap();
        fs::write(workspace.path().join(".agent"), "a file").unwrap();
        let error = Run::create(workspace.path(), now()).unwrap_err().to_string();
        assert!(
            error.starts_with("cannot create ") && error.ends_with(".agent/runs"),
            "{error}"
        );
    }
}
