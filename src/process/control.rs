//! Sends commands for a child to its supervisor, as long as the child exists. Afterwards the supervisor runs the next
//! child, which must not receive them.

use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::net::{SendFlags, send};
use rustix::process::{Pid, Signal, kill_process};

use super::supervisor::pool::SupervisorHandle;
use super::wire::SupervisorCommand;

/// Time between two heartbeats.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// The same after a command to stop.
const HEARTBEAT_WHILE_STOPPING: Duration = Duration::from_millis(200);
/// A supervisor that does not answer for this long after a grace has been stopped or is stuck.
const SILENCE: Duration = Duration::from_secs(1);

/// The control line of the supervisor, until the child has exited.
///
/// A command is sent under the lock, and the supervisor becomes available for another child only after `detach`. So on the
/// line every command precedes the request for the next child, and a supervisor without a child ignores commands.
///
/// An agent can stop its supervisor with SIGSTOP. So SIGCONT precedes every command, and a supervisor that still does not answer is
/// killed, which makes its children those of this process.
#[derive(Debug)]
pub(super) struct Control(Mutex<Option<ControlLine>>);

#[derive(Debug)]
struct ControlLine {
    stream: Arc<UnixStream>,
    supervisor: Pid,
    /// The end of the grace, after a command to stop.
    stop_by: Option<Instant>,
}

/// Whether a supervisor that does not answer is given more time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    Left,
    Exhausted,
}

impl Control {
    pub(super) fn of(supervisor: &SupervisorHandle) -> Self {
        Self(Mutex::new(supervisor.pid().map(|pid| ControlLine {
            stream: Arc::clone(supervisor.line()),
            supervisor: pid,
            stop_by: None,
        })))
    }

    /// Sends a command. It fails only if the supervisor has exited, and then there is nothing left to stop, or if the supervisor
    /// reads nothing, and then it is killed soon.
    pub(super) fn send(&self, command: SupervisorCommand) {
        if let Some(line) = &mut *self.line() {
            let grace = match command {
                SupervisorCommand::Stop { grace } => Some(grace),
                SupervisorCommand::Kill => Some(Duration::ZERO),
                SupervisorCommand::Heartbeat { .. } => None,
            };
            if let Some(due) = grace.and_then(|grace| Instant::now().checked_add(grace)) {
                line.stop_by = Some(line.stop_by.map_or(due, |before| before.min(due)));
            }
            let _ = kill_process(line.supervisor, Signal::CONT);
            // Never wait for a supervisor that does not read.
            let _ = send(
                &*line.stream,
                &command.encode(),
                SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
            );
        }
    }

    /// The time until the next heartbeat.
    pub(super) fn heartbeat_interval(&self) -> Duration {
        match &*self.line() {
            Some(line) if line.stop_by.is_some() => HEARTBEAT_WHILE_STOPPING,
            Some(_) | None => HEARTBEAT,
        }
    }

    /// Whether a supervisor whose last notice has this time may still be stopping the child.
    pub(super) fn patience(&self, last_notice: Instant) -> Patience {
        let stop_by = self.line().as_ref().and_then(|line| line.stop_by);
        match stop_by {
            Some(due) if due.max(last_notice).elapsed() > SILENCE => Patience::Exhausted,
            Some(_) | None => Patience::Left,
        }
    }

    /// The child has exited: later commands have no effect.
    pub(super) fn detach(&self) {
        *self.line() = None;
    }

    fn line(&self) -> MutexGuard<'_, Option<ControlLine>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
