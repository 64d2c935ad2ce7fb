//! Starts agents and gates. A runner starts a job and reports its output and its end.
//!
//! [`ProcessRunner`] starts child processes. Other runners, such as a session with a server, implement the same traits.

mod agent_job;
mod process;

pub use agent_job::{AgentJob, process_spec};
pub use process::ProcessRunner;

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use crate::event::{AgentEnd, AgentIdentity, StreamName};
use crate::process::{Chunk, Screen};

/// Starts jobs of one kind.
pub trait Runner<Job>: Send {
    /// Starts a job; may block until it runs. Its events are passed to `events`, from several threads, in
    /// order; the last one is [`RunnerEvent::Ended`]. While `events` blocks, and while the bytes it was given are not
    /// dropped, the job's output is not read.
    fn start(&self, job: Job, events: RunnerEvents) -> Result<Started, StartError>;
}

/// A running job. Dropping it kills whatever is still running.
pub trait Handle: Send + Sync {
    /// Asks the job to end, and kills it after `grace`.
    fn stop(&self, grace: Duration);

    fn kill(&self);

    /// The screen of a job that draws on one.
    fn screen(&self) -> Option<Screen> {
        None
    }
}

/// A job that was started.
pub struct Started {
    pub identity: AgentIdentity,
    /// The command line, for display; empty if there is none.
    pub command: Vec<String>,
    pub handle: Box<dyn Handle>,
}

/// Why a job could not be started.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StartError(pub String);

pub type RunnerEvents = Arc<dyn Fn(RunnerEvent) + Send + Sync>;

/// What happens while a job runs.
pub enum RunnerEvent {
    Output {
        stream: StreamName,
        bytes: OutputBytes,
    },
    /// The job and every process that it left behind have ended, and all output was reported.
    Ended {
        end: AgentEnd,
        swept: u64,
    },
}

/// Bytes of one stream. Their buffer returns to the reader's pool when the last reference is dropped.
#[derive(Clone)]
pub struct OutputBytes(Arc<Chunk>);

impl From<Chunk> for OutputBytes {
    fn from(chunk: Chunk) -> Self {
        Self(Arc::new(chunk))
    }
}

impl Deref for OutputBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}
