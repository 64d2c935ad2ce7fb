//! One loop per workspace. The lock is the kernel's (it dies with its holder, however that dies); the text in the
//! file only says who holds it.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{StoreError, at};

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

impl Lock {
    pub(super) fn take(path: &Path, now: Timestamp) -> Result<Self, StoreError> {
        let mut options = OpenOptions::new();
        // Not truncated on opening: the text belongs to whoever holds the lock.
        options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600);
        let mut file = options.open(path).map_err(at("open", path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StoreError::Locked {
                    holder: who(&mut file),
                });
            }
            Err(TryLockError::Error(source)) => return Err(at("lock", path)(source)),
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
    let read = file.read_to_string(&mut text).ok();
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
