//! What ralph does when a keeper itself is killed: the keeper's orphans become ralph's children, and are
//! killed here. Beyond that, ralph is the parent of keepers, and of the one who guards the terminal, only.

use std::io;
use std::process::{Child, ChildStderr, ChildStdin, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The keepers that live, with or without a child, or have not been waited for. Held while one is started, so that a
/// new keeper is never taken for an orphan.
static KEEPERS: Mutex<Vec<u32>> = Mutex::new(Vec::new());

fn keepers() -> MutexGuard<'static, Vec<u32>> {
    KEEPERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A keeper that has been started.
#[derive(Debug)]
pub(super) struct KeeperProcess(Child);

/// Starts a keeper whose orphans will be ours.
pub(super) fn start(command: &mut Command) -> io::Result<KeeperProcess> {
    let mut keepers = keepers();
    #[cfg(target_os = "linux")]
    if keepers.is_empty() {
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    }
    let supervisor = command.spawn()?;
    keepers.push(supervisor.id());
    Ok(KeeperProcess(supervisor))
}

impl KeeperProcess {
    /// Its stdin and stderr, where they are pipes.
    pub(super) fn pipes(&mut self) -> (Option<ChildStdin>, Option<ChildStderr>) {
        (self.0.stdin.take(), self.0.stderr.take())
    }

    /// Waits for a keeper that has nothing left to do.
    pub(super) fn wait(&mut self) {
        let _ = self.0.wait();
        keepers().retain(|pid| *pid != self.0.id());
    }
}

/// Kills what dead keepers have left to us; how many processes that were.
///
/// An orphan is a child of ours that is no keeper and belongs to another session. Every child is given a
/// session of its own by its keeper and cannot come back from it, so no other child of ours is meant.
#[cfg(target_os = "linux")]
pub(super) fn kill_orphans() -> u64 {
    use std::os::fd::AsFd;
    use std::time::{Duration, Instant};

    use rustix::event::PollFlags;
    use rustix::process::{PidfdFlags, Signal, WaitOptions, getpid, pidfd_open, waitpid};

    use super::poll;
    use super::tree::{descendants, send, table};

    let deadline = Instant::now() + Duration::from_secs(2);
    let keepers = keepers();
    let here = getpid();
    let mut killed = Vec::new();
    loop {
        let table = table();
        let ours = table.iter().find(|entry| entry.pid == here);
        let session = ours.and_then(|entry| entry.session);
        let is_keeper = |pid: i32| {
            keepers
                .iter()
                .any(|supervisor| i32::try_from(*supervisor) == Ok(pid))
        };
        let orphans: Vec<_> = table
            .iter()
            .filter(|entry| entry.parent == Some(here) && entry.session != session)
            .map(|entry| entry.pid)
            .filter(|pid| !is_keeper(pid.as_raw_pid()))
            .collect();
        let mut all = descendants(&table, &orphans);
        all.extend(&orphans);
        let new: Vec<_> = all.iter().copied().filter(|pid| !killed.contains(pid)).collect();
        if !new.is_empty() && Instant::now() < deadline {
            // Frozen first, like in a tree: look again for what they started in the meantime.
            send(&new, Signal::STOP);
            killed.extend(new);
            continue;
        }
        send(&all, Signal::KILL);
        for orphan in &orphans {
            if let Ok(life) = pidfd_open(*orphan, PidfdFlags::empty()) {
                poll::wait([(life.as_fd(), PollFlags::IN)], Some(deadline));
            }
            let _ = waitpid(Some(*orphan), WaitOptions::NOHANG);
        }
        if orphans.is_empty() || Instant::now() > deadline {
            return killed.len() as u64;
        }
    }
}

/// Where orphans go to init, the process group of the child is all that is known.
#[cfg(not(target_os = "linux"))]
pub(super) fn kill_orphans() -> u64 {
    0
}
