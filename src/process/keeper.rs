//! The keeper: the small parent that each child has. It adopts whatever the child leaves behind, runs the
//! ladder of signals, and stops the whole tree when its control line ends, that is when ralph is gone.
//!
//! It is this same program under another name. Its stdin is the control line; the child's three streams come
//! over that line, and it keeps no copy of them, so it never holds a pipe open.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus};

use super::errand::Errand;
use super::launch;
use super::ready;
use super::signals::Signals;
use super::tree::Tree;
use super::wire::{self, MESSAGE_BYTES, Notice, Order, Stage, Terminal};
use crate::event::ProcessEnd;
use crate::mishap;

/// The argument of a keeper; what it is to start comes over the control line.
pub(super) const ARGUMENT: &str = "__keeper";
/// What `ps` shows.
pub(super) const DISPLAY_NAME: &str = "ralph-keeper";
/// What the kernel calls it. Not `ralph…`: `pkill -9 ralph` must leave somebody to clean up.
#[cfg(target_os = "linux")]
const KERNEL_NAME: &std::ffi::CStr = c"agent-keeper";

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

/// First thing in `main`: if this process was started as a keeper, is one and returns its exit code.
pub fn keep_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != ARGUMENT {
        return None;
    }
    let keep = || Keeping::begin().map(|keeping| keeping.map(Keeping::until_all_are_gone));
    Some(
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(keep)) {
            Ok(Ok(_)) => ExitCode::SUCCESS,
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
    let words = mishap::mistake().unwrap_or_default();
    let notice = Notice::Mistaken {
        bytes: words.len() as u64,
    };
    let _ = write_all(
        rustix::stdio::stdin(),
        &[&notice.encode()[..], words.as_bytes()].concat(),
    );
}

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

struct Keeping {
    control: BorrowedFd<'static>,
    /// False once the control line has ended.
    attended: bool,
    signals: Signals,
    tree: Tree,
    leader_has_ended: bool,
    phase: Phase,
    swept: BTreeSet<i32>,
    /// Notices that go out together before the next wait.
    outbox: Vec<u8>,
}

impl Keeping {
    /// Starts the child; nothing if it could not be started and the other side knows why.
    fn begin() -> io::Result<Option<Self>> {
        launch::close_inherited_descriptors();
        let control = rustix::stdio::stdin();
        // In the terminal's session a Ctrl-C would reach us beside the one order that counts.
        let _ = rustix::process::setsid();
        adopt_orphans();
        launch::unblock_signals();
        let signals = Signals::listen()?;
        // The workspace must not be busy because of us.
        let _ = std::env::set_current_dir("/");
        let (errand, [stdin, stdout, stderr]) = wire::take_over(control)?;
        let errand = Errand::decode(&errand).ok_or(io::ErrorKind::InvalidData)?;
        let mut command = Command::new(&errand.program);
        command
            .args(&errand.args)
            .env_clear()
            .envs(errand.environment.iter().map(|(name, value)| (name, value)))
            .stdin(stdin)
            .stdout(stdout)
            .stderr(stderr);
        let leader = match start(Path::new(&errand.cwd), &mut command, errand.terminal) {
            Ok(leader) => leader,
            Err((stage, error)) => {
                let errno = error.raw_os_error().unwrap_or(Errno::IO.raw_os_error());
                write_all(control, &Notice::Failed { stage, errno }.encode())?;
                return Ok(None);
            }
        };
        let _ = std::env::set_current_dir("/");
        let mut keeping = Self {
            control,
            attended: true,
            signals,
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
        if errand
            .environment
            .iter()
            .any(|(name, _)| name == "RALPH_ITERATION")
        {
            mishap::rehearse("keeper");
        }
        Ok(Some(keeping))
    }

    fn until_all_are_gone(mut self) {
        while self.reap() == Children::Left {
            let now = Instant::now();
            self.advance(now);
            if matches!(self.phase, Phase::Killing { give_up, .. } if give_up <= now) {
                break;
            }
            self.flush();
            self.listen();
        }
        self.tree.kill_escaped();
        self.say(Notice::TreeGone {
            swept: self.swept.len() as u64,
        });
        self.flush();
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
        let [order, signal] = ready::wait(
            [(control, PollFlags::IN), (self.signals.as_fd(), PollFlags::IN)],
            until,
        );
        if signal {
            self.signals.clear();
        }
        if self.signals.take_stop() {
            self.terminate(SIGNALLED_GRACE);
        }
        if order && self.attended {
            self.obey();
        }
    }

    fn obey(&mut self) {
        let mut bytes = [0; MESSAGE_BYTES];
        match wire::read_exact(self.control, &mut bytes).map(|()| Order::decode(&bytes)) {
            Ok(Some(Order::Stop { grace })) => self.terminate(grace),
            Ok(Some(Order::Kill)) => self.kill(Instant::now() + GIVE_UP),
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
        let _ = write_all(self.control, &self.outbox);
        self.outbox.clear();
    }
}

fn start(cwd: &Path, command: &mut Command, terminal: Terminal) -> Result<Pid, (Stage, io::Error)> {
    std::env::set_current_dir(cwd).map_err(|error| (Stage::WorkingDirectory, error))?;
    launch::lead_a_session(command, terminal);
    let leader = command.spawn().map_err(|error| (Stage::Exec, error))?;
    let pid = i32::try_from(leader.id()).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| (Stage::Exec, io::ErrorKind::InvalidData.into()))
}

/// Makes whatever loses its parent below us our child, and gives us our name.
fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    {
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        let _ = rustix::thread::set_name(KERNEL_NAME);
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

fn write_all(control: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(control, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
