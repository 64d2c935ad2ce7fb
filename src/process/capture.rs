//! Runs a short program to its end and returns its output: versions, git, small checks.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use super::{Child, ChildEvent, ProcessError, ProcessSpec, Supervisors};
use crate::event::{ProcessEnd, StreamName};

/// Limits of a captured program.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub timeout: Duration,
    /// Time between SIGTERM and SIGKILL after the timeout.
    pub grace: Duration,
    /// Per stream. The head and the tail of a longer one are kept.
    pub max_bytes: usize,
}

/// The result of a captured program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// `None` if it was stopped after the timeout.
    pub end: Option<ProcessEnd>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub stdout_omitted: Option<Omitted>,
    pub stderr_omitted: Option<Omitted>,
    /// Number of processes that outlived it and were stopped.
    pub swept: u64,
}

/// The omitted middle of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Omitted {
    /// Its position in the kept bytes.
    pub at: usize,
    pub bytes: u64,
}

/// Runs a program until it exits or times out.
pub fn capture(
    supervisor: &Supervisors,
    spec: &ProcessSpec,
    bounds: Bounds,
) -> Result<Captured, ProcessError> {
    let streams = Arc::new(Mutex::new([
        HeadAndTail::new(bounds.max_bytes),
        HeadAndTail::new(bounds.max_bytes),
    ]));
    let (ended, end) = mpsc::channel();
    let kept = Arc::clone(&streams);
    let child = Child::spawn(supervisor, spec, move |report| match report {
        ChildEvent::Output { stream, chunk } => {
            let [stdout, stderr] = &mut *kept.lock().unwrap_or_else(PoisonError::into_inner);
            match stream {
                StreamName::Stdout => stdout.add(&chunk),
                StreamName::Stderr => stderr.add(&chunk),
            }
        }
        ChildEvent::Ended(its_end) => {
            let _ = ended.send(its_end);
        }
    })?;
    let in_time = end.recv_timeout(bounds.timeout).ok();
    if in_time.is_none() {
        tracing::debug!(program = %spec.program.display(), timeout = ?bounds.timeout, "timed out");
        child.stop(bounds.grace);
        let _ = end.recv();
    }
    // After a timeout, every process had to be stopped.
    let swept = in_time.map_or(0, |ended| ended.swept);
    let [stdout, stderr] = &mut *streams.lock().unwrap_or_else(PoisonError::into_inner);
    let (stdout, stdout_omitted) = stdout.take();
    let (stderr, stderr_omitted) = stderr.take();
    Ok(Captured {
        end: in_time.map(|ended| ended.end),
        stdout,
        stderr,
        stdout_omitted,
        stderr_omitted,
        swept,
    })
}

/// The beginning and the end of a stream, in bounded memory.
#[derive(Debug)]
struct HeadAndTail {
    head: Vec<u8>,
    head_limit: usize,
    tail: VecDeque<u8>,
    tail_limit: usize,
    omitted: u64,
}

impl HeadAndTail {
    fn new(limit: usize) -> Self {
        let tail_limit = limit / 2;
        Self {
            head: Vec::new(),
            head_limit: limit - tail_limit,
            tail: VecDeque::new(),
            tail_limit,
            omitted: 0,
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        let room = self.head_limit - self.head.len();
        let (head, rest) = bytes.split_at(bytes.len().min(room));
        self.head.extend_from_slice(head);
        // Skip what does not fit even into an empty tail.
        let (skipped, rest) = rest.split_at(rest.len().saturating_sub(self.tail_limit));
        let overflow = (self.tail.len() + rest.len()).saturating_sub(self.tail_limit);
        let dropped = if skipped.is_empty() {
            overflow
        } else {
            self.tail.len()
        };
        self.tail.drain(..dropped);
        self.tail.extend(rest);
        self.omitted += (skipped.len() + dropped) as u64;
    }

    fn take(&mut self) -> (Vec<u8>, Option<Omitted>) {
        let mut bytes = std::mem::take(&mut self.head);
        let omitted = (self.omitted > 0).then_some(Omitted {
            at: bytes.len(),
            bytes: self.omitted,
        });
        bytes.extend(std::mem::take(&mut self.tail));
        (bytes, omitted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(limit: usize, chunks: &[&[u8]]) -> (Vec<u8>, Option<Omitted>) {
        let mut stream = HeadAndTail::new(limit);
        chunks.iter().for_each(|chunk| stream.add(chunk));
        stream.take()
    }

    #[test]
    fn a_short_stream_is_kept_completely() {
        assert_eq!(kept(6, &[b"abc", b"def"]), (b"abcdef".to_vec(), None));
    }

    #[test]
    fn the_middle_of_a_long_stream_is_omitted() {
        let expected = (b"abcghi".to_vec(), Some(Omitted { at: 3, bytes: 3 }));
        assert_eq!(kept(6, &[b"abcdefghi"]), expected);
        assert_eq!(kept(6, &[b"a", b"bcde", b"f", b"gh", b"i"]), expected);
        assert_eq!(kept(6, &[b"abcde", b"fghi"]), expected);
    }
}
