//! The first process of a confined child's namespaces. It restricts itself, starts the program, and waits for every process in the
//! namespaces. Its end, which is also that of the supervisor, ends them all.

use std::io::{self, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use rustix::process::{DumpableBehavior, Pid, Signal, WaitOptions};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::mounts::{self, User};
use super::start::Failure;
use super::{Confinement, ConfinementStep, Network};
use crate::event::ProcessEnd;
use crate::process::launch;
use crate::process::spawn_request::SpawnRequest;
use crate::process::supervisor::main::start_program;
use crate::process::supervisor::watch::process_end;
use crate::process::wire::{Notice, SpawnStage};

/// The capabilities that root keeps: those for its own files and users.
const KEPT_BY_ROOT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::NET_BIND_SERVICE);
/// No kernel has more capabilities.
const CAPABILITIES: u32 = 64;
/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;
/// The first version of Landlock that restricts abstract sockets and signals.
const SCOPES_SINCE: u32 = 6;
/// More ports than a configuration names.
pub(super) const MAX_PORTS: usize = 32;

/// What the first process has received.
pub(super) struct FirstProcess<'a> {
    pub(super) request: &'a SpawnRequest,
    pub(super) confinement: &'a Confinement,
    pub(super) user: User,
    pub(super) streams: [OwnedFd; 3],
    /// Where the listening sockets are sent.
    pub(super) line: Option<OwnedFd>,
    /// The connection to the supervisor.
    pub(super) supervisor: UnixStream,
}

impl FirstProcess<'_> {
    /// Runs until no process is left in the namespaces.
    pub(super) fn run(mut self) -> ! {
        let run = std::panic::AssertUnwindSafe(|| match self.start() {
            Ok(leader) => self.serve(leader),
            Err((stage, error)) => {
                let errno = error.raw_os_error().unwrap_or(Errno::IO.raw_os_error());
                self.notify(Notice::Failed { stage, errno });
            }
        });
        let code = i32::from(std::panic::catch_unwind(run).is_err());
        launch::exit_now(code)
    }

    fn start(&mut self) -> Result<Option<Pid>, Failure> {
        let failed = |step| move |error: io::Error| (SpawnStage::Confinement(step), error);
        launch::reset_signals();
        // The control line belongs to the supervisor.
        replace_streams().map_err(failed(ConfinementStep::Processes))?;
        // The supervisor writes once the users are mapped.
        let mut ready = [0];
        self.supervisor
            .read_exact(&mut ready)
            .map_err(failed(ConfinementStep::Users))?;
        let terminal = self.streams[1].as_fd();
        mounts::arrange(self.confinement.rules(), self.user, terminal)
            .map_err(|(step, error)| (SpawnStage::Confinement(step), error))?;
        self.open_network().map_err(failed(ConfinementStep::Network))?;
        self.drop_privileges()
            .map_err(failed(ConfinementStep::Privileges))?;
        if self.request.program.is_empty() {
            return Ok(None);
        }
        let null = || std::fs::File::open("/dev/null").map(OwnedFd::from);
        let streams = [null(), null(), null()].map(|stream| stream.map_err(failed(ConfinementStep::Devices)));
        let [stdin, stdout, stderr] = streams;
        // The streams are closed here once the program has its own copies.
        let streams = std::mem::replace(&mut self.streams, [stdin?, stdout?, stderr?]);
        start_program(self.request, streams).map(Some)
    }

    fn open_network(&mut self) -> io::Result<()> {
        let Network::Own { ports, .. } = &self.confinement.network else {
            return Ok(());
        };
        let socket = || {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)
        };
        launch::activate_loopback(socket()?)?;
        let Some(line) = self.line.take() else {
            return Ok(());
        };
        let mut sockets = Vec::new();
        for port in ports.iter().take(MAX_PORTS) {
            let socket = socket()?;
            rustix::net::sockopt::set_socket_reuseaddr(&socket, true)?;
            rustix::net::bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, *port)))?;
            rustix::net::listen(&socket, BACKLOG)?;
            sockets.push(socket);
        }
        send_sockets(line.as_fd(), &sockets)?;
        // Its end tells ralph that the namespaces have ended.
        self.line = Some(line);
        Ok(())
    }

    fn drop_privileges(&self) -> io::Result<()> {
        launch::leave_session_keyring();
        let kept = match self.user {
            User::Root => KEPT_BY_ROOT,
            User::Ordinary => CapabilitySet::empty(),
        };
        for number in 0..CAPABILITIES {
            let capability = CapabilitySet::from_bits_retain(1 << number);
            if kept.contains(capability) {
                continue;
            }
            match rustix::thread::remove_capability_from_bounding_set(capability) {
                Err(Errno::INVAL) => break,
                removed => removed?,
            }
        }
        rustix::thread::set_capabilities(
            None,
            CapabilitySets {
                effective: kept,
                permitted: kept,
                inheritable: CapabilitySet::empty(),
            },
        )?;
        rustix::thread::set_no_new_privs(true)?;
        if launch::landlock_version().is_some_and(|version| version >= SCOPES_SINCE) {
            launch::restrict_sockets_and_signals()?;
        }
        // The program can neither trace this process nor read its memory.
        rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        // After the other changes, because some of them reset it.
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        Ok(())
    }

    /// Reports the end of the program, and waits for the processes that outlive it.
    fn serve(&mut self, leader: Option<Pid>) {
        self.notify(Notice::Started {
            pid: leader.map_or(1, |pid| pid.as_raw_pid().cast_unsigned()),
        });
        if leader.is_none() {
            self.notify(Notice::LeaderEnded(ProcessEnd::Exited { code: 0 }));
            return;
        }
        loop {
            match rustix::process::wait(WaitOptions::empty()) {
                Ok(Some((pid, status))) if Some(pid) == leader => {
                    self.notify(Notice::LeaderEnded(process_end(status)));
                }
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }

    /// Without the supervisor, nothing may continue.
    fn notify(&mut self, notice: Notice) {
        if self.supervisor.write_all(&notice.encode()).is_err() {
            launch::exit_now(1);
        }
    }
}

/// Replaces the streams of the supervisor.
fn replace_streams() -> io::Result<()> {
    let null = std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}

fn send_sockets(line: BorrowedFd<'_>, sockets: &[OwnedFd]) -> io::Result<()> {
    let borrowed: Vec<BorrowedFd<'_>> = sockets.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_PORTS))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    if !rights.push(SendAncillaryMessage::ScmRights(&borrowed)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    rustix::net::sendmsg(line, &[IoSlice::new(b"L")], &mut rights, SendFlags::NOSIGNAL)?;
    Ok(())
}
