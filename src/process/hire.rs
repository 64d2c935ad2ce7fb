//! Where keepers come from: the program that plays one, and the one that has been started ahead of its child.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::adopt::{self, KeeperProcess};
use super::keeper::{ARGUMENT, DISPLAY_NAME};

/// The program that is started as the keeper of a child: one whose `main` calls `keep_if_asked`.
#[derive(Debug, Clone)]
pub struct Keeper {
    program: PathBuf,
    /// One that has been started ahead of its child.
    spare: Arc<Mutex<Option<Ready>>>,
}

impl Keeper {
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
            spare: Arc::default(),
        }
    }

    /// Which program that is. To start it anew, rather than a file that may have been replaced.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Starts the keeper of the next child ahead of it, so that nobody has to wait for it then. Who cannot be started
    /// now is started, or complained of, when there is a child.
    pub fn prepare(&self) {
        let mut spare = self.spare();
        if spare.is_none() {
            *spare = Ready::start(&self.program).ok();
        }
    }

    /// One that waits for its errand.
    pub(super) fn ready(&self) -> io::Result<Ready> {
        let spare = self.spare().take();
        match spare.and_then(Ready::if_alive) {
            Some(ready) => Ok(ready),
            None => Ready::start(&self.program),
        }
    }

    fn spare(&self) -> MutexGuard<'_, Option<Ready>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A keeper that has no child yet. Dropped, it goes.
#[derive(Debug)]
pub(super) struct Ready {
    line: Option<UnixStream>,
    process: Option<KeeperProcess>,
}

impl Ready {
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
        let process = adopt::start(&mut command)?;
        Ok(Self {
            line: Some(line),
            process: Some(process),
        })
    }

    /// Somebody may have killed it while it waited.
    fn if_alive(mut self) -> Option<Self> {
        let alive = self.process.as_mut().is_some_and(KeeperProcess::is_alive);
        alive.then_some(self)
    }

    pub(super) fn into_parts(mut self) -> Option<(UnixStream, KeeperProcess)> {
        Some((self.line.take()?, self.process.take()?))
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        // The end of its line is all that it waits for.
        self.line = None;
        if let Some(process) = self.process.take() {
            process.wait();
        }
    }
}
