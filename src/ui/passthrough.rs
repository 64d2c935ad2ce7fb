//! A thread that copies an interactive agent's output to the user's terminal, unchanged. A slow terminal slows down only
//! the agent, because the loop's thread never writes to it.

use std::io;
use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;

use super::terminal_modes::TerminalModes;
use crate::failpoint;
use crate::panic_hook::PanicScope;

/// How long `finish` waits for the terminal.
const FINISH_TIMEOUT: Duration = Duration::from_secs(2);

/// Whether the terminal received all output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum PassthroughEnd {
    Complete,
    /// The terminal was too slow, or is gone.
    Truncated,
}

/// Handle of the thread that writes to the terminal.
#[derive(Debug)]
pub struct Passthrough<B> {
    chunks: Sender<B>,
    end: Receiver<PassthroughEnd>,
}

impl<B: Deref<Target = [u8]> + Send + 'static> Passthrough<B> {
    /// Starts the thread. It calls `on_error` once if a write to the terminal fails.
    pub fn spawn(
        terminal: OwnedFd,
        panics: &PanicScope,
        on_error: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let (chunks, received) = mpsc::channel::<B>();
        let (send_end, end) = mpsc::channel();
        let scope = panics.clone();
        let copy = move || {
            let mut modes = TerminalModes::default();
            let written = received.iter().try_for_each(|chunk| {
                failpoint!(scope, Passthrough);
                modes.observe(&chunk);
                write_all(&terminal, &chunk)
            });
            let result = match written.and_then(|()| write_all(&terminal, &modes.reset_sequence())) {
                Ok(()) => PassthroughEnd::Complete,
                Err(_) => {
                    on_error();
                    PassthroughEnd::Truncated
                }
            };
            // Fails if `finish` has timed out.
            let _ = send_end.send(result);
        };
        panics.spawn("passthrough", copy)?;
        Ok(Self { chunks, end })
    }

    pub fn write(&self, chunk: B) {
        // Fails only after `on_error` was called.
        let _ = self.chunks.send(chunk);
    }

    /// Writes the remaining output and resets the terminal modes that the agent left enabled.
    pub fn finish(self) -> PassthroughEnd {
        drop(self.chunks);
        match self.end.recv_timeout(FINISH_TIMEOUT) {
            Ok(result) => result,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => PassthroughEnd::Truncated,
        }
    }
}

fn write_all(terminal: &OwnedFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(terminal, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            // Another process may have made the terminal non-blocking.
            Err(Errno::AGAIN) => thread::sleep(Duration::from_millis(5)),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
