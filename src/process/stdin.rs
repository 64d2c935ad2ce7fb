//! Writing the child's stdin while its output is read, and closing it.

use std::io::{self, PipeWriter};
use std::os::fd::AsFd;

use rustix::event::PollFlags;
use rustix::io::Errno;

use super::poll;
use super::read::TreeExited;
use crate::panic_hook;

/// What is still to be written to a pipe; the pipe closes when this is dropped.
pub(super) struct StdinWriter {
    pipe: PipeWriter,
    bytes: Vec<u8>,
    written: usize,
}

/// How it went so far.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Fed {
    /// All is written, or nobody will read it.
    Done,
    Waiting,
}

impl StdinWriter {
    pub(super) fn new(pipe: PipeWriter, bytes: Vec<u8>) -> Self {
        Self {
            pipe,
            bytes,
            written: 0,
        }
    }

    /// Writes what the pipe takes at once. A short prompt needs no more than this.
    pub(super) fn write(&mut self) -> Fed {
        while self.written < self.bytes.len() {
            match rustix::io::write(&self.pipe, &self.bytes[self.written..]) {
                Ok(count) => self.written += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Fed::Waiting,
                // A child that does not read its stdin is a healthy child.
                Err(_) => return Fed::Done,
            }
        }
        Fed::Done
    }

    /// Writes the rest as the child reads it. Ends with the tree, even if a stranger holds the other end.
    pub(super) fn write_all(mut self, gone: &TreeExited) {
        panic_hook::failpoint_in_run("stdin");
        while self.write() == Fed::Waiting {
            let wanted = [(self.pipe.as_fd(), PollFlags::OUT), (gone.as_fd(), PollFlags::IN)];
            if let [_, true] = poll::wait(wanted, None) {
                return;
            }
        }
    }

    pub(super) fn write_all_in_a_thread(self, gone: std::sync::Arc<TreeExited>) -> io::Result<()> {
        std::thread::Builder::new()
            .name("stdin".into())
            .spawn(move || self.write_all(&gone))?;
        Ok(())
    }
}
