//! What a keeper does while it has a child: it adopts whatever the child leaves behind, runs the ladder of signals, and
//! stops the whole tree when its control line ends, that is when ralph is gone.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus};

use crate::event::ProcessEnd;
use crate::process::poll;
use crate::process::signals::Signals;
use crate::process::tree::Tree;
use crate::process::wire::{self, Afterwards, MESSAGE_BYTES, Notice, SupervisorCommand};

/// How long a process may finish by itself once the child has exited: the `tee` at the end of a script
/// still has to write its last line.
const LINGER: Duration = Duration::from_millis(100);
/// How long what the child left behind has between SIGTERM and SIGKILL.
const LEFTOVER_GRACE: Duration = Duration::from_secs(1);
/// The same for the whole tree when ralph is gone.
const ABANDONED_GRACE: Duration = Duration::from_millis(500);
/// The same when somebody signals the keeper itself.
const SIGNALLED_GRACE: Duration = Duration::from_secs(5);
/// SIGKILL is repeated, for what a process of another user or a slow system call may need …
const KILL_AGAIN: Duration = Duration::from_millis(200);
/// … until then: a process that does not die of it now is in the hands of the kernel.
const GIVE_UP: Duration = Duration::from_secs(3);

/// What the keeper is doing.
#[derive(Debug, Clone, Copy)]
enum Phase {
    Running,
    /// The child has exited by itself; its leftovers may do the same.
    Lingering {
        until: Instant,
    },
    /// All have had SIGTERM.
    Terminating {
        until: Instant,
    },
    /// All have had SIGKILL.
    Killing {
        again: Instant,
        give_up: Instant,
    },
}

/// Whether a child of the keeper is left, be it its own or an adopted one.
#[derive(Debug, PartialEq, Eq)]
enum Children {
    Left,
    None,
}

/// One child, and all that it starts.
pub(in crate::process) struct Keeping<'a> {
    control: BorrowedFd<'a>,
    /// False once the control line has ended.
    attended: bool,
    signals: &'a Signals,
    /// Whether somebody has told the keeper itself to go.
    dismissed: bool,
    tree: Tree,
    leader_has_ended: bool,
    phase: Phase,
    swept: BTreeSet<i32>,
    /// Notices that go out together before the next wait.
    outbox: Vec<u8>,
}

impl<'a> Keeping<'a> {
    /// The child has just been started.
    pub(in crate::process) fn begin(control: BorrowedFd<'a>, signals: &'a Signals, leader: Pid) -> Self {
        let mut keeping = Self {
            control,
            attended: true,
            signals,
            dismissed: false,
            tree: Tree {
                root: rustix::process::getpid(),
                leader,
            },
            leader_has_ended: false,
            phase: Phase::Running,
            swept: BTreeSet::new(),
            outbox: Vec::new(),
        };
        keeping.say(Notice::Started {
            pid: leader.as_raw_pid().cast_unsigned(),
        });
        keeping.flush();
        keeping
    }

    pub(in crate::process) fn until_all_are_gone(mut self) -> Afterwards {
        let mut afterwards = Afterwards::Waits;
        while self.reap() == Children::Left {
            let now = Instant::now();
            self.advance(now);
            if matches!(self.phase, Phase::Killing { give_up, .. } if give_up <= now) {
                // What is left here must not be taken for something of the next child.
                afterwards = Afterwards::Leaves;
                break;
            }
            self.flush();
            self.listen();
        }
        self.tree.kill_escaped();
        if self.dismissed || !self.attended {
            afterwards = Afterwards::Leaves;
        }
        self.say(Notice::TreeExited {
            swept: self.swept.len() as u64,
            supervisor: afterwards,
        });
        self.flush();
        afterwards
    }

    /// Takes the exit status of every child that has one.
    fn reap(&mut self) -> Children {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.tree.leader => {
                    self.leader_has_ended = true;
                    self.hasten(LEFTOVER_GRACE);
                    self.say(Notice::LeaderEnded(process_end(status)));
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return Children::Left,
                Err(_) => return Children::None,
            }
        }
    }

    /// Moves on to the next phase if it is time.
    fn advance(&mut self, now: Instant) {
        match self.phase {
            Phase::Running if self.leader_has_ended => {
                self.phase = Phase::Lingering { until: now + LINGER };
            }
            Phase::Lingering { until } if until <= now => self.terminate(LEFTOVER_GRACE),
            Phase::Terminating { until } if until <= now => self.kill(now + GIVE_UP),
            Phase::Killing { again, give_up } if again <= now => self.kill(give_up),
            Phase::Running | Phase::Lingering { .. } | Phase::Terminating { .. } | Phase::Killing { .. } => {}
        }
    }

    /// Waits for an order, a signal, or the end of the phase.
    fn listen(&mut self) {
        let until = match self.phase {
            Phase::Running => None,
            Phase::Lingering { until } | Phase::Terminating { until } => Some(until),
            Phase::Killing { again, .. } => Some(again),
        };
        // A line that has ended would be ready for ever, so the other descriptor stands in for it.
        let control = if self.attended {
            self.control
        } else {
            self.signals.as_fd()
        };
        let [order, signal] = poll::wait(
            [(control, PollFlags::IN), (self.signals.as_fd(), PollFlags::IN)],
            until,
        );
        if signal {
            self.signals.clear();
        }
        if self.signals.take_stop() {
            self.dismissed = true;
            self.terminate(SIGNALLED_GRACE);
        }
        if order && self.attended {
            self.obey();
        }
    }

    fn obey(&mut self) {
        let mut bytes = [0; MESSAGE_BYTES];
        match wire::read_exact(self.control, &mut bytes).map(|()| SupervisorCommand::decode(&bytes)) {
            Ok(Some(SupervisorCommand::Stop { grace })) => self.terminate(grace),
            Ok(Some(SupervisorCommand::Kill)) => self.kill(Instant::now() + GIVE_UP),
            // An order that makes no sense is as good as none: nobody we know is at the other end.
            Ok(None) | Err(_) => {
                self.attended = false;
                self.terminate(ABANDONED_GRACE);
            }
        }
    }

    /// SIGTERM to all, and SIGKILL not later than `grace` from now.
    fn terminate(&mut self, grace: Duration) {
        match self.phase {
            Phase::Running | Phase::Lingering { .. } => {
                let asked = self.tree.terminate();
                self.count(&asked);
                let grace = if self.leader_has_ended {
                    grace.min(LEFTOVER_GRACE)
                } else {
                    grace
                };
                self.phase = Phase::Terminating { until: after(grace) };
            }
            Phase::Terminating { .. } => self.hasten(grace),
            Phase::Killing { .. } => {}
        }
    }

    /// A grace that runs may be shortened, never prolonged.
    fn hasten(&mut self, grace: Duration) {
        if let Phase::Terminating { until } = &mut self.phase {
            *until = (*until).min(after(grace));
        }
    }

    fn kill(&mut self, give_up: Instant) {
        let killed = self.tree.kill();
        self.count(&killed);
        self.phase = Phase::Killing {
            again: after(KILL_AGAIN),
            give_up,
        };
    }

    /// What still lives once the child has exited was left behind.
    fn count(&mut self, signalled: &[Pid]) {
        if self.leader_has_ended {
            self.swept.extend(signalled.iter().map(|pid| pid.as_raw_pid()));
        }
    }

    fn say(&mut self, notice: Notice) {
        self.outbox.extend_from_slice(&notice.encode());
    }

    /// If nobody hears it, the end of the line will tell us.
    fn flush(&mut self) {
        let _ = wire::write_all(self.control, &self.outbox);
        self.outbox.clear();
    }
}

fn process_end(status: WaitStatus) -> ProcessEnd {
    match status.terminating_signal() {
        Some(signal) => ProcessEnd::Signaled { signal },
        None => ProcessEnd::Exited {
            code: status.exit_status().unwrap_or(-1),
        },
    }
}

/// A grace may be given as "for ever"; a day is that for a process.
fn after(grace: Duration) -> Instant {
    Instant::now() + grace.min(Duration::from_secs(24 * 60 * 60))
}
