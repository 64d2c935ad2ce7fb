//! Signals of a supervisor, as a descriptor that it can wait for.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

/// Signals that the supervisor waits for. None of them ends it.
pub(super) struct Signals {
    /// Readable after a signal.
    wake: UnixStream,
    stop: Arc<AtomicBool>,
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

impl Signals {
    /// Installs the handlers. Signals without a meaning for a supervisor, which would end it, are discarded.
    pub(super) fn listen() -> io::Result<Self> {
        let (wake, waker) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT, SIGHUP, SIGQUIT] {
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
            signal_hook::low_level::pipe::register(signal, waker.try_clone()?)?;
        }
        let discarded = Arc::new(AtomicBool::new(false));
        for signal in [SIGUSR1, SIGUSR2, SIGALRM] {
            signal_hook::flag::register(signal, Arc::clone(&discarded))?;
        }
        signal_hook::low_level::pipe::register(SIGCHLD, waker)?;
        Ok(Self { wake, stop })
    }

    /// Empties the descriptor after a wait.
    pub(super) fn clear(&self) {
        let mut sink = [0; 64];
        while rustix::io::read(&self.wake, &mut sink).is_ok_and(|count| count == sink.len()) {}
    }

    /// Whether a signal has asked the supervisor to exit; resets the flag.
    pub(super) fn take_stop(&self) -> bool {
        self.stop.swap(false, Ordering::Relaxed)
    }
}
