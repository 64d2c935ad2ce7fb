//! The three streams of a child: the ends that it receives, and the ends that ralph keeps.

use std::fs::File;
use std::io::{self, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::ioctl_fionbio;
use rustix::pty::{OpenptFlags, grantpt, openpt, unlockpt};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr, tcsetwinsize};

use super::wire::Terminal;
use super::{ProcessError, ProcessSpec, Screen, Size, Stdin, Transport};

/// Several agents lose output when the pipe is full. This is the largest size that an unprivileged process may set.
#[cfg(target_os = "linux")]
const PIPE_BYTES: usize = 1024 * 1024;

/// The ends that the child receives.
pub(super) struct TheirEnds {
    stdin: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
    pub(super) terminal: Terminal,
}

impl TheirEnds {
    pub(super) fn as_fds(&self) -> [BorrowedFd<'_>; 3] {
        [self.stdin.as_fd(), self.stdout.as_fd(), self.stderr.as_fd()]
    }
}

/// The ends that ralph keeps. None of them blocks.
pub(super) struct OurEnds {
    /// Only if there is something to write.
    pub(super) stdin: Option<PipeWriter>,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
    /// Only with `Transport::Screen`.
    pub(super) screen: Option<Screen>,
}

pub(super) fn open(spec: &ProcessSpec) -> Result<(TheirEnds, OurEnds), ProcessError> {
    let failed = |error: io::Error| ProcessError::spawn(spec, error);
    let (stdout, terminal) = match spec.stdout {
        Transport::Pipe => (output_pipe().map_err(failed)?, Terminal::None),
        Transport::Pty { rows, columns } => (
            pty(Size { rows, columns }, Termios::make_raw).map_err(failed)?,
            Terminal::Stdout,
        ),
        Transport::Screen(size) => (pty(size, as_people_have_it).map_err(failed)?, Terminal::Stdout),
    };
    let (stdin, feed) = match &spec.stdin {
        Stdin::Null => (File::open("/dev/null").map_err(failed)?.into(), None),
        Stdin::File(path) => {
            let file = File::open(path).map_err(|source| ProcessError::StdinFile {
                path: path.clone(),
                source,
            })?;
            (file.into(), None)
        }
        Stdin::Bytes(_) => {
            let (reader, writer) = io::pipe().map_err(failed)?;
            ioctl_fionbio(&writer, true).map_err(|error| failed(error.into()))?;
            (reader.into(), Some(writer))
        }
        Stdin::Screen => (stdout.theirs.try_clone().map_err(failed)?, None),
    };
    let mut stderr = output_pipe().map_err(failed)?;
    let screen = match spec.stdout {
        Transport::Pipe | Transport::Pty { .. } => None,
        Transport::Screen(_) => {
            // The pipe ends immediately: all output arrives on the screen.
            stderr.theirs = stdout.theirs.try_clone().map_err(failed)?;
            Some(Screen::new(stdout.ours.try_clone().map_err(failed)?))
        }
    };
    Ok((
        TheirEnds {
            stdin,
            stdout: stdout.theirs,
            stderr: stderr.theirs,
            terminal,
        },
        OurEnds {
            stdin: feed,
            stdout: stdout.ours,
            stderr: stderr.ours,
            screen,
        },
    ))
}

struct Output {
    ours: OwnedFd,
    theirs: OwnedFd,
}

fn output_pipe() -> io::Result<Output> {
    let (reader, writer) = io::pipe()?;
    ioctl_fionbio(&reader, true)?;
    // If the system refuses the size, the pipe is smaller but works.
    #[cfg(target_os = "linux")]
    let _ = rustix::pipe::fcntl_setpipe_size(&reader, PIPE_BYTES);
    Ok(Output {
        ours: reader.into(),
        theirs: writer.into(),
    })
}

/// Opens a terminal and sets its size, because an agent may query it. In raw mode it changes no byte.
fn pty(size: Size, set_up: impl FnOnce(&mut Termios)) -> io::Result<Output> {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | CLOSE_ON_EXEC)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let theirs = other_side(&ours)?;
    let mut attributes = tcgetattr(&theirs)?;
    set_up(&mut attributes);
    tcsetattr(&theirs, OptionalActions::Now, &attributes)?;
    tcsetwinsize(&theirs, size.into())?;
    ioctl_fionbio(&ours, true)?;
    Ok(Output { ours, theirs })
}

/// Ordinary modes, with UTF-8 aware erasing.
fn as_people_have_it(attributes: &mut Termios) {
    attributes.input_modes |= rustix::termios::InputModes::IUTF8;
}

#[cfg(target_os = "linux")]
const CLOSE_ON_EXEC: OpenptFlags = OpenptFlags::CLOEXEC;
#[cfg(not(target_os = "linux"))]
const CLOSE_ON_EXEC: OpenptFlags = OpenptFlags::empty();

/// Opens the other side by descriptor, which works even if `/dev/pts` belongs to another mount namespace.
#[cfg(target_os = "linux")]
fn other_side(ours: &OwnedFd) -> io::Result<OwnedFd> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | CLOSE_ON_EXEC;
    Ok(rustix::pty::ioctl_tiocgptpeer(ours, flags)?)
}

#[cfg(not(target_os = "linux"))]
fn other_side(ours: &OwnedFd) -> io::Result<OwnedFd> {
    use rustix::fs::{Mode, OFlags};

    rustix::io::fcntl_setfd(ours, rustix::io::FdFlags::CLOEXEC)?;
    let name = rustix::pty::ptsname(ours, Vec::new())?;
    Ok(rustix::fs::open(
        name,
        OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}
