//! Starts agents and gates. A runner starts a job and reports its output and its end.
//!
//! [`ProcessRunner`] starts child processes. [`AcpRunner`] also converses with an agent over its stdin and stdout.

mod acp;
mod agent_job;
mod process;
mod proxy;

pub use acp::AcpRunner;
pub use agent_job::{AgentJob, process_spec};
pub use process::{CommandJob, ProcessRunner};
pub use proxy::JobSandbox;

use std::ops::{Deref, Range};
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
    /// The sandbox refused a connection.
    Denied {
        host: String,
    },
    /// The job and every process that it left behind have ended, and all output was reported.
    Ended {
        end: AgentEnd,
        swept: u64,
    },
}

/// Bytes of one stream. Their buffer returns to the reader's pool when the last reference is dropped.
#[derive(Clone)]
pub struct OutputBytes {
    buffer: OutputBuffer,
    range: Range<usize>,
}

#[derive(Clone)]
enum OutputBuffer {
    Read(Arc<Chunk>),
    /// Written by the runner.
    Own(Arc<Vec<u8>>),
}

impl OutputBytes {
    /// A part of the bytes, in the same buffer.
    fn slice(&self, range: Range<usize>) -> Self {
        let start = self.range.start;
        Self {
            buffer: self.buffer.clone(),
            range: start + range.start..start + range.end,
        }
    }
}

impl From<Chunk> for OutputBytes {
    fn from(chunk: Chunk) -> Self {
        Self {
            range: 0..chunk.len(),
            buffer: OutputBuffer::Read(Arc::new(chunk)),
        }
    }
}

impl From<Vec<u8>> for OutputBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self {
            range: 0..bytes.len(),
            buffer: OutputBuffer::Own(Arc::new(bytes)),
        }
    }
}

impl Deref for OutputBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let bytes: &[u8] = match &self.buffer {
            OutputBuffer::Read(chunk) => chunk,
            OutputBuffer::Own(bytes) => bytes,
        };
        &bytes[self.range.clone()]
    }
}
