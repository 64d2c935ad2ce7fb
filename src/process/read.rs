//! Draining the child's output: a thread per stream that reads and hands on, and does nothing else.

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
use crate::panic_hook;

/// The most chunks of stdout that exist at a time.
pub const STDOUT_CHUNKS: usize = 3;
/// The most chunks of stderr that exist at a time.
pub const STDERR_CHUNKS: usize = 2;

/// What comes so soon after the last report is reported together: somebody who prints much in small pieces, as
/// everybody does on a terminal, would keep us busier with reports than with what they say.
const TOGETHER: Duration = Duration::from_millis(1);
/// Half of what a terminal gives at a time: where somebody says so much, more is on its way.
const MUCH: usize = 2048;
/// How long that may take before it is waited for as for anything else.
const SOON: Duration = Duration::from_micros(50);
/// How long a stream may stay open when all that could rightly write to it is gone.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);
/// What the tree can have left in the pipe; beyond it, a stranger is talking.
const LATE_BYTES: usize = 1024 * 1024;

/// Tells readers and feeder that no process of the tree is left.
#[derive(Debug)]
pub(super) struct TreeExited {
    happened: AtomicBool,
    /// Ready as soon as the other end is closed.
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

/// How a stream came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Drained {
    ToTheEnd,
    /// Somebody held it open past the limit.
    GivenUp,
}

/// What one look at the stream gave.
enum Look {
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
    pub(super) gone: Arc<TreeExited>,
}

impl Drain {
    /// Reads until the end. Afterwards nothing of this stream is reported any more.
    pub(super) fn run(self, report: &dyn Fn(ChildEvent)) -> Drained {
        let pool = Pool::of(self.chunks);
        let mut chunk = pool.take();
        let mut deadline = None;
        let mut late_bytes = 0;
        let mut reported: Option<Instant> = None;
        loop {
            let look = self.fill(&mut chunk);
            let count = chunk.len();
            let due = reported.map(|at| at + TOGETHER);
            if matches!(look, Look::Empty)
                && count > 0
                && !self.gone.has_happened()
                && due > Some(Instant::now())
            {
                self.wait_for_more(due);
                continue;
            }
            if count > 0 {
                panic_hook::failpoint_in_run(match self.stream {
                    StreamName::Stdout => "stdout",
                    StreamName::Stderr => "stderr",
                });
                report(ChildEvent::Output {
                    stream: self.stream,
                    chunk,
                });
                if matches!(look, Look::End) {
                    return Drained::ToTheEnd;
                }
                reported = Some(Instant::now());
                chunk = pool.take();
            }
            if deadline.is_none() && self.gone.has_happened() {
                deadline = Some(Instant::now() + DRAIN_LIMIT);
            }
            let overdue = deadline.is_some_and(|deadline| deadline <= Instant::now());
            late_bytes += if overdue { count } else { 0 };
            match look {
                Look::End => return Drained::ToTheEnd,
                Look::Empty if overdue => return Drained::GivenUp,
                Look::More if late_bytes > LATE_BYTES => return Drained::GivenUp,
                Look::Empty => self.wait(deadline),
                Look::More => {}
            }
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
        poll::wait([source, (self.gone.as_fd(), PollFlags::IN)], until);
    }

    /// Takes what is there, up to a whole chunk.
    fn fill(&self, chunk: &mut Chunk) -> Look {
        while chunk.len() < CHUNK_BYTES {
            match rustix::io::read(&self.source, chunk.room()) {
                Ok(0) => return Look::End,
                Ok(count) => {
                    chunk.extend(count);
                    if self.is_terminal && count >= MUCH {
                        self.let_it_fill();
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Look::Empty,
                // A terminal whose other side is closed says EIO; any other error leaves nothing to read either.
                Err(_) => return Look::End,
            }
        }
        Look::More
    }

    /// A terminal gives at most 4 KiB a time, laid ready by a thread of the kernel's. Whoever reads before it has done so is put
    /// to sleep until it has, in a flood every 4 KiB; whoever looks first is not.
    fn let_it_fill(&self) {
        let due = Instant::now() + SOON;
        while ioctl_fionread(&self.source).is_ok_and(|ready| ready < MUCH as u64) && Instant::now() < due {
            std::hint::spin_loop();
        }
    }
}
