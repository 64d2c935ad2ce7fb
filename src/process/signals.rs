//! Signals that reach a keeper, as something that it can wait for.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

/// Signals as something to wait for: none of them ends the keeper.
pub(super) struct Signals {
    /// Readable after any signal that matters.
    wake: UnixStream,
    stop: Arc<AtomicBool>,
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

impl Signals {
    /// From now on; signals that mean nothing to a keeper, but would end it, are taken and forgotten.
    pub(super) fn listen() -> io::Result<Self> {
        let (wake, waker) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT, SIGHUP, SIGQUIT] {
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
            signal_hook::low_level::pipe::register(signal, waker.try_clone()?)?;
        }
        let unheeded = Arc::new(AtomicBool::new(false));
        for signal in [SIGUSR1, SIGUSR2, SIGALRM] {
            signal_hook::flag::register(signal, Arc::clone(&unheeded))?;
        }
        signal_hook::low_level::pipe::register(SIGCHLD, waker)?;
        Ok(Self { wake, stop })
    }

    /// Forgets the wake-ups that have been waited for.
    pub(super) fn clear(&self) {
        let mut sink = [0; 64];
        while rustix::io::read(&self.wake, &mut sink).is_ok_and(|count| count == sink.len()) {}
    }

    /// Whether somebody has asked the keeper itself to end.
    pub(super) fn take_stop(&self) -> bool {
        self.stop.swap(false, Ordering::Relaxed)
    }
}
