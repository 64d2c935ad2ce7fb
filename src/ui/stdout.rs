//! A writer for stdout that stops blocking at shutdown, even if the reader (a pager, a stopped program, a frozen
//! terminal) no longer reads.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::SendFlags;
use rustix::stdio::stdout;

/// How often a blocked write checks for shutdown.
const SHUTDOWN_POLL: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 250_000_000,
};
/// How long a blocked write waits for the reader during shutdown.
const SHUTDOWN_GRACE: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// Whether the process shuts down, as its writers to stdout see it. Clones share the state.
#[derive(Debug, Clone, Default)]
pub struct StdoutShutdown(Arc<AtomicBool>);

impl StdoutShutdown {
    /// From now on, a write that stays blocked for `SHUTDOWN_GRACE` fails with `TimedOut`.
    pub fn begin(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn has_begun(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

pub(super) struct StdoutWriter {
    target: StdoutTarget,
    shutdown: StdoutShutdown,
    timed_out: bool,
}

enum StdoutTarget {
    /// A second open of the same pipe or terminal. `O_NONBLOCK` on the shared descriptor would affect other processes.
    Reopened(File),
    Socket,
    /// Regular files never block. A pipe or terminal that cannot be reopened blocks as usual.
    Blocking,
}

impl StdoutWriter {
    pub(super) fn new(shutdown: StdoutShutdown) -> Self {
        Self {
            target: StdoutTarget::of(stdout()),
            shutdown,
            timed_out: false,
        }
    }

    fn wait_until_writable(&mut self) -> io::Result<()> {
        let fd = match &self.target {
            StdoutTarget::Reopened(file) => file.as_fd(),
            StdoutTarget::Socket | StdoutTarget::Blocking => stdout(),
        };
        loop {
            let shutting_down = self.shutdown.has_begun();
            let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::OUT)];
            match poll(
                &mut fds,
                Some(if shutting_down {
                    &SHUTDOWN_GRACE
                } else {
                    &SHUTDOWN_POLL
                }),
            ) {
                Ok(0) if shutting_down => {
                    self.timed_out = true;
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl StdoutTarget {
    fn of(fd: BorrowedFd<'_>) -> Self {
        let kind = rustix::fs::fstat(fd).map(|stat| FileType::from_raw_mode(stat.st_mode));
        match kind {
            Ok(FileType::Fifo | FileType::CharacterDevice) => {
                let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
                let reopened = rustix::fs::open("/proc/self/fd/1", flags, Mode::empty());
                reopened.map_or(Self::Blocking, |fd| Self::Reopened(fd.into()))
            }
            Ok(FileType::Socket) => Self::Socket,
            _ => Self::Blocking,
        }
    }

    fn write(&self, bytes: &[u8]) -> Result<usize, Errno> {
        match self {
            Self::Reopened(file) => rustix::io::write(file, bytes),
            Self::Socket => rustix::net::send(stdout(), bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL),
            Self::Blocking => rustix::io::write(stdout(), bytes),
        }
    }
}

impl Write for StdoutWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.timed_out {
            return Err(io::ErrorKind::TimedOut.into());
        }
        loop {
            match self.target.write(bytes) {
                Err(Errno::AGAIN) => self.wait_until_writable()?,
                Err(Errno::INTR) => {}
                written => return Ok(written?),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
