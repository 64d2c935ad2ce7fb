//! Reads the child's output: one thread per stream, which passes on what it reads.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::{Errno, ioctl_fionread};

use super::pool::{CHUNK_BYTES, Chunk, Pool};
use super::{ChildEvent, poll};
use crate::event::StreamName;
use crate::failpoint;
use crate::panic_hook::PanicScope;

/// Maximum number of stdout chunks in use.
pub const STDOUT_CHUNKS: usize = 3;
/// Maximum number of stderr chunks in use.
pub const STDERR_CHUNKS: usize = 2;

/// Output within this time after the last report is collected into one report: a program that prints many small pieces, as
/// most do on a terminal, would cause one report for each.
const BATCH_TIME: Duration = Duration::from_millis(1);
/// Half of what one read of a terminal returns: after so much, more output follows soon.
const LARGE_READ: usize = 2048;
/// How long to spin for it before blocking.
const SPIN_TIME: Duration = Duration::from_micros(50);
/// How long a stream may stay open after the tree has exited.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);
/// The most that the tree can have left in the pipe. Further output comes from another process.
const LATE_BYTES: usize = 1024 * 1024;

/// Notifies the reader and writer threads that no process of the tree is left.
#[derive(Debug)]
pub(super) struct TreeExited {
    happened: AtomicBool,
    /// Readable as soon as the other end is closed.
    reader: PipeReader,
    writer: Mutex<Option<PipeWriter>>,
}

impl TreeExited {
    pub(super) fn not_yet() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        Ok(Self {
            happened: AtomicBool::new(false),
            reader,
            writer: Mutex::new(Some(writer)),
        })
    }

    pub(super) fn announce(&self) {
        self.happened.store(true, Ordering::Release);
        self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn has_happened(&self) -> bool {
        self.happened.load(Ordering::Acquire)
    }
}

impl AsFd for TreeExited {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }
}

/// How reading a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Drained {
    Complete,
    /// Another process held it open past the limit.
    TimedOut,
}

/// The result of reading what is available.
enum ReadResult {
    /// The chunk is full.
    More,
    Empty,
    End,
}

pub(super) struct Drain {
    pub(super) source: OwnedFd,
    pub(super) is_terminal: bool,
    pub(super) stream: StreamName,
    pub(super) chunks: usize,
    pub(super) exited: Arc<TreeExited>,
    pub(super) panics: PanicScope,
}

impl Drain {
    /// Reads until the end. Reports nothing afterwards.
    pub(super) fn run(self, report: &dyn Fn(ChildEvent)) -> Drained {
        let pool = Pool::of(self.chunks);
        let mut chunk = pool.take();
        let mut deadline = None;
        let mut late_bytes = 0;
        let mut reported: Option<Instant> = None;
        loop {
            let result = self.fill(&mut chunk);
            let count = chunk.len();
            let due = reported.map(|at| at + BATCH_TIME);
            if matches!(result, ReadResult::Empty)
                && count > 0
                && !self.exited.has_happened()
                && due > Some(Instant::now())
            {
                self.wait_for_more(due);
                continue;
            }
            if count > 0 {
                self.failpoint();
                report(ChildEvent::Output {
                    stream: self.stream,
                    chunk,
                });
                if matches!(result, ReadResult::End) {
                    return Drained::Complete;
                }
                reported = Some(Instant::now());
                chunk = pool.take();
            }
            if deadline.is_none() && self.exited.has_happened() {
                deadline = Some(Instant::now() + DRAIN_LIMIT);
            }
            let overdue = deadline.is_some_and(|deadline| deadline <= Instant::now());
            late_bytes += if overdue { count } else { 0 };
            match result {
                ReadResult::End => return Drained::Complete,
                ReadResult::Empty if overdue => return Drained::TimedOut,
                ReadResult::More if late_bytes > LATE_BYTES => return Drained::TimedOut,
                ReadResult::Empty => self.wait(deadline),
                ReadResult::More => {}
            }
        }
    }

    fn failpoint(&self) {
        match self.stream {
            StreamName::Stdout => failpoint!(self.panics, Stdout),
            StreamName::Stderr => failpoint!(self.panics, Stderr),
        }
    }

    fn wait(&self, deadline: Option<Instant>) {
        match deadline {
            Some(_) => {
                poll::wait([(self.source.as_fd(), PollFlags::IN)], deadline);
            }
            None => self.wait_for_more(None),
        }
    }

    fn wait_for_more(&self, until: Option<Instant>) {
        let source = (self.source.as_fd(), PollFlags::IN);
        poll::wait([source, (self.exited.as_fd(), PollFlags::IN)], until);
    }

    /// Reads what is available, up to a whole chunk.
    fn fill(&self, chunk: &mut Chunk) -> ReadResult {
        while chunk.len() < CHUNK_BYTES {
            match rustix::io::read(&self.source, chunk.room()) {
                Ok(0) => return ReadResult::End,
                Ok(count) => {
                    chunk.extend(count);
                    if self.is_terminal && count >= LARGE_READ {
                        self.spin_until_filled();
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return ReadResult::Empty,
                // A terminal whose other side is closed returns EIO. After any other error there is nothing to read either.
                Err(error) => {
                    tracing::debug!(%error, "the stream has ended");
                    return ReadResult::End;
                }
            }
        }
        ReadResult::More
    }

    /// Spins until the terminal has more output. It provides at most 4 KiB at a time, filled by a kernel thread: a read before
    /// that would sleep, in a flood of output once every 4 KiB.
    fn spin_until_filled(&self) {
        let due = Instant::now() + SPIN_TIME;
        while ioctl_fionread(&self.source).is_ok_and(|ready| ready < LARGE_READ as u64)
            && Instant::now() < due
        {
            std::hint::spin_loop();
        }
    }
}
