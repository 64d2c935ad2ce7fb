//! Writes the child's stdin while its output is read, and closes it; or lets the caller write it.

use std::io::{self, PipeWriter};
use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::event::PollFlags;
use rustix::io::Errno;

use super::poll;
use super::read::TreeExited;
use crate::failpoint;
use crate::panic_hook::PanicScope;

/// Bytes that are written to a pipe. The pipe is closed when this value is dropped.
pub(super) struct StdinWriter {
    pipe: PipeWriter,
    bytes: Vec<u8>,
    written: usize,
}

/// The result of writing without blocking.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum WriteProgress {
    /// Everything is written, or the child does not read it.
    Done,
    Blocked,
}

impl StdinWriter {
    pub(super) fn new(pipe: PipeWriter, bytes: Vec<u8>) -> Self {
        Self {
            pipe,
            bytes,
            written: 0,
        }
    }

    /// Writes until the pipe is full. A short prompt fits.
    pub(super) fn write(&mut self) -> WriteProgress {
        while self.written < self.bytes.len() {
            match rustix::io::write(&self.pipe, &self.bytes[self.written..]) {
                Ok(count) => self.written += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return WriteProgress::Blocked,
                // A child need not read its stdin.
                Err(error) => {
                    tracing::debug!(%error, written = self.written, "the child has not read all of its stdin");
                    return WriteProgress::Done;
                }
            }
        }
        WriteProgress::Done
    }

    /// Writes the rest as the child reads it. Ends with the tree, even if another process holds the pipe open.
    fn write_all(mut self, exited: &TreeExited) {
        while self.write() == WriteProgress::Blocked {
            let wanted = [
                (self.pipe.as_fd(), PollFlags::OUT),
                (exited.as_fd(), PollFlags::IN),
            ];
            if let [_, true] = poll::wait(wanted, None) {
                return;
            }
        }
    }

    pub(super) fn write_in_thread(self, exited: Arc<TreeExited>, panics: &PanicScope) -> io::Result<()> {
        let scope = panics.clone();
        panics.spawn("stdin", move || {
            failpoint!(scope, Stdin);
            self.write_all(&exited);
        })?;
        Ok(())
    }
}

/// The stdin of a child to which the caller sends messages while it runs. Dropping it closes the child's stdin.
#[derive(Debug)]
pub struct StdinPipe {
    pipe: PipeWriter,
    exited: Arc<TreeExited>,
}

impl StdinPipe {
    pub(super) fn new(pipe: PipeWriter, exited: Arc<TreeExited>) -> Self {
        Self { pipe, exited }
    }

    /// Writes all bytes; waits while the child does not read them. Returns early if the child has exited or closed its stdin.
    pub fn write(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match rustix::io::write(&self.pipe, bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let wanted = [
                        (self.pipe.as_fd(), PollFlags::OUT),
                        (self.exited.as_fd(), PollFlags::IN),
                    ];
                    if let [_, true] = poll::wait(wanted, None) {
                        return;
                    }
                }
                Err(_) => return,
            }
        }
    }
}
