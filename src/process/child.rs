//! One child from start to end: its keeper, its threads, and the orders that it can be given.

use std::io::{self, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::adopt::{self, KeeperProcess};
use super::errand::Errand;
use super::feed::{Fed, Feed};
use super::read::{Drain, Drained, STDERR_CHUNKS, STDOUT_CHUNKS, TreeGone};
use super::streams::{self, OurEnds, TheirEnds};
use super::wire::{self, Notice, Order};
use super::{Ended, Keeper, ProcessError, Report, Screen, Spec, Stdin};
use crate::event::{ProcessEnd, StreamName};
use crate::mishap;

/// What a child is said to have died of when its keeper was killed and could not say.
const KILLED: ProcessEnd = ProcessEnd::Signaled { signal: 9 };

type Reporter = Arc<dyn Fn(Report) + Send + Sync>;

/// A running program and all that it starts. Dropping it kills whatever of that still lives.
#[derive(Debug)]
pub struct Child {
    pid: u32,
    control: Arc<UnixStream>,
    screen: Option<Screen>,
}

impl Child {
    /// Starts a program; returns once it runs or could not be started.
    ///
    /// `report` is called from several threads. While it does not return, or while the chunks that it was
    /// given are not dropped, the child's stream is not read: it must not wait for the child itself.
    pub fn spawn(
        keeper: &Keeper,
        spec: &Spec,
        report: impl Fn(Report) + Send + Sync + 'static,
    ) -> Result<Self, ProcessError> {
        let (theirs, mut ours) = streams::open(spec)?;
        let screen = ours.screen.take();
        let (control, keeper_process, pid) = start(keeper, spec, theirs)?;
        let control = Arc::new(control);
        let watch = Watch {
            control: Arc::clone(&control),
            keeper: keeper_process,
        };
        // From here on an early return closes the control line, and with it ends the child.
        watch
            .begin(spec, ours, Arc::new(report))
            .map_err(|error| ProcessError::spawn(spec, error))?;
        Ok(Self { pid, control, screen })
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
        self.order(Order::Stop { grace });
    }

    /// SIGKILL to the whole tree.
    pub fn kill(&self) {
        self.order(Order::Kill);
    }

    /// A keeper that does not listen any more has nothing left to stop.
    fn order(&self, order: Order) {
        let _ = (&*self.control).write_all(&order.encode());
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Sends a keeper on its errand, and waits until it has started the program.
fn start(
    keeper: &Keeper,
    spec: &Spec,
    theirs: TheirEnds,
) -> Result<(UnixStream, KeeperProcess, u32), ProcessError> {
    let keeper_failed = |error| ProcessError::keeper(keeper.program().to_path_buf(), spec, error);
    let errand = Errand::of(spec, theirs.terminal).encode();
    let errand = errand.map_err(|error| ProcessError::spawn(spec, error))?;
    let ready = keeper.ready().map_err(keeper_failed)?;
    let (control, process) = ready
        .into_parts()
        .ok_or_else(|| keeper_failed(io::ErrorKind::NotConnected.into()))?;
    let sent = wire::hand_over(&control, &errand, theirs.as_fds());
    drop(theirs);

    let error = match sent.and_then(|()| Notice::read(&control)) {
        Ok(Notice::Started { pid }) => return Ok((control, process, pid)),
        Ok(Notice::Failed { stage, errno }) => ProcessError::refused(spec, stage, errno),
        Ok(Notice::Mistaken { bytes }) => {
            mishap::hear_of(wire::read_words(&control, bytes));
            keeper_failed(io::ErrorKind::Other.into())
        }
        Ok(Notice::LeaderEnded(_) | Notice::TreeGone { .. }) => {
            keeper_failed(io::ErrorKind::InvalidData.into())
        }
        Err(error) => keeper_failed(error),
    };
    drop(control);
    process.wait();
    Err(error)
}

/// What is known of the end of a tree.
struct Gone {
    end: ProcessEnd,
    swept: u64,
    /// Still to be waited for, unless it was killed.
    keeper: Option<KeeperProcess>,
}

/// The thread that waits for the end of a child.
struct Watch {
    control: Arc<UnixStream>,
    keeper: KeeperProcess,
}

impl Watch {
    fn begin(self, spec: &Spec, ours: OurEnds, report: Reporter) -> io::Result<()> {
        let gone = Arc::new(TreeGone::not_yet()?);
        if let (Some(pipe), Stdin::Feed(bytes)) = (ours.stdin, &spec.stdin) {
            let mut feed = Feed::new(pipe, bytes.clone());
            if feed.write() == Fed::Waiting {
                feed.write_all_in_a_thread(Arc::clone(&gone))?;
            }
        }
        let drain = |source, stream, chunks| {
            let drain = Drain {
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
            mishap::rehearse_in_a_run("child");
            let Gone { end, swept, keeper } = self.until_the_tree_is_gone();
            gone.announce();
            // Both are awaited before the end is reported, so nothing of theirs can come after it.
            let stdout_complete = stdout.join().is_ok_and(|drained| drained == Drained::ToTheEnd);
            let _ = stderr.join();
            report(Report::Ended(Ended {
                end,
                swept,
                stdout_complete,
            }));
            drop(report);
            // Last, since the next child need not wait for the kernel to take this keeper apart.
            if let Some(keeper) = keeper {
                keeper.wait();
            }
        };
        thread::Builder::new().name("child".into()).spawn(watch)?;
        Ok(())
    }

    fn until_the_tree_is_gone(self) -> Gone {
        let mut end = KILLED;
        loop {
            match Notice::read(&*self.control) {
                Ok(Notice::LeaderEnded(its_end)) => end = its_end,
                Ok(Notice::TreeGone { swept }) => {
                    return Gone {
                        end,
                        swept,
                        keeper: Some(self.keeper),
                    };
                }
                Ok(Notice::Mistaken { bytes }) => {
                    mishap::hear_of(wire::read_words(&*self.control, bytes));
                    break;
                }
                Ok(Notice::Started { .. } | Notice::Failed { .. }) => {}
                Err(_) => break,
            }
        }
        // The keeper was killed. Should it only talk nonsense, then this ends it.
        let _ = self.control.shutdown(Shutdown::Both);
        self.keeper.wait();
        Gone {
            end,
            swept: adopt::kill_orphans(),
            keeper: None,
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
