//! Stdout, for whoever must not hang on it: who reads it may stop reading (a pager, a stopped program, a frozen terminal)
//! and is waited for, but not when ralph is told to end.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::SendFlags;
use rustix::stdio::stdout;

/// Ralph is told to end. It has one stdout, so there is one such word.
static SHUTTING_DOWN: AtomicBool = AtomicBool::new(false);
/// How often somebody who waits for a reader looks for that word.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 250_000_000,
};
/// What a reader who may have been busy gets then.
const PATIENCE: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// From now on a reader who does not read is waited for no longer: writing fails with `TimedOut`.
pub fn begin_shutdown() {
    SHUTTING_DOWN.store(true, Ordering::Release);
}

pub(super) struct StdoutWriter {
    way: Way,
    given_up: bool,
}

enum Way {
    /// The same pipe or terminal, opened anew: those who share ours are not to find that it does not wait.
    Opened(File),
    Socket,
    /// A file takes everything at once; what cannot be opened anew is waited for as long as it takes.
    Blocking,
}

impl StdoutWriter {
    pub(super) fn stdout() -> Self {
        Self {
            way: Way::to(stdout()),
            given_up: false,
        }
    }

    fn wait_for_room(&mut self) -> io::Result<()> {
        let fd = match &self.way {
            Way::Opened(file) => file.as_fd(),
            Way::Socket | Way::Blocking => stdout(),
        };
        loop {
            let hurried = SHUTTING_DOWN.load(Ordering::Acquire);
            let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::OUT)];
            match poll(&mut fds, Some(if hurried { &PATIENCE } else { &LOOK })) {
                Ok(0) if hurried => {
                    self.given_up = true;
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Way {
    fn to(fd: BorrowedFd<'_>) -> Self {
        let kind = rustix::fs::fstat(fd).map(|stat| FileType::from_raw_mode(stat.st_mode));
        match kind {
            Ok(FileType::Fifo | FileType::CharacterDevice) => {
                let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
                let opened = rustix::fs::open("/proc/self/fd/1", flags, Mode::empty());
                opened.map_or(Self::Blocking, |fd| Self::Opened(fd.into()))
            }
            Ok(FileType::Socket) => Self::Socket,
            _ => Self::Blocking,
        }
    }

    fn write(&self, bytes: &[u8]) -> Result<usize, Errno> {
        match self {
            Self::Opened(file) => rustix::io::write(file, bytes),
            Self::Socket => rustix::net::send(stdout(), bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL),
            Self::Blocking => rustix::io::write(stdout(), bytes),
        }
    }
}

impl Write for StdoutWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.given_up {
            return Err(io::ErrorKind::TimedOut.into());
        }
        loop {
            match self.way.write(bytes) {
                Err(Errno::AGAIN) => self.wait_for_room()?,
                Err(Errno::INTR) => {}
                written => return Ok(written?),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
