//! One loop per workspace. The lock is the kernel's (it dies with its holder, however that dies); the text in the
//! file only says who holds it.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};

use super::{NO_LINKS, StoreError, at, unless_a_link};

/// The held lock. Dropping it gives the workspace free.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Who holds a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub pid: u32,
    pub since: Timestamp,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            0 => f.write_str("a process that has not said its name yet"),
            pid => write!(
                f,
                "process {pid}, since {}",
                self.since.strftime("%Y-%m-%d %H:%M:%S UTC")
            ),
        }
    }
}

impl Holder {
    fn is_alive(&self) -> bool {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        pid.is_none_or(|pid| test_kill_process(pid) != Err(Errno::SRCH))
    }
}

/// A holder that was killed while it started a child can leave the lock with that child, until the child has become
/// the program that it is to be. That is a moment; longer than this it does not take.
const PATIENCE: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

impl Lock {
    pub(super) fn take(path: &Path, now: Timestamp) -> Result<Self, StoreError> {
        let mut options = OpenOptions::new();
        // Not truncated on opening: the text belongs to whoever holds the lock.
        options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(NO_LINKS)
            .mode(0o600);
        let mut file = options.open(path).map_err(unless_a_link("open", path))?;
        let patience = Instant::now() + PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => {
                    let holder = who(&mut file);
                    if holder.is_alive() || Instant::now() > patience {
                        return Err(StoreError::Locked { holder });
                    }
                    std::thread::sleep(LOOK_AGAIN);
                }
                Err(TryLockError::Error(source)) => return Err(at("lock", path)(source)),
            }
        }
        let holder = Holder {
            pid: std::process::id(),
            since: now,
        };
        let text = serde_json::to_vec(&holder).unwrap_or_default();
        let write = |file: &mut File| {
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(&text)
        };
        write(&mut file).map_err(at("write", path))?;
        Ok(Self { _file: file })
    }

    /// Who holds the lock at this path, if anybody does.
    pub fn holder(path: &Path) -> Option<Holder> {
        let mut file = File::open(path).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Some(who(&mut file)),
            Ok(()) | Err(TryLockError::Error(_)) => None,
        }
    }
}

fn who(file: &mut File) -> Holder {
    let mut text = String::new();
    let read = file.rewind().and_then(|()| file.read_to_string(&mut text)).ok();
    let holder = read.and_then(|_| serde_json::from_str(&text).ok());
    holder.unwrap_or(Holder {
        pid: 0,
        since: Timestamp::UNIX_EPOCH,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_lock_says_who_holds_the_first() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let now: Timestamp = "2026-11-15T20:45:01Z".parse().unwrap();
        assert_eq!(Lock::holder(&path), None);
        let lock = Lock::take(&path, now).unwrap();
        let error = Lock::take(&path, now).unwrap_err().to_string();
        let expected = format!("process {}, since 2026-11-15 20:45:01 UTC", std::process::id());
        assert!(error.ends_with(&expected), "{error}");
        assert_eq!(
            Lock::holder(&path).map(|holder| holder.pid),
            Some(std::process::id())
        );
        drop(lock);
        assert_eq!(Lock::holder(&path), None);
        Lock::take(&path, now).unwrap();
    }

    #[test]
    fn a_lock_that_outlives_its_dead_holder_by_a_moment_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let mut dead = std::process::Command::new("true").spawn().unwrap();
        dead.wait().unwrap();
        let lock = Lock::take(&path, Timestamp::UNIX_EPOCH).unwrap();
        let text = format!("{{\"pid\":{},\"since\":\"2020-01-01T00:00:00Z\"}}", dead.id());
        std::fs::write(&path, text).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(100));
                drop(lock);
            });
            Lock::take(&path, Timestamp::UNIX_EPOCH).unwrap();
        });
    }

    #[test]
    fn a_dead_holders_text_blocks_nobody() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        std::fs::write(
            &path,
            "{\"pid\":1,\"since\":\"2020-01-01T00:00:00Z\"} and a longer leftover",
        )
        .unwrap();
        let lock = Lock::take(&path, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(
            Lock::holder(&path).map(|holder| holder.pid),
            Some(std::process::id())
        );
        drop(lock);
    }
}
