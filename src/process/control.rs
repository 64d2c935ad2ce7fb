//! The orders that a child can be given, for as long as it is there: its keeper goes on to the next child, which must
//! not get them.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::supervisor::pool::SupervisorHandle;
use super::wire::SupervisorCommand;

/// The keeper's line, until the child is gone.
///
/// An order is sent under the lock, and the keeper is free for another child only after `let_go`. So on the line every
/// order comes before the next child's errand, and a keeper that has no child does not heed orders.
#[derive(Debug)]
pub(super) struct Control(Mutex<Option<Arc<UnixStream>>>);

impl Control {
    pub(super) fn of(supervisor: &SupervisorHandle) -> Self {
        Self(Mutex::new(Some(Arc::clone(supervisor.line()))))
    }

    /// A keeper that does not listen any more has nothing left to stop.
    pub(super) fn pull(&self, order: SupervisorCommand) {
        if let Some(line) = &*self.line() {
            let _ = (&**line).write_all(&order.encode());
        }
    }

    /// The child is gone; orders for it come to nothing.
    pub(super) fn let_go(&self) {
        *self.line() = None;
    }

    fn line(&self) -> MutexGuard<'_, Option<Arc<UnixStream>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
