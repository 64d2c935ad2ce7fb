//! Kills orphans: the processes that a killed supervisor leaves behind become children of this process.

use std::ffi::OsString;
use std::io;
use std::process::{Child, ChildStderr, ChildStdin, Command};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, kill_process};

use super::supervisor::pool::OrphanRule;

/// The variable that marks the processes of a pool.
const MARK: &str = "RALPH_SUPERVISORS";

/// The helper processes of this process, and how to recognize the orphans of killed ones.
#[derive(Debug)]
pub(super) struct Orphans {
    /// Supervisors and watchdogs that have not been waited for. Locked while one is started, so that a new helper is never
    /// taken for an orphan.
    helpers: Helpers,
    /// The value of `MARK`; `None` if every foreign child is an orphan.
    mark: Option<String>,
}

type Helpers = Arc<Mutex<Vec<u32>>>;

fn lock(helpers: &Helpers) -> MutexGuard<'_, Vec<u32>> {
    helpers.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A helper process.
#[derive(Debug)]
pub(super) struct HelperProcess {
    child: Child,
    helpers: Helpers,
}

impl HelperProcess {
    /// Takes its stdin and stderr if they are pipes.
    pub(super) fn pipes(&mut self) -> (Option<ChildStdin>, Option<ChildStderr>) {
        (self.child.stdin.take(), self.child.stderr.take())
    }

    /// The process, which has not been waited for.
    pub(super) fn pid(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    /// Continues the process if it was stopped.
    pub(super) fn resume(&self) {
        if let Some(pid) = self.pid() {
            // It may have exited already.
            let _ = kill_process(pid, Signal::CONT);
        }
    }

    pub(super) fn kill(&mut self) {
        // It may have exited already.
        let _ = self.child.kill();
    }

    /// Waits for the exit of the process. It may have been stopped.
    pub(super) fn wait(&mut self) {
        self.resume();
        let _ = self.child.wait();
        lock(&self.helpers).retain(|pid| *pid != self.child.id());
    }
}

impl Orphans {
    pub(super) fn new(rule: OrphanRule) -> Self {
        let mark = match rule {
            OrphanRule::AllForeign => None,
            OrphanRule::Marked => Some(format!("{:016x}", fastrand::u64(..))),
        };
        Self {
            helpers: Helpers::default(),
            mark,
        }
    }

    /// The variable that every child of the supervisors gets.
    pub(super) fn variable(&self) -> Option<(OsString, OsString)> {
        self.mark.as_ref().map(|mark| (MARK.into(), mark.into()))
    }

    /// Starts a helper whose orphans this process adopts. Takes the command, because it owns descriptors of the helper.
    pub(super) fn start(&self, mut command: Command) -> io::Result<HelperProcess> {
        let mut helpers = lock(&self.helpers);
        #[cfg(target_os = "linux")]
        if helpers.is_empty() {
            let adopting = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
            crate::ok_or_log!(adopting, "cannot adopt orphans");
        }
        let child = command.spawn()?;
        helpers.push(child.id());
        Ok(HelperProcess {
            child,
            helpers: Arc::clone(&self.helpers),
        })
    }

    /// Kills the orphans and returns their number.
    ///
    /// Every child of a supervisor leads a session of its own and cannot come back, so an orphan is never in the session
    /// of this process.
    #[cfg(target_os = "linux")]
    pub(super) fn kill(&self) -> u64 {
        use std::os::fd::AsFd;
        use std::time::{Duration, Instant};

        use rustix::event::PollFlags;
        use rustix::process::{PidfdFlags, WaitOptions, pidfd_open, waitpid};

        use super::poll;
        use super::tree::{descendants, send, table};

        let deadline = Instant::now() + Duration::from_secs(2);
        let helpers = lock(&self.helpers);
        let mut killed = Vec::new();
        loop {
            let table = table();
            let orphans = self.find(&table, &helpers);
            let mut all = descendants(&table, &orphans);
            all.extend(&orphans);
            let new: Vec<_> = all.iter().copied().filter(|pid| !killed.contains(pid)).collect();
            if !new.is_empty() && Instant::now() < deadline {
                // Stop them first, then look for processes that they have started in the meantime.
                send(&new, Signal::STOP);
                killed.extend(new);
                continue;
            }
            send(&all, Signal::KILL);
            for orphan in &orphans {
                if let Ok(pidfd) = pidfd_open(*orphan, PidfdFlags::empty()) {
                    poll::wait([(pidfd.as_fd(), PollFlags::IN)], Some(deadline));
                }
                let _ = waitpid(Some(*orphan), WaitOptions::NOHANG);
            }
            if orphans.is_empty() || Instant::now() > deadline {
                for pid in &killed {
                    let _ = waitpid(Some(*pid), WaitOptions::NOHANG);
                }
                return killed.len() as u64;
            }
        }
    }

    #[cfg(target_os = "linux")]
    fn find(&self, table: &[super::tree::Entry], helpers: &[u32]) -> Vec<rustix::process::Pid> {
        let here = rustix::process::getpid();
        let this = table.iter().find(|entry| entry.pid == here);
        let session = this.and_then(|entry| entry.session);
        let is_helper = |pid: i32| helpers.iter().any(|helper| i32::try_from(*helper) == Ok(pid));
        table
            .iter()
            .filter(|entry| entry.parent == Some(here) && entry.session != session)
            .map(|entry| entry.pid)
            .filter(|pid| !is_helper(pid.as_raw_pid()))
            .filter(|pid| match &self.mark {
                None => true,
                Some(mark) => super::by_env::has_variable(*pid, MARK, mark),
            })
            .collect()
    }

    /// Where orphans become children of init, only the process group of the child is known.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn kill(&self) -> u64 {
        0
    }
}
