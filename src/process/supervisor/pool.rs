//! Starts supervisors, keeps an idle one for the next child, and tracks the other helpers of its process.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::Pid;

use super::main::{ARGUMENT, DISPLAY_NAME};
use crate::panic_hook::PanicScope;
use crate::process::orphans::{HelperProcess, Orphans};

/// Which children of the process are orphans of a killed supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrphanRule {
    /// Every child in another session that is not a supervisor. For a process that starts nothing else.
    AllForeign,
    /// Those that carry the pool's mark in their environment.
    Marked,
}

/// Starts the supervisors of child processes. Clones share them.
#[derive(Clone)]
pub struct Supervisors {
    pool: Arc<SupervisorPool>,
    panics: PanicScope,
}

struct SupervisorPool {
    /// A program whose `main` calls `supervise_if_requested`.
    program: PathBuf,
    environment: Arc<[(OsString, OsString)]>,
    /// A supervisor whose child has exited. One is enough, because agents run one after the other.
    idle: Mutex<Option<SupervisorHandle>>,
    orphans: Arc<Orphans>,
}

impl fmt::Debug for Supervisors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supervisors")
            .field("program", &self.pool.program)
            .finish_non_exhaustive()
    }
}

impl Supervisors {
    /// Supervisors of the running program. On Linux this is the running image, which an upgrade of the file does not change.
    pub fn current(orphans: OrphanRule) -> Self {
        #[cfg(target_os = "linux")]
        let program = PathBuf::from("/proc/self/exe");
        #[cfg(not(target_os = "linux"))]
        let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("ralph"));
        let environment = std::env::vars_os().collect();
        Self::new(program, environment, Orphans::new(orphans))
    }

    /// Supervisors of another program, for a process that is not ralph.
    pub fn at(program: impl Into<PathBuf>) -> Self {
        let environment = std::env::vars_os().collect();
        Self::new(program.into(), environment, Orphans::new(OrphanRule::Marked))
    }

    fn new(program: PathBuf, environment: Arc<[(OsString, OsString)]>, orphans: Orphans) -> Self {
        let pool = SupervisorPool {
            program,
            environment,
            idle: Mutex::default(),
            orphans: Arc::new(orphans),
        };
        Self {
            pool: Arc::new(pool),
            panics: PanicScope::detached(),
        }
    }

    /// The same supervisors; panics of the threads of their children end this scope.
    #[must_use]
    pub fn with_panics(&self, panics: &PanicScope) -> Self {
        Self {
            pool: Arc::clone(&self.pool),
            panics: panics.clone(),
        }
    }

    /// Other supervisors of the same program, which do not affect the orphans of these.
    #[must_use]
    pub fn separate(&self) -> Self {
        let pool = &self.pool;
        let orphans = Orphans::new(OrphanRule::Marked);
        Self {
            panics: self.panics.clone(),
            ..Self::new(pool.program.clone(), Arc::clone(&pool.environment), orphans)
        }
    }

    /// Other supervisors of the same program, whose children also have these variables.
    #[must_use]
    pub fn with_variables(&self, variables: Vec<(OsString, OsString)>) -> Self {
        let pool = &self.pool;
        let is_replaced = |name: &OsString| variables.iter().any(|(other, _)| other == name);
        let inherited = pool.environment.iter().filter(|(name, _)| !is_replaced(name));
        let environment = inherited.chain(&variables).cloned().collect();
        Self {
            panics: self.panics.clone(),
            ..Self::new(
                pool.program.clone(),
                environment,
                Orphans::new(OrphanRule::Marked),
            )
        }
    }

    /// The program of the supervisors. Starting it runs the same version, even if the file was replaced.
    pub fn program(&self) -> &Path {
        &self.pool.program
    }

    /// The environment that children inherit: that of the process when it started.
    pub fn environment(&self) -> &[(OsString, OsString)] {
        &self.pool.environment
    }

    pub fn panics(&self) -> &PanicScope {
        &self.panics
    }

    pub(in crate::process) fn orphans(&self) -> &Orphans {
        &self.pool.orphans
    }

    /// Takes the idle supervisor. It may have been killed.
    pub(in crate::process) fn take_idle(&self) -> Option<SupervisorHandle> {
        self.idle().take()
    }

    pub(in crate::process) fn start_new(&self) -> io::Result<SupervisorHandle> {
        SupervisorHandle::start(&self.pool)
    }

    /// Keeps a supervisor whose child has exited, or shuts it down if there is an idle one.
    pub(in crate::process) fn put_back(&self, supervisor: SupervisorHandle) {
        let surplus = {
            let mut idle = self.idle();
            match *idle {
                Some(_) => Some(supervisor),
                None => idle.replace(supervisor),
            }
        };
        drop(surplus);
    }

    /// Shuts down the idle supervisor and waits for it.
    pub fn shut_down(&self) {
        drop(self.take_idle());
    }

    fn idle(&self) -> MutexGuard<'_, Option<SupervisorHandle>> {
        self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running supervisor. Dropping it ends the process tree of its child.
#[derive(Debug)]
pub(in crate::process) struct SupervisorHandle {
    line: Arc<UnixStream>,
    process: HelperProcess,
}

impl SupervisorHandle {
    fn start(pool: &SupervisorPool) -> io::Result<Self> {
        let (line, supervisor_end) = UnixStream::pair()?;
        let mut command = Command::new(&pool.program);
        command
            .arg0(DISPLAY_NAME)
            .arg(ARGUMENT)
            .stdin(OwnedFd::from(supervisor_end))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // Dropping the command closes this process's copy of the other end; open, it would keep the line from ending.
        let process = pool.orphans.start(command)?;
        Ok(Self {
            line: Arc::new(line),
            process,
        })
    }

    pub(in crate::process) fn pid(&self) -> Option<Pid> {
        self.process.pid()
    }

    /// Continues a supervisor that was stopped.
    pub(in crate::process) fn resume(&self) {
        self.process.resume();
    }

    /// Kills the supervisor; its children become those of this process.
    pub(in crate::process) fn kill(&mut self) {
        self.process.kill();
    }

    pub(in crate::process) fn line(&self) -> &Arc<UnixStream> {
        &self.line
    }
}

impl Drop for SupervisorHandle {
    fn drop(&mut self) {
        // The supervisor waits for the end of the line. Closing it is not enough, because there may be other handles.
        let _ = self.line.shutdown(Shutdown::Both);
        self.process.wait();
    }
}
