//! Sends commands for a child to its supervisor, as long as the child exists. Afterwards the supervisor runs the next
//! child, which must not receive them.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::supervisor::pool::SupervisorHandle;
use super::wire::SupervisorCommand;

/// The control line of the supervisor, until the child has exited.
///
/// A command is sent under the lock, and the supervisor becomes available for another child only after `detach`. So on the
/// line every command precedes the request for the next child, and a supervisor without a child ignores commands.
#[derive(Debug)]
pub(super) struct Control(Mutex<Option<Arc<UnixStream>>>);

impl Control {
    pub(super) fn of(supervisor: &SupervisorHandle) -> Self {
        Self(Mutex::new(Some(Arc::clone(supervisor.line()))))
    }

    /// Sends a command. It fails only if the supervisor has exited, and then there is nothing left to stop.
    pub(super) fn send(&self, command: SupervisorCommand) {
        if let Some(line) = &*self.line() {
            let sent = (&**line).write_all(&command.encode());
            crate::ok_or_log!(sent, "cannot send a command to the supervisor");
        }
    }

    /// The child has exited: later commands have no effect.
    pub(super) fn detach(&self) {
        *self.line() = None;
    }

    fn line(&self) -> MutexGuard<'_, Option<Arc<UnixStream>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
