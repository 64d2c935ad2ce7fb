//! The children of a bench, each with its keeper, and one switch that stops all of them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use crate::event::{ProcessEnd, StreamName};
use crate::process::{Child, ChildEvent, ProcessSpec, Supervisors};

/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(5);

/// How a child came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub(super) enum Ran {
    Ended(ProcessEnd),
    /// It took too long and was stopped.
    TimedOut,
    /// The bench is being stopped.
    Stopped,
    CouldNotStart(String),
}

/// Starts children, and stops them all when asked.
pub(super) struct Children {
    supervisors: Supervisors,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    stopping: bool,
    next: u64,
    children: BTreeMap<u64, Arc<Child>>,
}

impl Children {
    pub(super) fn new(supervisors: Supervisors) -> Self {
        Self {
            supervisors,
            state: Mutex::default(),
        }
    }

    /// This same program, as a child is to start it.
    pub(super) fn ralph(&self) -> PathBuf {
        self.supervisors.program().to_owned()
    }

    /// Runs a program to its end, or to the end of its time. `hear` gets all that it writes.
    pub(super) fn run(
        &self,
        spec: &ProcessSpec,
        timeout: Duration,
        hear: impl Fn(StreamName, &[u8]) + Send + Sync + 'static,
    ) -> Ran {
        if self.are_stopping() {
            return Ran::Stopped;
        }
        let (ended, end) = mpsc::channel();
        let report = move |report: ChildEvent| match report {
            ChildEvent::Output { stream, chunk } => hear(stream, &chunk),
            ChildEvent::Ended(its_end) => drop(ended.send(its_end.end)),
        };
        let child = match Child::spawn(&self.supervisors, spec, report) {
            Ok(child) => Arc::new(child),
            Err(error) => return Ran::CouldNotStart(error.to_string()),
        };
        let ticket = self.enter(&child);
        let in_time = end.recv_timeout(timeout).ok();
        if in_time.is_none() {
            child.stop(GRACE);
            let _ = end.recv();
        }
        self.state().children.remove(&ticket);
        match in_time {
            _ if self.are_stopping() => Ran::Stopped,
            Some(end) => Ran::Ended(end),
            None => Ran::TimedOut,
        }
    }

    /// Asks every child to end; none is started any more.
    pub(super) fn stop(&self) {
        let mut state = self.state();
        state.stopping = true;
        state.children.values().for_each(|child| child.stop(GRACE));
    }

    /// Ends every child at once.
    pub(super) fn kill(&self) {
        self.stop();
        self.state().children.values().for_each(|child| child.kill());
    }

    pub(super) fn are_stopping(&self) -> bool {
        self.state().stopping
    }

    /// A child that started while everything was being stopped is stopped, too.
    fn enter(&self, child: &Arc<Child>) -> u64 {
        let mut state = self.state();
        if state.stopping {
            child.stop(GRACE);
        }
        state.next += 1;
        let ticket = state.next;
        state.children.insert(ticket, Arc::clone(child));
        ticket
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
