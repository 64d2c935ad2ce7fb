//! The locks that allow one loop per project. They are kernel file locks, which are released however their process ends.
//! The content of a lock file only identifies the process.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};

use super::{Project, StoreError, io_error, private_files};

/// A held lock. Dropping it releases the lock.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

/// The process that holds a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockHolder {
    pub pid: u32,
    pub since: Timestamp,
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            0 => f.write_str("a process that is just starting"),
            pid => write!(
                f,
                "process {pid}, since {}",
                self.since.strftime("%Y-%m-%d %H:%M:%S UTC")
            ),
        }
    }
}

impl LockHolder {
    /// A process that has not written its identity.
    pub(super) const UNKNOWN: Self = Self {
        pid: 0,
        since: Timestamp::UNIX_EPOCH,
    };

    fn is_alive(&self) -> bool {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
    }
}

/// If a process is killed while it starts a child, the child inherits the lock until it calls `exec`. This is how long
/// to wait for that, and for a process that has not written its identity yet.
const INHERITED_LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// `Lock::holder` acquires a lock for a moment. A lock that is held longer than this belongs to its holder.
const PROBE_TIMEOUT: Duration = Duration::from_millis(100);
const RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// How a lock is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LockMode {
    Exclusive,
    Shared,
}

impl Lock {
    pub(super) fn acquire(path: &Path, now: Timestamp) -> Result<Self, StoreError> {
        let mut file = open_lock_file(path)?;
        if !try_lock(&mut file, path, LockMode::Exclusive)? {
            let holder = read_holder(&mut file);
            return Err(StoreError::Locked { holder, root: None });
        }
        let holder = LockHolder {
            pid: std::process::id(),
            since: now,
        };
        let text = serde_json::to_vec(&holder).unwrap_or_default();
        let write = |file: &mut File| {
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(&text)
        };
        write(&mut file).map_err(io_error("write", path))?;
        Ok(Self { file })
    }

    /// Returns the process that holds the lock at this path, or `None` if the lock is free.
    pub fn holder(path: &Path) -> Option<LockHolder> {
        let mut file = private_files::open(path).ok()?;
        is_locked(&file).then(|| read_holder(&mut file))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Otherwise the next process would report this process, which may still exist, as the holder.
        crate::ok_or_log!(self.file.set_len(0), "cannot clear the lock file");
    }
}

/// Returns whether another open file holds an exclusive lock on this file.
pub(super) fn is_locked(file: &File) -> bool {
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// Locks this file exclusively; `false` if another process holds the lock.
pub(super) fn try_lock_file(file: &mut File, path: &Path) -> Result<bool, StoreError> {
    try_lock(file, path, LockMode::Exclusive)
}

/// The locks of a project in which a loop runs.
#[derive(Debug)]
pub struct ProjectLock {
    _own: Lock,
    _nesting: NestingLocks,
}

impl ProjectLock {
    pub(super) fn new(own: Lock, nesting: NestingLocks) -> Self {
        Self {
            _own: own,
            _nesting: nesting,
        }
    }
}

/// One file per directory from the root up to `/`: exclusively locked for the project root, shared for the directories
/// above it. So roots that contain each other exclude each other, and roots side by side do not.
#[derive(Debug)]
pub(super) struct NestingLocks {
    _files: Vec<File>,
}

impl NestingLocks {
    pub(super) fn acquire(project: &Project) -> Result<Self, StoreError> {
        private_files::create_directory(&project.state().path().join("locks"))?;
        let mut locked = Vec::new();
        for (index, directory) in project.root().ancestors().enumerate() {
            let path = project.nesting_lock_path(directory);
            let mode = match index {
                0 => LockMode::Exclusive,
                _ => LockMode::Shared,
            };
            let mut file = open_lock_file(&path)?;
            if !try_lock(&mut file, &path, mode)? {
                let (root, holder) = match project.overlapping() {
                    Some((other, holder)) => (Some(other.root().to_owned()), holder),
                    None => (None, LockHolder::UNKNOWN),
                };
                return Err(StoreError::Locked { holder, root });
            }
            locked.push(file);
        }
        Ok(Self { _files: locked })
    }
}

/// Opens a lock file, which is not truncated, because its content belongs to the process that holds the lock.
fn open_lock_file(path: &Path) -> Result<File, StoreError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    private_files::open_with(&options, path)
}

/// Returns `false` if another process holds the lock. Waits for a process that only checks it, and for the children of
/// one that was killed.
fn try_lock(file: &mut File, path: &Path, mode: LockMode) -> Result<bool, StoreError> {
    try_lock_with(file, path, mode, || std::thread::sleep(RETRY_INTERVAL))
}

/// Like `try_lock`, with a function that waits before the next try.
fn try_lock_with(
    file: &mut File,
    path: &Path,
    mode: LockMode,
    mut wait: impl FnMut(),
) -> Result<bool, StoreError> {
    let start = Instant::now();
    loop {
        let locked = match mode {
            LockMode::Exclusive => file.try_lock(),
            LockMode::Shared => file.try_lock_shared(),
        };
        match locked {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) => {
                let timeout = match read_holder(file).is_alive() {
                    true => PROBE_TIMEOUT,
                    false => INHERITED_LOCK_TIMEOUT,
                };
                if start.elapsed() > timeout {
                    return Ok(false);
                }
                wait();
            }
            Err(TryLockError::Error(source)) => return Err(io_error("lock", path)(source)),
        }
    }
}

/// Reads the holder from the lock file. The pid is 0 if the holder has not written it yet.
fn read_holder(file: &mut File) -> LockHolder {
    let mut text = String::new();
    let read = file.rewind().and_then(|()| file.read_to_string(&mut text)).ok();
    let holder = read.and_then(|_| serde_json::from_str(&text).ok());
    holder.unwrap_or(LockHolder::UNKNOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_names_the_process_that_holds_the_lock() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let now: Timestamp = "2026-11-15T20:45:01Z".parse().unwrap();
        assert_eq!(Lock::holder(&path), None);
        let lock = Lock::acquire(&path, now).unwrap();
        let error = Lock::acquire(&path, now).unwrap_err().to_string();
        let expected = format!("process {}, since 2026-11-15 20:45:01 UTC", std::process::id());
        assert!(error.ends_with(&expected), "{error}");
        assert_eq!(
            Lock::holder(&path).map(|holder| holder.pid),
            Some(std::process::id())
        );
        drop(lock);
        assert_eq!(Lock::holder(&path), None);
        Lock::acquire(&path, now).unwrap();
    }

    #[test]
    fn lock_of_a_dead_process_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let mut dead = std::process::Command::new("true").spawn().unwrap();
        dead.wait().unwrap();
        let lock = Lock::acquire(&path, Timestamp::UNIX_EPOCH).unwrap();
        let text = format!("{{\"pid\":{},\"since\":\"2020-01-01T00:00:00Z\"}}", dead.id());
        std::fs::write(&path, text).unwrap();
        let mut lock = Some(lock);
        let mut file = open_lock_file(&path).unwrap();
        assert!(try_lock_with(&mut file, &path, LockMode::Exclusive, || drop(lock.take())).unwrap());
        assert!(lock.is_none(), "it was released during the wait");
    }

    #[test]
    fn looking_at_a_free_lock_does_not_disturb_its_acquisition() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let reader = open_lock_file(&path).unwrap();
        // Like `Lock::holder` in another process, while this one starts its first run.
        reader.try_lock_shared().unwrap();
        let mut reader = Some(reader);
        let mut file = open_lock_file(&path).unwrap();
        assert!(try_lock_with(&mut file, &path, LockMode::Exclusive, || drop(reader.take())).unwrap());
        assert!(reader.is_none(), "it was closed during the wait");
    }

    #[test]
    fn content_of_an_unlocked_file_is_ignored() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        std::fs::write(
            &path,
            "{\"pid\":1,\"since\":\"2020-01-01T00:00:00Z\"} and more text",
        )
        .unwrap();
        let lock = Lock::acquire(&path, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(
            Lock::holder(&path).map(|holder| holder.pid),
            Some(std::process::id())
        );
        drop(lock);
    }
}
