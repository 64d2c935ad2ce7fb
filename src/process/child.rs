//! One child from start to end: its supervisor, its threads, and the commands that it can receive.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::termios::isatty;
use tracing::{debug, warn};

use super::control::{Control, Patience};
use super::poll;
use super::read::{Drain, Drained, STDERR_CHUNKS, STDOUT_CHUNKS, TreeExited};
use super::spawn_request::SpawnRequest;
use super::stdin::{StdinPipe, StdinWriter, WriteProgress};
use super::streams::{self, ChildEnds, ParentEnds};
use super::supervisor::pool::SupervisorHandle;
use super::wire::{self, Notice, SupervisorCommand, SupervisorFate, Suspension};
use super::{ChildEvent, Ended, ProcessError, ProcessSpec, Screen, Stdin, Supervisors};
use crate::event::{ProcessEnd, StreamName};
use crate::failpoint;

/// The reported end of a child whose supervisor was killed and could not report it.
const KILLED: ProcessEnd = ProcessEnd::Signaled { signal: 9 };

/// Time for a supervisor to start a child, which takes milliseconds.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// Time after which a supervisor that does not answer is continued.
const RESUME_INTERVAL: Duration = Duration::from_millis(200);

type Reporter = Arc<dyn Fn(ChildEvent) + Send + Sync>;

/// A running program and everything that it starts. Dropping it kills the whole process tree.
#[derive(Debug)]
pub struct Child {
    pid: u32,
    control: Arc<Control>,
    screen: Option<Screen>,
    stdin: Option<StdinPipe>,
}

impl Child {
    /// Starts a program. Returns when it runs, or when it could not be started.
    ///
    /// `report` is called from several threads. While it does not return, or while the chunks that it received are not
    /// dropped, the child's stream is not read: `report` must not wait for the child itself.
    pub fn spawn(
        supervisors: &Supervisors,
        spec: &ProcessSpec,
        report: impl Fn(ChildEvent) + Send + Sync + 'static,
    ) -> Result<Self, ProcessError> {
        let (child_ends, mut parent_ends) = streams::open(spec)?;
        let screen = parent_ends.screen.take();
        let (supervisor, pid) = start(supervisors, spec, &child_ends)?;
        drop(child_ends);
        let control = Arc::new(Control::of(&supervisor));
        let watch = Watch {
            supervisor,
            supervisors: supervisors.clone(),
            control: Arc::clone(&control),
            suspension: suspension(),
        };
        // From here on an early return drops the supervisor, which ends the child.
        let stdin = watch
            .begin(spec, parent_ends, Arc::new(report))
            .map_err(|error| ProcessError::spawn(spec, error))?;
        Ok(Self {
            pid,
            control,
            screen,
            stdin,
        })
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The terminal of a child that runs on a screen.
    pub fn screen(&self) -> Option<Screen> {
        self.screen.clone()
    }

    /// The stdin of a child with `Stdin::Pipe`, once.
    pub fn take_stdin(&mut self) -> Option<StdinPipe> {
        self.stdin.take()
    }

    /// Sends SIGTERM to the whole tree, then, after the grace, SIGKILL. Another call can only shorten the grace.
    pub fn stop(&self, grace: Duration) {
        debug!(pid = self.pid, ?grace, "stopping");
        self.control.send(SupervisorCommand::Stop { grace });
    }

    /// Sends SIGKILL to the whole tree.
    pub fn kill(&self) {
        self.control.send(SupervisorCommand::Kill);
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Sends a spawn request to a supervisor and waits until the program runs.
fn start(
    supervisors: &Supervisors,
    spec: &ProcessSpec,
    child_ends: &ChildEnds,
) -> Result<(SupervisorHandle, u32), ProcessError> {
    let supervisor_failed =
        |error| ProcessError::supervisor(supervisors.program().to_path_buf(), spec, error);
    let request = SpawnRequest::new(spec, child_ends.terminal, supervisors).encode();
    let request = request.map_err(|error| ProcessError::spawn(spec, error))?;
    let send = |supervisor: &mut SupervisorHandle| {
        let line = &**supervisor.line();
        let sockets = spec.confinement.as_ref().and_then(|rules| rules.line());
        wire::send_request(line, &request, child_ends.as_fds(), sockets.map(AsFd::as_fd))?;
        first_notice(supervisor)
    };
    let idle = supervisors
        .take_idle()
        .map(|mut supervisor| (send(&mut supervisor), supervisor));
    let (notice, supervisor) = match idle {
        Some((notice, supervisor)) if !matches!(&notice, Err(error) if had_exited(error)) => {
            (notice, supervisor)
        }
        Some(_) | None => {
            let mut supervisor = supervisors.start_new().map_err(supervisor_failed)?;
            (send(&mut supervisor), supervisor)
        }
    };
    Err(match notice {
        Ok(Notice::Started { pid }) => {
            debug!(pid, program = %spec.program.display(), "started");
            return Ok((supervisor, pid));
        }
        Ok(Notice::Failed { stage, errno }) => {
            supervisors.put_back(supervisor);
            ProcessError::refused(spec, stage, errno)
        }
        Ok(Notice::Panicked { bytes }) => {
            let message = wire::read_panic(&**supervisor.line(), bytes);
            supervisors.panics().report_remote(message);
            supervisor_failed(io::ErrorKind::Other.into())
        }
        Ok(Notice::LeaderEnded(_) | Notice::TreeExited { .. } | Notice::Alive) => {
            supervisor_failed(io::ErrorKind::InvalidData.into())
        }
        Err(error) => {
            // The child may run already.
            drop(supervisor);
            supervisors.orphans().kill();
            supervisor_failed(error)
        }
    })
}

/// Waits for the answer to a request. A child that stops its supervisor at once does not prevent it: the supervisor is continued
/// again and again, and killed if it does not answer.
fn first_notice(supervisor: &mut SupervisorHandle) -> io::Result<Notice> {
    let give_up = Instant::now() + START_TIMEOUT;
    loop {
        let line = &**supervisor.line();
        let [readable] = poll::wait(
            [(line.as_fd(), PollFlags::IN)],
            Some(Instant::now() + RESUME_INTERVAL),
        );
        if readable {
            return Notice::read(line);
        }
        if Instant::now() > give_up {
            supervisor.kill();
            return Err(io::ErrorKind::TimedOut.into());
        }
        supervisor.resume();
    }
}

/// Whether a supervisor exited before it had read the whole request, so that it cannot have started anything. If it exits
/// later, the line ends without an error.
fn had_exited(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
    )
}

/// Whether a user can suspend this process.
fn suspension() -> Suspension {
    match File::open("/dev/tty") {
        Ok(_) => Suspension::ByUser,
        Err(_) => Suspension::Unexpected,
    }
}

/// The end of a process tree.
struct TreeEnd {
    end: ProcessEnd,
    swept: u64,
    /// A supervisor that exits by itself. The next child does not wait for it.
    exiting: Option<SupervisorHandle>,
}

/// The thread that waits for the end of a child.
struct Watch {
    supervisor: SupervisorHandle,
    /// Where the supervisor is put back.
    supervisors: Supervisors,
    control: Arc<Control>,
    suspension: Suspension,
}

impl Watch {
    fn begin(
        self,
        spec: &ProcessSpec,
        parent_ends: ParentEnds,
        report: Reporter,
    ) -> io::Result<Option<StdinPipe>> {
        let panics = self.supervisors.panics().clone();
        let exited = Arc::new(TreeExited::not_yet()?);
        let stdin = match (parent_ends.stdin, &spec.stdin) {
            (Some(pipe), Stdin::Bytes(bytes)) => {
                let mut writer = StdinWriter::new(pipe, bytes.clone());
                if writer.write() == WriteProgress::Blocked {
                    writer.write_in_thread(Arc::clone(&exited), &panics)?;
                }
                None
            }
            (Some(pipe), _) => Some(StdinPipe::new(pipe, Arc::clone(&exited))),
            (None, _) => None,
        };
        let drain = |source: OwnedFd, stream, chunks| {
            let drain = Drain {
                is_terminal: isatty(&source),
                source,
                stream,
                chunks,
                exited: Arc::clone(&exited),
                panics: panics.clone(),
            };
            start_draining(drain, Arc::clone(&report))
        };
        let stdout = drain(parent_ends.stdout, StreamName::Stdout, STDOUT_CHUNKS)?;
        let stderr = drain(parent_ends.stderr, StreamName::Stderr, STDERR_CHUNKS)?;
        let watch = move || {
            failpoint!(self.supervisors.panics(), Child);
            let TreeEnd { end, swept, exiting } = self.wait_for_tree();
            exited.announce();
            // Both threads end before the end is reported, so that it is the last event.
            let stdout_complete = stdout.join().is_ok_and(|drained| drained == Drained::Complete);
            let _ = stderr.join();
            report(ChildEvent::Ended(Ended {
                end,
                swept,
                stdout_complete,
            }));
            drop(report);
            // Last: waits for the exit of the supervisor.
            drop(exiting);
        };
        panics.spawn("child", watch)?;
        Ok(stdin)
    }

    /// Waits for the next notice. Heartbeats continue a supervisor that was stopped; one that does not answer is killed.
    fn next_notice(&mut self, line: &UnixStream) -> io::Result<Notice> {
        let mut last_notice = Instant::now();
        loop {
            let beat = Instant::now() + self.control.heartbeat_interval();
            let [readable] = poll::wait([(line.as_fd(), PollFlags::IN)], Some(beat));
            if readable {
                match Notice::read(line)? {
                    Notice::Alive => last_notice = Instant::now(),
                    notice => return Ok(notice),
                }
            } else if self.control.patience(last_notice) == Patience::Exhausted {
                self.supervisor.kill();
                return Err(io::ErrorKind::TimedOut.into());
            }
            let ralph = self.suspension;
            if Instant::now() >= beat {
                self.control.send(SupervisorCommand::Heartbeat { ralph });
            }
        }
    }

    fn wait_for_tree(mut self) -> TreeEnd {
        let line = Arc::clone(self.supervisor.line());
        let mut end = KILLED;
        loop {
            match self.next_notice(&line) {
                Ok(Notice::LeaderEnded(leader_end)) => end = leader_end,
                Ok(Notice::TreeExited { swept, supervisor }) => {
                    debug!(%end, swept, "the process tree has ended");
                    self.control.detach();
                    let exiting = match supervisor {
                        SupervisorFate::Waits => {
                            self.supervisors.put_back(self.supervisor);
                            None
                        }
                        SupervisorFate::Exits => Some(self.supervisor),
                    };
                    return TreeEnd { end, swept, exiting };
                }
                Ok(Notice::Panicked { bytes }) => {
                    let message = wire::read_panic(&*line, bytes);
                    self.supervisors.panics().report_remote(message);
                    break;
                }
                Ok(Notice::Started { .. } | Notice::Failed { .. } | Notice::Alive) => {}
                Err(error) => {
                    warn!(%error, "the supervisor has ended before its child");
                    break;
                }
            }
        }
        // The supervisor was killed or sent an invalid message: dropping it ends it. Its process id may then be used again.
        self.control.detach();
        drop(self.supervisor);
        TreeEnd {
            end,
            swept: self.supervisors.orphans().kill(),
            exiting: None,
        }
    }
}

fn start_draining(drain: Drain, report: Reporter) -> io::Result<JoinHandle<Drained>> {
    let name = match drain.stream {
        StreamName::Stdout => "stdout",
        StreamName::Stderr => "stderr",
    };
    let panics = drain.panics.clone();
    panics.spawn(name, move || drain.run(&*report))
}
