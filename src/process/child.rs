//! One child from start to end: its keeper, its threads, and the orders that it can be given.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::termios::isatty;

use super::control::Control;
use super::orphans;
use super::read::{Drain, Drained, STDERR_CHUNKS, STDOUT_CHUNKS, TreeExited};
use super::spawn_request::SpawnRequest;
use super::stdin::{Fed, StdinWriter};
use super::streams::{self, OurEnds, TheirEnds};
use super::supervisor::pool::SupervisorHandle;
use super::wire::{self, Afterwards, Notice, SupervisorCommand};
use super::{ChildEvent, Ended, ProcessError, ProcessSpec, Screen, Stdin, Supervisors};
use crate::event::{ProcessEnd, StreamName};
use crate::panic_hook;

/// What a child is said to have died of when its keeper was killed and could not say.
const KILLED: ProcessEnd = ProcessEnd::Signaled { signal: 9 };

type Reporter = Arc<dyn Fn(ChildEvent) + Send + Sync>;

/// A running program and all that it starts. Dropping it kills whatever of that still lives.
#[derive(Debug)]
pub struct Child {
    pid: u32,
    reins: Arc<Control>,
    screen: Option<Screen>,
}

impl Child {
    /// Starts a program; returns once it runs or could not be started.
    ///
    /// `report` is called from several threads. While it does not return, or while the chunks that it was
    /// given are not dropped, the child's stream is not read: it must not wait for the child itself.
    pub fn spawn(
        supervisor: &Supervisors,
        spec: &ProcessSpec,
        report: impl Fn(ChildEvent) + Send + Sync + 'static,
    ) -> Result<Self, ProcessError> {
        let (theirs, mut ours) = streams::open(spec)?;
        let screen = ours.screen.take();
        let (hired, pid) = start(supervisor, spec, &theirs)?;
        drop(theirs);
        let reins = Arc::new(Control::of(&hired));
        let watch = Watch {
            hired,
            agency: supervisor.clone(),
            reins: Arc::clone(&reins),
        };
        // From here on an early return lets the keeper go, and with it ends the child.
        watch
            .begin(spec, ours, Arc::new(report))
            .map_err(|error| ProcessError::spawn(spec, error))?;
        Ok(Self { pid, reins, screen })
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// What somebody types into, where the child has a screen.
    pub fn screen(&self) -> Option<Screen> {
        self.screen.clone()
    }

    /// SIGTERM to the whole tree, then, after the grace, SIGKILL. Repeating it can only shorten the grace.
    pub fn stop(&self, grace: Duration) {
        self.reins.pull(SupervisorCommand::Stop { grace });
    }

    /// SIGKILL to the whole tree.
    pub fn kill(&self) {
        self.reins.pull(SupervisorCommand::Kill);
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Sends a keeper on its errand, and waits until it has started the program.
fn start(
    supervisor: &Supervisors,
    spec: &ProcessSpec,
    theirs: &TheirEnds,
) -> Result<(SupervisorHandle, u32), ProcessError> {
    let keeper_failed = |error| ProcessError::supervisor(supervisor.program().to_path_buf(), spec, error);
    let errand = SpawnRequest::of(spec, theirs.terminal).encode();
    let errand = errand.map_err(|error| ProcessError::spawn(spec, error))?;
    let send = |hired: &SupervisorHandle| {
        let mut line = &**hired.line();
        wire::hand_over(line, &errand, theirs.as_fds())?;
        Notice::read(&mut line)
    };
    let free = supervisor.take_free().map(|hired| (send(&hired), hired));
    let (notice, hired) = match free {
        Some((notice, hired)) if !matches!(&notice, Err(error) if had_gone(error)) => (notice, hired),
        Some(_) | None => {
            let hired = supervisor.start_new().map_err(keeper_failed)?;
            (send(&hired), hired)
        }
    };
    Err(match notice {
        Ok(Notice::Started { pid }) => return Ok((hired, pid)),
        Ok(Notice::Failed { stage, errno }) => {
            supervisor.take_back(hired);
            ProcessError::refused(spec, stage, errno)
        }
        Ok(Notice::Mistaken { bytes }) => {
            panic_hook::report_remote(wire::read_words(&**hired.line(), bytes));
            keeper_failed(io::ErrorKind::Other.into())
        }
        Ok(Notice::LeaderEnded(_) | Notice::TreeExited { .. }) => {
            keeper_failed(io::ErrorKind::InvalidData.into())
        }
        Err(error) => keeper_failed(error),
    })
}

/// Whether a keeper went before it had read its errand to the end, so that it cannot have started anything: it was killed
/// while it had no child. Once it has read all, the line would just end.
fn had_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
    )
}

/// What is known of the end of a tree.
struct Gone {
    end: ProcessEnd,
    swept: u64,
    /// One that leaves by itself, and need not be waited for at once.
    leaving: Option<SupervisorHandle>,
}

/// The thread that waits for the end of a child.
struct Watch {
    hired: SupervisorHandle,
    /// Where a keeper goes that is free again.
    agency: Supervisors,
    reins: Arc<Control>,
}

impl Watch {
    fn begin(self, spec: &ProcessSpec, ours: OurEnds, report: Reporter) -> io::Result<()> {
        let gone = Arc::new(TreeExited::not_yet()?);
        if let (Some(pipe), Stdin::StdinWriter(bytes)) = (ours.stdin, &spec.stdin) {
            let mut feed = StdinWriter::new(pipe, bytes.clone());
            if feed.write() == Fed::Waiting {
                feed.write_all_in_a_thread(Arc::clone(&gone))?;
            }
        }
        let drain = |source: OwnedFd, stream, chunks| {
            let drain = Drain {
                is_terminal: isatty(&source),
                source,
                stream,
                chunks,
                gone: Arc::clone(&gone),
            };
            begin_draining(drain, Arc::clone(&report))
        };
        let stdout = drain(ours.stdout, StreamName::Stdout, STDOUT_CHUNKS)?;
        let stderr = drain(ours.stderr, StreamName::Stderr, STDERR_CHUNKS)?;
        let watch = move || {
            panic_hook::failpoint_in_run("child");
            let Gone { end, swept, leaving } = self.until_the_tree_is_gone();
            gone.announce();
            // Both are awaited before the end is reported, so nothing of theirs can come after it.
            let stdout_complete = stdout.join().is_ok_and(|drained| drained == Drained::ToTheEnd);
            let _ = stderr.join();
            report(ChildEvent::Ended(Ended {
                end,
                swept,
                stdout_complete,
            }));
            drop(report);
            // Last, since the next child need not wait for the kernel to take this keeper apart.
            drop(leaving);
        };
        thread::Builder::new().name("child".into()).spawn(watch)?;
        Ok(())
    }

    fn until_the_tree_is_gone(self) -> Gone {
        let line = Arc::clone(self.hired.line());
        let mut end = KILLED;
        loop {
            match Notice::read(&*line) {
                Ok(Notice::LeaderEnded(its_end)) => end = its_end,
                Ok(Notice::TreeExited { swept, supervisor }) => {
                    self.reins.let_go();
                    let leaving = match supervisor {
                        Afterwards::Waits => {
                            self.agency.take_back(self.hired);
                            None
                        }
                        Afterwards::Leaves => Some(self.hired),
                    };
                    return Gone { end, swept, leaving };
                }
                Ok(Notice::Mistaken { bytes }) => {
                    panic_hook::report_remote(wire::read_words(&*line, bytes));
                    break;
                }
                Ok(Notice::Started { .. } | Notice::Failed { .. }) => {}
                Err(_) => break,
            }
        }
        // The keeper was killed. Should it only talk nonsense, then this ends it.
        drop(self.hired);
        Gone {
            end,
            swept: orphans::kill_orphans(),
            leaving: None,
        }
    }
}

fn begin_draining(drain: Drain, report: Reporter) -> io::Result<JoinHandle<Drained>> {
    let name = match drain.stream {
        StreamName::Stdout => "stdout",
        StreamName::Stderr => "stderr",
    };
    thread::Builder::new()
        .name(name.into())
        .spawn(move || drain.run(&*report))
}
