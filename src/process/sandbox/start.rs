//! The supervisor's part of starting a confined child: creates the namespaces, maps the users, and waits until the program runs.

use std::fs;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};
use rustix::thread::CapabilitySet;

use super::first_process::FirstProcess;
use super::mounts::User;
use super::{Confinement, ConfinementStep, Network};
use crate::process::launch;
use crate::process::spawn_request::SpawnRequest;
use crate::process::wire::{Notice, SpawnStage};

/// A confined child that runs.
pub(in crate::process) struct ConfinedChild {
    /// The first process of the namespaces, which is a child of the supervisor.
    pub(in crate::process) first_process: Pid,
    /// The program, as the supervisor sees it.
    pub(in crate::process) leader: Pid,
    /// Reports the end of the program.
    pub(in crate::process) notices: UnixStream,
}

pub(super) type Failure = (SpawnStage, io::Error);

fn failed(step: ConfinementStep) -> impl Fn(io::Error) -> Failure {
    move |error| (SpawnStage::Confinement(step), error)
}

/// Starts a program in namespaces. The streams are closed here once the program has its own copies.
pub(in crate::process) fn start_confined(
    request: &SpawnRequest,
    confinement: &Confinement,
    streams: [OwnedFd; 3],
    line: Option<OwnedFd>,
) -> Result<ConfinedChild, Failure> {
    let (notices, supervisor) = UnixStream::pair().map_err(failed(ConfinementStep::Processes))?;
    let user = current_user();
    let mut namespaces = libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC;
    if let Network::Own { .. } = &confinement.network {
        namespaces |= libc::CLONE_NEWNET;
    }
    let cloned = launch::clone_into(namespaces).map_err(failed(ConfinementStep::Namespaces))?;
    let Some(first_process) = cloned else {
        drop(notices);
        let first = FirstProcess {
            request,
            confinement,
            user,
            streams,
            line,
            supervisor,
        };
        first.run();
    };
    drop((supervisor, streams, line));
    match wait_for_program(first_process, &notices, user) {
        Ok(leader) => Ok(ConfinedChild {
            first_process,
            leader,
            notices,
        }),
        Err(error) => {
            let _ = rustix::process::kill_process(first_process, Signal::KILL);
            while let Err(Errno::INTR) = rustix::process::waitpid(Some(first_process), WaitOptions::empty()) {
            }
            Err(error)
        }
    }
}

fn wait_for_program(first_process: Pid, mut notices: &UnixStream, user: User) -> Result<Pid, Failure> {
    map_users(first_process, user).map_err(failed(ConfinementStep::Users))?;
    let sent = notices.write_all(b"m");
    sent.map_err(failed(ConfinementStep::Processes))?;
    match Notice::read(notices).map_err(failed(ConfinementStep::Processes))? {
        Notice::Started { .. } => Ok(child_of(first_process).unwrap_or(first_process)),
        Notice::Failed { stage, errno } => Err((stage, io::Error::from_raw_os_error(errno))),
        _ => Err(failed(ConfinementStep::Processes)(
            io::ErrorKind::InvalidData.into(),
        )),
    }
}

/// The only child of a first process: the program.
fn child_of(first_process: Pid) -> Option<Pid> {
    let pid = first_process.as_raw_pid();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    let child = children.split_whitespace().next()?;
    Pid::from_raw(child.parse().ok()?)
}

/// Root can map every user. An ordinary user, and root in a container without that right, can map only itself.
fn current_user() -> User {
    let may_map = CapabilitySet::SETUID | CapabilitySet::SETGID;
    let is_able = rustix::thread::capabilities(None).is_ok_and(|sets| sets.effective.contains(may_map));
    match rustix::process::geteuid().is_root() && is_able {
        true => User::Root,
        false => User::Ordinary,
    }
}

/// Maps the users of the new namespace to the same users outside.
fn map_users(process: Pid, user: User) -> io::Result<()> {
    let file = |name: &str| format!("/proc/{}/{name}", process.as_raw_pid());
    let (users, groups) = match user {
        User::Root => (all_of("uid_map")?, all_of("gid_map")?),
        User::Ordinary => {
            fs::write(file("setgroups"), "deny")?;
            let user = rustix::process::geteuid().as_raw();
            let group = rustix::process::getegid().as_raw();
            (format!("{user} {user} 1"), format!("{group} {group} 1"))
        }
    };
    fs::write(file("uid_map"), users)?;
    fs::write(file("gid_map"), groups)
}

/// The map that leaves every user or group of this namespace as it is.
fn all_of(map: &str) -> io::Result<String> {
    let own = fs::read_to_string(format!("/proc/self/{map}"))?;
    let line = |line: &str| {
        let mut numbers = line.split_whitespace();
        let (first, count) = (numbers.next()?, numbers.nth(1)?);
        Some(format!("{first} {first} {count}\n"))
    };
    Ok(own.lines().filter_map(line).collect())
}
