//! The supervisor process: the parent of one child after the other. This file starts it and waits for spawn requests;
//! `watch` supervises a child.
//!
//! It is the same program under another name. Its stdin is the control line. A child's three streams arrive over that
//! line, and the supervisor keeps no copy of them, so it never holds a pipe open.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::{Command, ExitCode};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::process::Pid;

use super::watch::{Leader, TreeWatch};
use crate::failpoint;
use crate::panic_hook::PanicScope;
use crate::process::launch;
use crate::process::poll;
use crate::process::sandbox::ConfinementStep;
#[cfg(target_os = "linux")]
use crate::process::sandbox::start::start_confined;
#[cfg(not(target_os = "linux"))]
use crate::process::sandbox::wrapped_command;
use crate::process::signals::Signals;
use crate::process::spawn_request::SpawnRequest;
use crate::process::wire::{self, Notice, Request, SpawnStage, SupervisorFate};

/// The argument of a supervisor. What to start arrives over the control line.
pub(in crate::process) const ARGUMENT: &str = "__supervisor";
/// The name that `ps` shows. It does not contain `ralph`, so that `pkill -f ralph` does not match it.
pub(in crate::process) const DISPLAY_NAME: &str = "agent-supervisor";
/// The name that the kernel uses, at most 15 bytes. `pkill ralph` does not match it.
#[cfg(target_os = "linux")]
const KERNEL_NAME: &std::ffi::CStr = c"supervisor";

/// Runs the supervisor and returns its exit code if this process was started as one. Called first in `main`.
pub fn supervise_if_requested(panics: &PanicScope) -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != ARGUMENT {
        return None;
    }
    let run = || SupervisorProcess::new()?.serve(panics);
    Some(
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)) {
            Ok(Ok(())) => ExitCode::SUCCESS,
            Ok(Err(_)) => ExitCode::FAILURE,
            Err(_) => {
                report_panic(panics);
                ExitCode::FAILURE
            }
        },
    )
}

/// Stderr is closed, so the panic is reported over the control line. The receiver then kills what the supervisor leaves
/// behind.
fn report_panic(panics: &PanicScope) {
    let message = panics.first_panic().unwrap_or_default();
    let notice = Notice::Panicked {
        bytes: message.len() as u64,
    };
    let _ = wire::write_all(
        rustix::stdio::stdin(),
        &[&notice.encode()[..], message.as_bytes()].concat(),
    );
}

/// What a supervisor waits for: requests and signals.
struct SupervisorProcess {
    control: BorrowedFd<'static>,
    signals: Signals,
}

impl SupervisorProcess {
    fn new() -> io::Result<Self> {
        launch::close_inherited_descriptors();
        // In the session of the terminal, Ctrl-C would reach the supervisor besides ralph's command.
        let _ = rustix::process::setsid();
        adopt_orphans();
        launch::reset_signals();
        let signals = Signals::listen()?;
        // The supervisor must not keep the workspace busy.
        let _ = std::env::set_current_dir("/");
        Ok(Self {
            control: rustix::stdio::stdin(),
            signals,
        })
    }

    /// Runs one child after the other, each after the whole tree of the one before has exited.
    fn serve(&self, panics: &PanicScope) -> io::Result<()> {
        while let Some((request, streams, line)) = self.next_request()? {
            let started = start(&request, streams, line);
            let _ = std::env::set_current_dir("/");
            match started {
                Ok(leader) => {
                    let watch = TreeWatch::begin(self.control, &self.signals, leader);
                    if is_agent(&request) {
                        failpoint!(panics, Supervisor);
                    }
                    if watch.run() == SupervisorFate::Exits {
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

    /// Waits for a request. Returns `None` once the line has ended or a signal has asked the supervisor to exit.
    fn next_request(&self) -> io::Result<Option<ReceivedRequest>> {
        loop {
            let wanted = [
                (self.control, PollFlags::IN),
                (self.signals.as_fd(), PollFlags::IN),
            ];
            let [readable, signaled] = poll::wait(wanted, None);
            if signaled {
                self.signals.clear();
            }
            if self.signals.take_stop() {
                return Ok(None);
            }
            if !readable {
                continue;
            }
            match wire::receive_request(self.control)? {
                Request::Spawn {
                    request,
                    streams,
                    line,
                } => {
                    let request = SpawnRequest::decode(&request).ok_or(io::ErrorKind::InvalidData)?;
                    return Ok(Some((request, streams, line)));
                }
                Request::LateCommand => {}
                Request::EndOfLine => return Ok(None),
            }
        }
    }
}

/// A request, the child's streams, and the line for its listening sockets.
type ReceivedRequest = (SpawnRequest, [OwnedFd; 3], Option<OwnedFd>);

/// Starts the child, in namespaces of its own if it is confined.
#[cfg(target_os = "linux")]
fn start(
    request: &SpawnRequest,
    streams: [OwnedFd; 3],
    line: Option<OwnedFd>,
) -> Result<Leader, (SpawnStage, io::Error)> {
    let rules = request.rules();
    let rules = rules.map_err(|error| (SpawnStage::Confinement(ConfinementStep::System), error))?;
    match rules {
        Some(confinement) => start_confined(request, &confinement, streams, line).map(Leader::Confined),
        None => start_program(request, streams).map(Leader::Direct),
    }
}

/// Starts the child, under the program that confines it.
#[cfg(not(target_os = "linux"))]
fn start(
    request: &SpawnRequest,
    streams: [OwnedFd; 3],
    _: Option<OwnedFd>,
) -> Result<Leader, (SpawnStage, io::Error)> {
    let unable = |error| (SpawnStage::Confinement(ConfinementStep::System), error);
    let Some(confinement) = request.rules().map_err(unable)? else {
        return start_program(request, streams).map(Leader::Direct);
    };
    let wrapped = wrapped_command(&confinement, request);
    let (program, args) = wrapped.ok_or_else(|| unable(io::ErrorKind::Unsupported.into()))?;
    let request = SpawnRequest {
        program,
        args,
        confinement: Vec::new(),
        cwd: request.cwd.clone(),
        terminal: request.terminal,
        environment: request.environment.clone(),
    };
    start_program(&request, streams).map(Leader::Direct)
}

/// Starts the program. The streams are closed here once the child has its own copies.
pub(in crate::process) fn start_program(
    request: &SpawnRequest,
    [stdin, stdout, stderr]: [OwnedFd; 3],
) -> Result<Pid, (SpawnStage, io::Error)> {
    let mut command = Command::new(&request.program);
    command
        .args(&request.args)
        .env_clear()
        .envs(request.environment.iter().map(|(name, value)| (name, value)))
        .stdin(stdin)
        .stdout(stdout)
        .stderr(stderr);
    std::env::set_current_dir(Path::new(&request.cwd))
        .map_err(|error| (SpawnStage::WorkingDirectory, error))?;
    launch::lead_a_session(&mut command, request.terminal);
    let leader = command.spawn().map_err(|error| (SpawnStage::Exec, error))?;
    let pid = i32::try_from(leader.id()).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| (SpawnStage::Exec, io::ErrorKind::InvalidData.into()))
}

/// Whether the child is an agent or a gate, not a probe.
fn is_agent(request: &SpawnRequest) -> bool {
    request
        .environment
        .iter()
        .any(|(name, _)| name == "RALPH_ITERATION")
}

/// Makes this process the parent of orphans below it, and sets its name.
fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    {
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        // If ralph exits while the supervisor is stopped, the supervisor continues and stops the tree.
        let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::CONT));
        let _ = rustix::thread::set_name(KERNEL_NAME);
    }
}
