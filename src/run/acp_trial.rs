//! Makes the one call of `ralph agents test` to an agent that speaks the Agent Client Protocol.

use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use crate::event::{AgentEnd, ProcessEnd, StreamName};
use crate::process::Supervisors;
use crate::runner::{AcpRunner, AgentJob, Runner, RunnerEvent, StartError};

/// The output of the call.
pub(super) struct AcpCall {
    /// `None` if it timed out.
    pub(super) end: Option<ProcessEnd>,
    pub(super) command: Vec<String>,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
    pub(super) swept: u64,
}

/// The limits of the call.
pub(super) struct AcpCallLimits {
    pub(super) timeout: Duration,
    /// The time between the request to stop and SIGKILL.
    pub(super) grace: Duration,
    /// Of each stream. More is not kept.
    pub(super) max_bytes: usize,
}

/// Runs the agent until it has answered and exited, or the time is over.
pub(super) fn call(
    job: AgentJob,
    supervisors: &Supervisors,
    limits: &AcpCallLimits,
) -> Result<AcpCall, StartError> {
    let streams: Arc<Mutex<[Vec<u8>; 2]>> = Arc::default();
    let (ended, end) = mpsc::channel();
    let (kept, max_bytes) = (Arc::clone(&streams), limits.max_bytes);
    let report = move |event| match event {
        RunnerEvent::Output { stream, bytes } => {
            let [stdout, stderr] = &mut *kept.lock().unwrap_or_else(PoisonError::into_inner);
            let stream = match stream {
                StreamName::Stdout => stdout,
                StreamName::Stderr => stderr,
            };
            let room = max_bytes.saturating_sub(stream.len()).min(bytes.len());
            stream.extend_from_slice(&bytes[..room]);
        }
        RunnerEvent::Denied { .. } => {}
        RunnerEvent::Ended { end, swept } => drop(ended.send((end, swept))),
    };
    let runner = AcpRunner::new(supervisors.clone());
    let started = runner.start(job, Arc::new(report))?;
    let in_time = end.recv_timeout(limits.timeout).ok();
    if in_time.is_none() {
        started.handle.stop(limits.grace);
        let _ = end.recv();
    }
    let [stdout, stderr] = std::mem::take(&mut *streams.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(AcpCall {
        swept: in_time.as_ref().map_or(0, |(_, swept)| *swept),
        end: in_time.and_then(|(end, _)| match end {
            AgentEnd::Exited { code } => Some(ProcessEnd::Exited { code }),
            AgentEnd::Signaled { signal } => Some(ProcessEnd::Signaled { signal }),
            AgentEnd::Lost { .. } => None,
        }),
        command: started.command,
        stdout,
        stderr,
    })
}
