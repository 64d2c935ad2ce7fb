//! The three streams of a child: the ends that it receives, and the ends that ralph keeps.

use std::fs::File;
use std::io::{self, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::ioctl_fionbio;
use rustix::pty::{OpenptFlags, grantpt, openpt, unlockpt};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr, tcsetwinsize};

use super::wire::ControllingTerminal;
use super::{ProcessError, ProcessSpec, Screen, Size, Stdin, Transport};

/// Several agents lose output when the pipe is full. This is the largest size that an unprivileged process may set.
#[cfg(target_os = "linux")]
const PIPE_BYTES: usize = 1024 * 1024;

/// The ends that the child receives.
pub(super) struct ChildEnds {
    stdin: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
    pub(super) terminal: ControllingTerminal,
}

impl ChildEnds {
    pub(super) fn as_fds(&self) -> [BorrowedFd<'_>; 3] {
        [self.stdin.as_fd(), self.stdout.as_fd(), self.stderr.as_fd()]
    }
}

/// The ends that ralph keeps. None of them blocks.
pub(super) struct ParentEnds {
    /// Only if there is something to write.
    pub(super) stdin: Option<PipeWriter>,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
    /// Only with `Transport::Screen`.
    pub(super) screen: Option<Screen>,
}

pub(super) fn open(spec: &ProcessSpec) -> Result<(ChildEnds, ParentEnds), ProcessError> {
    let failed = |error: io::Error| ProcessError::spawn(spec, error);
    let (stdout, terminal) = match spec.stdout {
        Transport::Pipe => (output_pipe().map_err(failed)?, ControllingTerminal::None),
        Transport::Pty { rows, columns } => (
            pty(Size { rows, columns }, Termios::make_raw).map_err(failed)?,
            ControllingTerminal::Stdout,
        ),
        Transport::Screen(size) => (
            pty(size, default_modes).map_err(failed)?,
            ControllingTerminal::Stdout,
        ),
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
        Stdin::Bytes(_) | Stdin::Pipe => {
            let (reader, writer) = io::pipe().map_err(failed)?;
            ioctl_fionbio(&writer, true).map_err(|error| failed(error.into()))?;
            (reader.into(), Some(writer))
        }
        Stdin::Screen => (stdout.child.try_clone().map_err(failed)?, None),
    };
    let mut stderr = output_pipe().map_err(failed)?;
    let screen = match spec.stdout {
        Transport::Pipe | Transport::Pty { .. } => None,
        Transport::Screen(_) => {
            // The pipe ends immediately: all output arrives on the screen.
            stderr.child = stdout.child.try_clone().map_err(failed)?;
            Some(Screen::new(stdout.parent.try_clone().map_err(failed)?))
        }
    };
    Ok((
        ChildEnds {
            stdin,
            stdout: stdout.child,
            stderr: stderr.child,
            terminal,
        },
        ParentEnds {
            stdin: feed,
            stdout: stdout.parent,
            stderr: stderr.parent,
            screen,
        },
    ))
}

struct StreamEnds {
    parent: OwnedFd,
    child: OwnedFd,
}

fn output_pipe() -> io::Result<StreamEnds> {
    let (reader, writer) = io::pipe()?;
    ioctl_fionbio(&reader, true)?;
    // If the system refuses the size, the pipe is smaller but works.
    #[cfg(target_os = "linux")]
    crate::ok_or_log!(
        rustix::pipe::fcntl_setpipe_size(&reader, PIPE_BYTES),
        "cannot enlarge a pipe"
    );
    Ok(StreamEnds {
        parent: reader.into(),
        child: writer.into(),
    })
}

/// Opens a terminal and sets its size, because an agent may query it. In raw mode it changes no byte.
fn pty(size: Size, set_up: impl FnOnce(&mut Termios)) -> io::Result<StreamEnds> {
    let parent = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | CLOSE_ON_EXEC)?;
    grantpt(&parent)?;
    unlockpt(&parent)?;
    let child = other_side(&parent)?;
    let mut attributes = tcgetattr(&child)?;
    set_up(&mut attributes);
    tcsetattr(&child, OptionalActions::Now, &attributes)?;
    tcsetwinsize(&child, size.into())?;
    ioctl_fionbio(&parent, true)?;
    Ok(StreamEnds { parent, child })
}

/// Ordinary modes, with UTF-8 aware erasing.
fn default_modes(attributes: &mut Termios) {
    attributes.input_modes |= rustix::termios::InputModes::IUTF8;
}

#[cfg(target_os = "linux")]
const CLOSE_ON_EXEC: OpenptFlags = OpenptFlags::CLOEXEC;
#[cfg(not(target_os = "linux"))]
const CLOSE_ON_EXEC: OpenptFlags = OpenptFlags::empty();

/// Opens the other side by descriptor, which works even if `/dev/pts` belongs to another mount namespace.
#[cfg(target_os = "linux")]
fn other_side(parent: &OwnedFd) -> io::Result<OwnedFd> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | CLOSE_ON_EXEC;
    Ok(rustix::pty::ioctl_tiocgptpeer(parent, flags)?)
}

#[cfg(not(target_os = "linux"))]
fn other_side(parent: &OwnedFd) -> io::Result<OwnedFd> {
    use rustix::fs::{Mode, OFlags};

    rustix::io::fcntl_setfd(parent, rustix::io::FdFlags::CLOEXEC)?;
    let name = rustix::pty::ptsname(parent, Vec::new())?;
    Ok(rustix::fs::open(
        name,
        OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}
