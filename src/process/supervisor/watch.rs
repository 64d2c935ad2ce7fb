//! Supervises a child: adopts the processes that it leaves behind, stops the tree with SIGTERM and SIGKILL on command, and
//! stops it when the control line ends, which means that ralph has exited.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use crate::event::ProcessEnd;
use crate::process::poll;
#[cfg(target_os = "linux")]
use crate::process::sandbox::start::ConfinedChild;
use crate::process::signals::Signals;
use crate::process::tree::Tree;
use crate::process::wire::{self, MESSAGE_BYTES, Notice, SupervisorCommand, SupervisorFate, Suspension};

/// Time for other processes to exit by themselves after the child: the `tee` at the end of a script still has to write its
/// last line.
const LINGER: Duration = Duration::from_millis(100);
/// Time between SIGTERM and SIGKILL for processes that outlive the child.
const LEFTOVER_GRACE: Duration = Duration::from_secs(1);
/// Time between SIGTERM and SIGKILL for the tree after ralph has exited.
const ABANDONED_GRACE: Duration = Duration::from_millis(500);
/// Time between SIGTERM and SIGKILL for the tree after a signal to the supervisor.
const SIGNALED_GRACE: Duration = Duration::from_secs(5);
/// Interval between two SIGKILLs. The first may not reach a process that has just changed its user.
const KILL_AGAIN: Duration = Duration::from_millis(200);
/// Time without a heartbeat after which ralph is taken for stopped.
const SUSPENDED_AFTER: Duration = Duration::from_secs(5);
/// Interval between two counts of a tree that was asked to exit.
const COUNT_AGAIN: Duration = Duration::from_millis(100);
/// A tree that grows by this many processes after SIGTERM is killed at once: it could outgrow the machine before its grace ends.
const MAX_GROWTH: usize = 64;
/// Time after which processes that do not die are given up: the kernel cannot end them now.
const GIVE_UP: Duration = Duration::from_secs(3);
/// Time after which a tree that keeps growing while it is killed is given up.
const GIVE_UP_GROWING: Duration = Duration::from_secs(60);

/// The end of a confined program whose first process was killed and could not report it.
const KILLED: ProcessEnd = ProcessEnd::Signaled { signal: 9 };

/// The stage of ending the tree.
#[derive(Debug, Clone, Copy)]
enum Phase {
    Running,
    /// The child has exited by itself. The rest of the tree may do the same.
    Lingering {
        until: Instant,
    },
    /// SIGTERM was sent to the whole tree.
    Terminating {
        until: Instant,
        /// The number of processes.
        size: usize,
        count_again: Instant,
    },
    /// SIGKILL was sent to the whole tree.
    Killing {
        since: Instant,
        again: Instant,
        give_up: Instant,
    },
}

/// Whether the supervisor has a child left, its own or an adopted one.
#[derive(Debug, PartialEq, Eq)]
enum Children {
    Left,
    None,
}

/// A child that was started.
pub(in crate::process) enum Leader {
    Direct(Pid),
    #[cfg(target_os = "linux")]
    Confined(ConfinedChild),
}

/// A child and the process tree below it.
pub(in crate::process) struct TreeWatch<'a> {
    control: BorrowedFd<'a>,
    /// False once the control line has ended.
    connected: bool,
    signals: &'a Signals,
    /// A signal has asked the supervisor to exit.
    exit_requested: bool,
    tree: Tree,
    /// The first process of a confined child reports the end of the program.
    notices: Option<UnixStream>,
    /// Nothing more will be reported.
    notices_ended: bool,
    /// The child of the supervisor: the program, or the first process of its namespaces.
    child_has_ended: bool,
    leader_has_ended: bool,
    phase: Phase,
    swept: BTreeSet<i32>,
    /// The processes that SIGKILL was sent to.
    killed: BTreeSet<i32>,
    /// The last heartbeat.
    heartbeat: Option<(Instant, Suspension)>,
    /// Notices that go out together before the next wait.
    outbox: Vec<u8>,
}

impl<'a> TreeWatch<'a> {
    /// Starts watching a child that was just started.
    pub(in crate::process) fn begin(control: BorrowedFd<'a>, signals: &'a Signals, leader: Leader) -> Self {
        let (child, leader, notices) = match leader {
            Leader::Direct(pid) => (pid, pid, None),
            #[cfg(target_os = "linux")]
            Leader::Confined(confined) => (confined.first_process, confined.leader, Some(confined.notices)),
        };
        let mut watch = Self {
            control,
            connected: true,
            signals,
            exit_requested: false,
            tree: Tree {
                root: rustix::process::getpid(),
                leader: child,
            },
            notices,
            notices_ended: false,
            child_has_ended: false,
            leader_has_ended: false,
            phase: Phase::Running,
            swept: BTreeSet::new(),
            killed: BTreeSet::new(),
            heartbeat: None,
            outbox: Vec::new(),
        };
        watch.notify(Notice::Started {
            pid: leader.as_raw_pid().cast_unsigned(),
        });
        watch.flush();
        watch
    }

    /// Runs until no process of the tree is left.
    pub(in crate::process) fn run(mut self) -> SupervisorFate {
        let mut fate = SupervisorFate::Waits;
        while self.reap() == Children::Left {
            let now = Instant::now();
            self.advance(now);
            if matches!(self.phase, Phase::Killing { give_up, .. } if give_up <= now) {
                // The rest must not be mistaken for processes of the next child.
                fate = SupervisorFate::Exits;
                break;
            }
            self.flush();
            self.wait();
        }
        self.tree.kill_escaped();
        if self.exit_requested || !self.connected {
            fate = SupervisorFate::Exits;
        }
        self.notify(Notice::TreeExited {
            swept: self.swept.len() as u64,
            supervisor: fate,
        });
        self.flush();
        fate
    }

    /// Collects the exit status of every child that has exited.
    fn reap(&mut self) -> Children {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.tree.leader => {
                    self.child_has_ended = true;
                    self.read_notices();
                    self.leader_ended(match self.notices {
                        Some(_) => KILLED,
                        None => process_end(status),
                    });
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return Children::Left,
                Err(_) => return Children::None,
            }
        }
    }

    /// Reads what the first process of a confined child has reported.
    fn read_notices(&mut self) {
        let Some(notices) = &self.notices else {
            return;
        };
        let [readable] = poll::wait([(notices.as_fd(), PollFlags::IN)], Some(Instant::now()));
        if !readable {
            return;
        }
        match Notice::read(notices) {
            Ok(Notice::LeaderEnded(end)) => self.leader_ended(end),
            Ok(_) => {}
            // It has ended, and the next `reap` reports that.
            Err(_) => self.notices_ended = true,
        }
    }

    fn leader_ended(&mut self, end: ProcessEnd) {
        if !self.leader_has_ended {
            self.leader_has_ended = true;
            self.shorten_grace(LEFTOVER_GRACE);
            self.notify(Notice::LeaderEnded(end));
        }
    }

    /// Enters the next phase if it is due.
    fn advance(&mut self, now: Instant) {
        match self.phase {
            Phase::Running if self.leader_has_ended => {
                self.phase = Phase::Lingering { until: now + LINGER };
            }
            Phase::Lingering { until } if until <= now => self.terminate(LEFTOVER_GRACE),
            Phase::Terminating { until, .. } if until <= now => self.kill(),
            Phase::Terminating {
                until,
                size,
                count_again,
            } if count_again <= now => {
                if self.tree.size() > size + MAX_GROWTH {
                    self.kill();
                } else {
                    self.phase = Phase::Terminating {
                        until,
                        size,
                        count_again: now + COUNT_AGAIN,
                    };
                }
            }
            Phase::Killing { again, .. } if again <= now => self.kill(),
            Phase::Running | Phase::Lingering { .. } | Phase::Terminating { .. } | Phase::Killing { .. } => {}
        }
    }

    /// Waits for a command, a signal, or the end of the phase.
    fn wait(&mut self) {
        let until = match self.phase {
            Phase::Running => match self.heartbeat {
                Some((last, Suspension::Unexpected)) => Some(last + SUSPENDED_AFTER),
                Some((_, Suspension::ByUser)) | None => None,
            },
            Phase::Lingering { until } => Some(until),
            Phase::Terminating {
                until, count_again, ..
            } => Some(until.min(count_again)),
            Phase::Killing { again, .. } => Some(again),
        };
        // A line that has ended is always readable, so poll the other descriptor twice instead.
        let control = if self.connected {
            self.control
        } else {
            self.signals.as_fd()
        };
        let notices = match &self.notices {
            Some(notices) if !self.notices_ended => notices.as_fd(),
            Some(_) | None => self.signals.as_fd(),
        };
        let wanted = [control, self.signals.as_fd(), notices];
        let [command, signal, noticed] = poll::wait(wanted.map(|fd| (fd, PollFlags::IN)), until);
        if noticed {
            self.read_notices();
        }
        if signal {
            self.signals.clear();
        }
        if self.signals.take_stop() {
            self.exit_requested = true;
            self.terminate(SIGNALED_GRACE);
        }
        if command && self.connected {
            self.execute_command();
        } else {
            self.continue_ralph();
        }
    }

    /// Continues a ralph that an agent has stopped to escape its limits. A user with a terminal may suspend ralph.
    fn continue_ralph(&mut self) {
        let Some((last, Suspension::Unexpected)) = self.heartbeat else {
            return;
        };
        if self.connected && last.elapsed() >= SUSPENDED_AFTER {
            self.heartbeat = Some((Instant::now(), Suspension::Unexpected));
            if let Some(ralph) = rustix::process::getppid().filter(|pid| !pid.is_init()) {
                let _ = rustix::process::kill_process(ralph, Signal::CONT);
            }
        }
    }

    fn execute_command(&mut self) {
        let mut bytes = [0; MESSAGE_BYTES];
        match wire::read_exact(self.control, &mut bytes).map(|()| SupervisorCommand::decode(&bytes)) {
            Ok(Some(SupervisorCommand::Stop { grace })) => self.terminate(grace),
            Ok(Some(SupervisorCommand::Kill)) => self.kill(),
            Ok(Some(SupervisorCommand::Heartbeat { ralph })) => {
                self.heartbeat = Some((Instant::now(), ralph));
                self.notify(Notice::Alive);
            }
            // An unknown command has the same effect as the end of the line.
            Ok(None) | Err(_) => {
                self.connected = false;
                self.terminate(ABANDONED_GRACE);
            }
        }
    }

    /// Sends SIGTERM to the tree, and SIGKILL at most `grace` from now.
    fn terminate(&mut self, grace: Duration) {
        match self.phase {
            Phase::Running | Phase::Lingering { .. } => {
                let signaled = self.tree.terminate();
                self.count(&signaled);
                let grace = if self.leader_has_ended {
                    grace.min(LEFTOVER_GRACE)
                } else {
                    grace
                };
                self.phase = Phase::Terminating {
                    until: after(grace),
                    size: signaled.len(),
                    count_again: after(COUNT_AGAIN),
                };
            }
            Phase::Terminating { .. } => self.shorten_grace(grace),
            Phase::Killing { .. } => {}
        }
    }

    /// Shortens a running grace. It is never extended.
    fn shorten_grace(&mut self, grace: Duration) {
        if let Phase::Terminating { until, .. } = &mut self.phase {
            *until = (*until).min(after(grace));
        }
    }

    /// Sends SIGKILL to the tree. Processes that started others in the meantime extend the time until ralph gives up.
    fn kill(&mut self) {
        let killed = self.kill_tree();
        self.count(&killed);
        let mut grown = false;
        for pid in killed {
            grown |= self.killed.insert(pid.as_raw_pid());
        }
        let now = Instant::now();
        let (since, before) = match self.phase {
            Phase::Killing { since, give_up, .. } => (since, give_up),
            Phase::Running | Phase::Lingering { .. } | Phase::Terminating { .. } => (now, now + GIVE_UP),
        };
        let give_up = match grown {
            true => (now + GIVE_UP).min(since + GIVE_UP_GROWING),
            false => before,
        };
        self.phase = Phase::Killing {
            since,
            again: now + KILL_AGAIN,
            give_up,
        };
    }

    /// Kills every process of the tree. The end of a confined child's first process ends its namespaces at once, however many
    /// processes there are.
    fn kill_tree(&self) -> Vec<Pid> {
        if self.notices.is_some() && !self.child_has_ended {
            let _ = rustix::process::kill_process(self.tree.leader, Signal::KILL);
        }
        self.tree.kill()
    }

    /// Counts the processes that outlived the child.
    fn count(&mut self, signaled: &[Pid]) {
        if self.leader_has_ended {
            let others = signaled.iter().filter(|pid| **pid != self.tree.leader);
            self.swept.extend(others.map(|pid| pid.as_raw_pid()));
        }
    }

    fn notify(&mut self, notice: Notice) {
        self.outbox.extend_from_slice(&notice.encode());
    }

    /// If ralph has exited, the next read reports the end of the line.
    fn flush(&mut self) {
        let _ = wire::write_all(self.control, &self.outbox);
        self.outbox.clear();
    }
}

pub(in crate::process) fn process_end(status: WaitStatus) -> ProcessEnd {
    match status.terminating_signal() {
        Some(signal) => ProcessEnd::Signaled { signal },
        None => ProcessEnd::Exited {
            code: status.exit_status().unwrap_or(-1),
        },
    }
}

/// The deadline of a grace. A grace can be unlimited, so it is cut to a day.
fn after(grace: Duration) -> Instant {
    Instant::now() + grace.min(Duration::from_secs(24 * 60 * 60))
}
