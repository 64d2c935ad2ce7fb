//! Where keepers come from: the program that plays one, and the one that has no child at the moment.

use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::main::{ARGUMENT, DISPLAY_NAME};
use crate::process::orphans::{self, KeeperProcess};

/// The program that is started as the keeper of a child: one whose `main` calls `keep_if_asked`.
#[derive(Debug, Clone)]
pub struct Supervisors {
    program: PathBuf,
    /// One whose child is gone. A second one would only cost memory: agents come one after the other.
    free: Arc<Mutex<Option<SupervisorHandle>>>,
}

impl Supervisors {
    /// This program. On Linux the running image itself, which an upgrade of the file does not change.
    pub fn current() -> Self {
        #[cfg(target_os = "linux")]
        let program = PathBuf::from("/proc/self/exe");
        #[cfg(not(target_os = "linux"))]
        let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("ralph"));
        Self::at(program)
    }

    pub fn at(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            free: Arc::default(),
        }
    }

    /// Which program that is. To start it anew, rather than a file that may have been replaced.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The one that is free. It may have been killed while it was.
    pub(in crate::process) fn take_free(&self) -> Option<SupervisorHandle> {
        self.free().take()
    }

    pub(in crate::process) fn start_new(&self) -> io::Result<SupervisorHandle> {
        SupervisorHandle::start(&self.program)
    }

    /// One whose child is gone, and that waits for another.
    pub(in crate::process) fn take_back(&self, supervisor: SupervisorHandle) {
        let turned_away = {
            let mut free = self.free();
            match *free {
                Some(_) => Some(supervisor),
                None => free.replace(supervisor),
            }
        };
        drop(turned_away);
    }

    /// Nobody is needed any more: the one that is free goes, and is waited for.
    pub fn dismiss(&self) {
        drop(self.take_free());
    }

    fn free(&self) -> MutexGuard<'_, Option<SupervisorHandle>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A keeper that works for us. Dropped, it ends what it keeps, and goes.
#[derive(Debug)]
pub(in crate::process) struct SupervisorHandle {
    line: Arc<UnixStream>,
    process: KeeperProcess,
}

impl SupervisorHandle {
    fn start(program: &Path) -> io::Result<Self> {
        let (line, keepers_end) = UnixStream::pair()?;
        let mut command = Command::new(program);
        command
            .arg0(DISPLAY_NAME)
            .arg(ARGUMENT)
            .stdin(OwnedFd::from(keepers_end))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // The command owns our copy of the keeper's end, and goes here; with it open, the line would never end.
        let process = orphans::start(&mut command)?;
        Ok(Self {
            line: Arc::new(line),
            process,
        })
    }

    pub(in crate::process) fn line(&self) -> &Arc<UnixStream> {
        &self.line
    }
}

impl Drop for SupervisorHandle {
    fn drop(&mut self) {
        // The end of its line is all that it waits for. Others may hold the line too, so closing ours would not do.
        let _ = self.line.shutdown(Shutdown::Both);
        self.process.wait();
    }
}
