//! Starts the child processes of a plan or a bench, each with its supervisor, and stops all of them together.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use crate::event::{ProcessEnd, StreamName};
use crate::process::{Child, ChildEvent, ProcessSpec, Supervisors};

/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(5);
/// Maximum size of the output that `run_captured` returns.
const MAX_CAPTURED: usize = 64 << 10;

/// How a child process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub(crate) enum ChildOutcome {
    Ended(ProcessEnd),
    /// Stopped after its timeout.
    TimedOut,
    /// All children are being stopped.
    Stopped,
    CouldNotStart(String),
}

/// The running child processes of a plan or a bench.
pub(crate) struct ChildProcesses {
    supervisors: Supervisors,
    state: Mutex<ChildrenState>,
}

#[derive(Default)]
struct ChildrenState {
    stopping: bool,
    next: u64,
    children: BTreeMap<u64, Arc<Child>>,
}

impl ChildProcesses {
    pub(crate) fn new(supervisors: Supervisors) -> Self {
        Self {
            supervisors,
            state: Mutex::default(),
        }
    }

    /// Returns the path of this program, to start it as a child.
    pub(crate) fn ralph(&self) -> PathBuf {
        self.supervisors.program().to_owned()
    }

    /// Runs a program until it exits or times out, and passes its output to `on_output`.
    pub(crate) fn run(
        &self,
        spec: &ProcessSpec,
        timeout: Duration,
        on_output: impl Fn(StreamName, &[u8]) + Send + Sync + 'static,
    ) -> ChildOutcome {
        if self.are_stopping() {
            return ChildOutcome::Stopped;
        }
        let (ended, end) = mpsc::channel();
        let on_event = move |event: ChildEvent| match event {
            ChildEvent::Output { stream, chunk } => on_output(stream, &chunk),
            ChildEvent::Ended(exit) => drop(ended.send(exit.end)),
        };
        let child = match Child::spawn(&self.supervisors, spec, on_event) {
            Ok(child) => Arc::new(child),
            Err(error) => return ChildOutcome::CouldNotStart(error.to_string()),
        };
        let key = self.register(&child);
        let in_time = end.recv_timeout(timeout).ok();
        if in_time.is_none() {
            child.stop(GRACE);
            let _ = end.recv();
        }
        self.state().children.remove(&key);
        match in_time {
            _ if self.are_stopping() => ChildOutcome::Stopped,
            Some(end) => ChildOutcome::Ended(end),
            None => ChildOutcome::TimedOut,
        }
    }

    /// Runs a program and returns the end of its output.
    pub(crate) fn run_captured(&self, spec: &ProcessSpec, timeout: Duration) -> (ChildOutcome, String) {
        let tail = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&tail);
        let outcome = self.run(spec, timeout, move |_, bytes| {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend_from_slice(bytes);
            let surplus = kept.len().saturating_sub(MAX_CAPTURED);
            kept.drain(..surplus);
        });
        let tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        (outcome, String::from_utf8_lossy(&tail).trim().to_owned())
    }

    /// Shuts down the supervisor that waits for the next child.
    pub(crate) fn shut_down(&self) {
        self.supervisors.shut_down();
    }

    /// Stops every child and starts no more.
    pub(crate) fn stop(&self) {
        let mut state = self.state();
        state.stopping = true;
        state.children.values().for_each(|child| child.stop(GRACE));
    }

    /// Kills every child.
    pub(crate) fn kill(&self) {
        self.stop();
        self.state().children.values().for_each(|child| child.kill());
    }

    pub(crate) fn are_stopping(&self) -> bool {
        self.state().stopping
    }

    /// Registers a child, and stops it if all children are being stopped.
    fn register(&self, child: &Arc<Child>) -> u64 {
        let mut state = self.state();
        if state.stopping {
            child.stop(GRACE);
        }
        state.next += 1;
        let key = state.next;
        state.children.insert(key, Arc::clone(child));
        key
    }

    fn state(&self) -> MutexGuard<'_, ChildrenState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
