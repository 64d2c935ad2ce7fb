//! The keeper: the small parent of one child after the other. Here is how it takes up its post and waits for a child;
//! `keeping` is what it does as long as it has one.
//!
//! It is this same program under another name. Its stdin is the control line; a child's three streams come
//! over that line, and it keeps no copy of them, so it never holds a pipe open.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::{Command, ExitCode};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::process::Pid;

use super::watch::Keeping;
use crate::panic_hook;
use crate::process::launch;
use crate::process::poll;
use crate::process::signals::Signals;
use crate::process::spawn_request::SpawnRequest;
use crate::process::wire::{self, Afterwards, Call, Notice, SpawnStage};

/// The argument of a keeper; what it is to start comes over the control line.
pub(in crate::process) const ARGUMENT: &str = "__keeper";
/// What `ps` shows.
pub(in crate::process) const DISPLAY_NAME: &str = "ralph-keeper";
/// What the kernel calls it. Not `ralph…`: `pkill -9 ralph` must leave somebody to clean up.
#[cfg(target_os = "linux")]
const KERNEL_NAME: &std::ffi::CStr = c"agent-keeper";

/// First thing in `main`: if this process was started as a keeper, is one and returns its exit code.
pub fn keep_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != ARGUMENT {
        return None;
    }
    let keep = || Post::take_up().and_then(|post| post.serve());
    Some(
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(keep)) {
            Ok(Ok(())) => ExitCode::SUCCESS,
            Ok(Err(_)) => ExitCode::FAILURE,
            Err(_) => {
                confess();
                ExitCode::FAILURE
            }
        },
    )
}

/// Nobody reads our stderr: whoever holds the other end of the line is told, and ends what we have left.
fn confess() {
    let words = panic_hook::first_panic().unwrap_or_default();
    let notice = Notice::Mistaken {
        bytes: words.len() as u64,
    };
    let _ = wire::write_all(
        rustix::stdio::stdin(),
        &[&notice.encode()[..], words.as_bytes()].concat(),
    );
}

/// Where a keeper hears of its children, and of signals.
struct Post {
    control: BorrowedFd<'static>,
    signals: Signals,
}

impl Post {
    fn take_up() -> io::Result<Self> {
        launch::close_inherited_descriptors();
        // In the terminal's session a Ctrl-C would reach us beside the one order that counts.
        let _ = rustix::process::setsid();
        adopt_orphans();
        launch::reset_signals();
        let signals = Signals::listen()?;
        // The workspace must not be busy because of us.
        let _ = std::env::set_current_dir("/");
        Ok(Self {
            control: rustix::stdio::stdin(),
            signals,
        })
    }

    /// Child after child, each with nothing left of the one before, until nobody wants another one.
    fn serve(&self) -> io::Result<()> {
        while let Some((errand, streams)) = self.next_errand()? {
            let started = start(&errand, streams);
            let _ = std::env::set_current_dir("/");
            match started {
                Ok(leader) => {
                    let keeping = Keeping::begin(self.control, &self.signals, leader);
                    rehearse_a_mistake(&errand);
                    if keeping.until_all_are_gone() == Afterwards::Leaves {
                        break;
                    }
                }
                Err((stage, error)) => {
                    let errno = error.raw_os_error().unwrap_or(Errno::IO.raw_os_error());
                    wire::write_all(self.control, &Notice::Failed { stage, errno }.encode())?;
                }
            }
        }
        Ok(())
    }

    /// Waits for it; nothing once the line has ended, or somebody has told us to go.
    fn next_errand(&self) -> io::Result<Option<(SpawnRequest, [OwnedFd; 3])>> {
        loop {
            let wanted = [
                (self.control, PollFlags::IN),
                (self.signals.as_fd(), PollFlags::IN),
            ];
            let [called, signalled] = poll::wait(wanted, None);
            if signalled {
                self.signals.clear();
            }
            if self.signals.take_stop() {
                return Ok(None);
            }
            if !called {
                continue;
            }
            match wire::take_over(self.control)? {
                Call::SpawnRequest { errand, streams } => {
                    let errand = SpawnRequest::decode(&errand).ok_or(io::ErrorKind::InvalidData)?;
                    return Ok(Some((errand, streams)));
                }
                Call::TooLate => {}
                Call::Over => return Ok(None),
            }
        }
    }
}

/// The streams are closed here once the child has its own copies.
fn start(
    errand: &SpawnRequest,
    [stdin, stdout, stderr]: [OwnedFd; 3],
) -> Result<Pid, (SpawnStage, io::Error)> {
    let mut command = Command::new(&errand.program);
    command
        .args(&errand.args)
        .env_clear()
        .envs(errand.environment.iter().map(|(name, value)| (name, value)))
        .stdin(stdin)
        .stdout(stdout)
        .stderr(stderr);
    std::env::set_current_dir(Path::new(&errand.cwd))
        .map_err(|error| (SpawnStage::WorkingDirectory, error))?;
    launch::lead_a_session(&mut command, errand.terminal);
    let leader = command.spawn().map_err(|error| (SpawnStage::Exec, error))?;
    let pid = i32::try_from(leader.id()).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| (SpawnStage::Exec, io::ErrorKind::InvalidData.into()))
}

/// For the tests of what happens then.
fn rehearse_a_mistake(errand: &SpawnRequest) {
    let is_an_agents = |(name, _): &(_, _)| name == "RALPH_ITERATION";
    if errand.environment.iter().any(is_an_agents) {
        panic_hook::failpoint("keeper");
    }
}

/// Makes whatever loses its parent below us our child, and gives us our name.
fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    {
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        let _ = rustix::thread::set_name(KERNEL_NAME);
    }
}
