//! The control line between ralph and a supervisor: messages of fixed size on a socket pair. A spawn request carries the
//! child's three streams. End of file means that the other side has exited.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

use super::sandbox::ConfinementStep;
use crate::event::ProcessEnd;

/// A message is one byte for its kind and eight for its value.
pub(super) const MESSAGE_BYTES: usize = 9;
pub(super) type Message = [u8; MESSAGE_BYTES];

/// The kind of the message before a spawn request; its value is the length of the request.
const SPAWN: u8 = b'C';
/// The child's three streams, and the line for its listening sockets if it has a network of its own.
const MAX_DESCRIPTORS: usize = 4;
const STREAMS: usize = 3;
const MAX_PANIC_BYTES: u64 = 4096;

/// Whether the child's stdout becomes its controlling terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ControllingTerminal {
    None,
    Stdout,
}

/// A command for the supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SupervisorCommand {
    Stop {
        grace: Duration,
    },
    Kill,
    /// The supervisor answers it. Its absence shows that ralph has been stopped.
    Heartbeat {
        ralph: Suspension,
    },
}

/// Whether a user can suspend ralph: it has a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Suspension {
    ByUser,
    Unexpected,
}

/// A message of the supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notice {
    Started {
        pid: u32,
    },
    /// The child could not be started. The supervisor waits for the next request.
    Failed {
        stage: SpawnStage,
        errno: i32,
    },
    LeaderEnded(ProcessEnd),
    /// The answer to a heartbeat.
    Alive,
    /// No process of the tree is left, or none that can be killed.
    TreeExited {
        swept: u64,
        supervisor: SupervisorFate,
    },
    /// The supervisor has panicked. A message of this many bytes follows.
    Panicked {
        bytes: u64,
    },
}

/// The behavior of a supervisor after the exit of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SupervisorFate {
    /// It waits for the next request.
    Waits,
    /// It exits, because of a signal or because a process is left that it could not kill.
    Exits,
}

/// A message to a supervisor without a child.
#[derive(Debug)]
pub(super) enum Request {
    Spawn {
        request: Vec<u8>,
        streams: [OwnedFd; STREAMS],
        line: Option<OwnedFd>,
    },
    /// A command for the previous child, which had exited when it was sent.
    LateCommand,
    EndOfLine,
}

/// The step at which starting the child failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpawnStage {
    WorkingDirectory,
    Confinement(ConfinementStep),
    Exec,
}

impl SupervisorCommand {
    pub(super) fn encode(self) -> Message {
        match self {
            Self::Stop { grace } => message(b'S', u64::try_from(grace.as_millis()).unwrap_or(u64::MAX)),
            Self::Kill => message(b'K', 0),
            Self::Heartbeat {
                ralph: Suspension::ByUser,
            } => message(b'H', 0),
            Self::Heartbeat {
                ralph: Suspension::Unexpected,
            } => message(b'H', 1),
        }
    }

    pub(super) fn decode(bytes: &Message) -> Option<Self> {
        let (kind, value) = parts(bytes);
        match kind {
            b'S' => Some(Self::Stop {
                grace: Duration::from_millis(value),
            }),
            b'K' => Some(Self::Kill),
            b'H' => Some(Self::Heartbeat {
                ralph: match value {
                    0 => Suspension::ByUser,
                    _ => Suspension::Unexpected,
                },
            }),
            _ => None,
        }
    }
}

impl Notice {
    pub(super) fn encode(self) -> Message {
        match self {
            Self::Started { pid } => message(b'P', pid.into()),
            Self::Failed {
                stage: SpawnStage::WorkingDirectory,
                errno,
            } => message(b'D', number(errno)),
            Self::Failed {
                stage: SpawnStage::Exec,
                errno,
            } => message(b'X', number(errno)),
            Self::Failed {
                stage: SpawnStage::Confinement(step),
                errno,
            } => message(
                b'N',
                u64::from(step.number()) << 32 | u64::from(errno.cast_unsigned()),
            ),
            Self::LeaderEnded(ProcessEnd::Exited { code }) => message(b'E', number(code)),
            Self::LeaderEnded(ProcessEnd::Signaled { signal }) => message(b'S', number(signal)),
            Self::TreeExited {
                swept,
                supervisor: SupervisorFate::Waits,
            } => message(b'G', swept),
            Self::TreeExited {
                swept,
                supervisor: SupervisorFate::Exits,
            } => message(b'L', swept),
            Self::Panicked { bytes } => message(b'M', bytes),
            Self::Alive => message(b'A', 0),
        }
    }

    fn decode(bytes: &Message) -> Option<Self> {
        let (kind, value) = parts(bytes);
        let signed = i32::try_from(value.cast_signed()).ok();
        Some(match kind {
            b'P' => Self::Started {
                pid: u32::try_from(value).ok()?,
            },
            b'D' => Self::Failed {
                stage: SpawnStage::WorkingDirectory,
                errno: signed?,
            },
            b'X' => Self::Failed {
                stage: SpawnStage::Exec,
                errno: signed?,
            },
            b'N' => Self::Failed {
                stage: SpawnStage::Confinement(ConfinementStep::from_number(
                    u32::try_from(value >> 32).ok()?,
                )),
                errno: (value as u32).cast_signed(),
            },
            b'E' => Self::LeaderEnded(ProcessEnd::Exited { code: signed? }),
            b'S' => Self::LeaderEnded(ProcessEnd::Signaled { signal: signed? }),
            b'G' => Self::TreeExited {
                swept: value,
                supervisor: SupervisorFate::Waits,
            },
            b'L' => Self::TreeExited {
                swept: value,
                supervisor: SupervisorFate::Exits,
            },
            b'M' => Self::Panicked { bytes: value },
            b'A' => Self::Alive,
            _ => return None,
        })
    }

    /// Reads the next notice; an error of kind `UnexpectedEof` if the supervisor has exited.
    pub(super) fn read(mut control: impl Read) -> io::Result<Self> {
        let mut bytes = [0; MESSAGE_BYTES];
        control.read_exact(&mut bytes)?;
        Self::decode(&bytes).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

/// Reads the message of a panic in the supervisor.
pub(super) fn read_panic(control: impl Read, bytes: u64) -> String {
    let mut message = Vec::new();
    // A truncated message is still useful.
    let _ = control.take(bytes.min(MAX_PANIC_BYTES)).read_to_end(&mut message);
    format!("{}, in the supervisor", String::from_utf8_lossy(&message))
}

fn message(kind: u8, value: u64) -> Message {
    let mut bytes = [kind; MESSAGE_BYTES];
    bytes[1..].copy_from_slice(&value.to_le_bytes());
    bytes
}

fn parts(bytes: &Message) -> (u8, u64) {
    let [kind, value @ ..] = *bytes;
    (kind, u64::from_le_bytes(value))
}

fn number(signed: i32) -> u64 {
    i64::from(signed).cast_unsigned()
}

/// Sends a spawn request with the child's stdin, stdout and stderr.
pub(super) fn send_request(
    mut control: impl AsFd + Write,
    request: &[u8],
    streams: [BorrowedFd<'_>; STREAMS],
    line: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let header = message(SPAWN, request.len() as u64);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    let descriptors: Vec<BorrowedFd<'_>> = streams.into_iter().chain(line).collect();
    rights.push(SendAncillaryMessage::ScmRights(&descriptors));
    let sent = sendmsg(
        control.as_fd(),
        &[IoSlice::new(&header), IoSlice::new(request)],
        &mut rights,
        SendFlags::NOSIGNAL,
    )?;
    control.write_all(&header[sent.min(header.len())..])?;
    control.write_all(&request[sent.saturating_sub(header.len())..])
}

/// Receives a spawn request. Commands before it on the line are for the previous child, commands after it for the new one.
pub(super) fn receive_request(control: impl AsFd) -> io::Result<Request> {
    let mut bytes = [0; MESSAGE_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(
        control.as_fd(),
        &mut [IoSliceMut::new(&mut bytes)],
        &mut rights,
        RecvFlags::empty(),
    )?;
    if received.bytes == 0 {
        return Ok(Request::EndOfLine);
    }
    let mut streams: Vec<OwnedFd> = rights
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        })
        .flatten()
        .collect();
    for stream in &streams {
        // The child receives only the three copies that exec puts in place.
        fcntl_setfd(stream, FdFlags::CLOEXEC)?;
    }
    read_exact(control.as_fd(), &mut bytes[received.bytes..])?;
    if SupervisorCommand::decode(&bytes).is_some() {
        return Ok(Request::LateCommand);
    }
    let line = match streams.len() {
        MAX_DESCRIPTORS => streams.pop(),
        _ => None,
    };
    let streams = streams.try_into();
    let ((SPAWN, length), Ok(streams)) = (parts(&bytes), streams) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let mut request = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    read_exact(control.as_fd(), &mut request)?;
    Ok(Request::Spawn {
        request,
        streams,
        line,
    })
}

/// Fills the buffer from a borrowed descriptor.
pub(super) fn read_exact(control: BorrowedFd<'_>, mut bytes: &mut [u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::read(control, &mut *bytes) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => bytes = &mut bytes[count..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Writes all bytes to a borrowed descriptor.
pub(super) fn write_all(control: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(control, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn every_notice_can_be_decoded() {
        for notice in [
            Notice::Started { pid: u32::MAX },
            Notice::Failed {
                stage: SpawnStage::WorkingDirectory,
                errno: 2,
            },
            Notice::Failed {
                stage: SpawnStage::Exec,
                errno: 13,
            },
            Notice::Failed {
                stage: SpawnStage::Confinement(ConfinementStep::Rule(7)),
                errno: 1,
            },
            Notice::LeaderEnded(ProcessEnd::Exited { code: -1 }),
            Notice::LeaderEnded(ProcessEnd::Signaled { signal: 9 }),
            Notice::TreeExited {
                swept: u64::MAX,
                supervisor: SupervisorFate::Waits,
            },
            Notice::TreeExited {
                swept: 0,
                supervisor: SupervisorFate::Exits,
            },
            Notice::Panicked { bytes: 7 },
            Notice::Alive,
        ] {
            assert_eq!(Notice::read(&notice.encode()[..]).unwrap(), notice);
        }
    }

    #[test]
    fn every_command_can_be_decoded() {
        for command in [
            SupervisorCommand::Kill,
            SupervisorCommand::Heartbeat {
                ralph: Suspension::ByUser,
            },
            SupervisorCommand::Heartbeat {
                ralph: Suspension::Unexpected,
            },
            SupervisorCommand::Stop {
                grace: Duration::from_millis(1500),
            },
        ] {
            assert_eq!(SupervisorCommand::decode(&command.encode()), Some(command));
        }
    }

    #[test]
    fn the_exit_of_the_supervisor_is_an_unexpected_end() {
        assert_eq!(
            Notice::read(&b"P1"[..]).unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof
        );
    }

    #[test]
    fn streams_are_received_in_order() {
        let (here, there) = UnixStream::pair().unwrap();
        let (reader, writer) = io::pipe().unwrap();
        let streams = [reader.as_fd(), writer.as_fd(), writer.as_fd()];
        send_request(&here, b"request", streams, None).unwrap();
        drop(writer);
        let Ok(Request::Spawn { request, streams, .. }) = receive_request(&there) else {
            panic!("no request");
        };
        let [_stdin, stdout, stderr] = streams;
        assert_eq!(request, b"request");
        rustix::io::write(&stdout, b"out").unwrap();
        rustix::io::write(&stderr, b"err").unwrap();
        drop((stdout, stderr));
        assert_eq!(io::read_to_string(reader).unwrap(), "outerr");
    }

    #[test]
    fn commands_before_a_request_are_late_and_commands_after_it_are_read() {
        let (mut here, there) = UnixStream::pair().unwrap();
        let null = std::fs::File::open("/dev/null").unwrap();
        let stop = SupervisorCommand::Stop {
            grace: Duration::ZERO,
        };
        here.write_all(&stop.encode()).unwrap();
        here.write_all(&SupervisorCommand::Kill.encode()).unwrap();
        send_request(&here, b"request", [null.as_fd(); 3], None).unwrap();
        here.write_all(&SupervisorCommand::Kill.encode()).unwrap();
        drop(here);
        assert!(matches!(receive_request(&there).unwrap(), Request::LateCommand));
        assert!(matches!(receive_request(&there).unwrap(), Request::LateCommand));
        assert!(
            matches!(receive_request(&there).unwrap(), Request::Spawn { request, .. } if request == b"request")
        );
        let mut command = [0; MESSAGE_BYTES];
        read_exact(there.as_fd(), &mut command).unwrap();
        assert_eq!(SupervisorCommand::decode(&command), Some(SupervisorCommand::Kill));
        assert!(matches!(receive_request(&there).unwrap(), Request::EndOfLine));
    }

    #[test]
    fn an_invalid_request_is_an_error() {
        let (mut here, there) = UnixStream::pair().unwrap();
        here.write_all(&message(SPAWN, 0)).unwrap();
        assert!(receive_request(&there).is_err(), "without streams");
        here.write_all(b"nonsense!").unwrap();
        assert!(receive_request(&there).is_err());
    }
}
