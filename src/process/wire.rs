//! The control line between a keeper and the process that wants children: fixed-size messages on a socket pair. A call
//! hands over the next child's three streams and what to start; end of file means that the other side has died.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

use crate::event::ProcessEnd;

/// Every message is one byte that says what it is and eight that say how much.
pub(super) const MESSAGE_BYTES: usize = 9;
pub(super) type Message = [u8; MESSAGE_BYTES];

/// The message that an errand begins with; it says how long the errand is.
const CALL: u8 = b'C';
const STREAMS: usize = 3;
const LONGEST_WORDS: u64 = 4096;

/// Whether the child's stdout is to become its controlling terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Terminal {
    None,
    Stdout,
}

/// What the keeper is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SupervisorCommand {
    Stop { grace: Duration },
    Kill,
}

/// What the keeper tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notice {
    Started {
        pid: u32,
    },
    /// The child could not be started; the keeper is free.
    Failed {
        stage: SpawnStage,
        errno: i32,
    },
    LeaderEnded(ProcessEnd),
    /// No process of the tree is left, or none that can be ended.
    TreeExited {
        swept: u64,
        supervisor: Afterwards,
    },
    /// The keeper itself has made a mistake; so many bytes about it follow.
    Mistaken {
        bytes: u64,
    },
}

/// What a keeper does when its child is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Afterwards {
    /// It waits for another child.
    Waits,
    /// It was told to go, or there is something left that it could not end.
    Leaves,
}

/// What a keeper without a child hears.
#[derive(Debug)]
pub(super) enum Call {
    SpawnRequest {
        errand: Vec<u8>,
        streams: [OwnedFd; STREAMS],
    },
    /// An order for the child before, which had gone when it was sent.
    TooLate,
    /// Nobody is at the other end.
    Over,
}

/// How far the keeper came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpawnStage {
    WorkingDirectory,
    Exec,
}

impl SupervisorCommand {
    pub(super) fn encode(self) -> Message {
        match self {
            Self::Stop { grace } => message(b'S', u64::try_from(grace.as_millis()).unwrap_or(u64::MAX)),
            Self::Kill => message(b'K', 0),
        }
    }

    pub(super) fn decode(bytes: &Message) -> Option<Self> {
        let (kind, value) = parts(bytes);
        match kind {
            b'S' => Some(Self::Stop {
                grace: Duration::from_millis(value),
            }),
            b'K' => Some(Self::Kill),
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
            Self::LeaderEnded(ProcessEnd::Exited { code }) => message(b'E', number(code)),
            Self::LeaderEnded(ProcessEnd::Signaled { signal }) => message(b'S', number(signal)),
            Self::TreeExited {
                swept,
                supervisor: Afterwards::Waits,
            } => message(b'G', swept),
            Self::TreeExited {
                swept,
                supervisor: Afterwards::Leaves,
            } => message(b'L', swept),
            Self::Mistaken { bytes } => message(b'M', bytes),
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
            b'E' => Self::LeaderEnded(ProcessEnd::Exited { code: signed? }),
            b'S' => Self::LeaderEnded(ProcessEnd::Signaled { signal: signed? }),
            b'G' => Self::TreeExited {
                swept: value,
                supervisor: Afterwards::Waits,
            },
            b'L' => Self::TreeExited {
                swept: value,
                supervisor: Afterwards::Leaves,
            },
            b'M' => Self::Mistaken { bytes: value },
            _ => return None,
        })
    }

    /// The next notice; an error of kind `UnexpectedEof` if the keeper has died.
    pub(super) fn read(mut control: impl Read) -> io::Result<Self> {
        let mut bytes = [0; MESSAGE_BYTES];
        control.read_exact(&mut bytes)?;
        Self::decode(&bytes).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

/// What a keeper has to say of its mistake.
pub(super) fn read_words(control: impl Read, bytes: u64) -> String {
    let mut words = Vec::new();
    // Cut off in the middle, they are still better than none.
    let _ = control.take(bytes.min(LONGEST_WORDS)).read_to_end(&mut words);
    format!("{}, in the keeper", String::from_utf8_lossy(&words))
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

/// Hands the child's stdin, stdout and stderr to a keeper, and what it is to start.
pub(super) fn hand_over(
    mut control: impl AsFd + Write,
    errand: &[u8],
    streams: [BorrowedFd<'_>; STREAMS],
) -> io::Result<()> {
    let call = message(CALL, errand.len() as u64);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    rights.push(SendAncillaryMessage::ScmRights(&streams));
    let sent = sendmsg(
        control.as_fd(),
        &[IoSlice::new(&call), IoSlice::new(errand)],
        &mut rights,
        SendFlags::NOSIGNAL,
    )?;
    control.write_all(&call[sent.min(call.len())..])?;
    control.write_all(&errand[sent.saturating_sub(call.len())..])
}

/// The keeper's side of `hand_over`. The line keeps the order of what is said, so what comes before a call is for a child
/// that is gone, and what comes after it is for the new one.
pub(super) fn take_over(control: impl AsFd) -> io::Result<Call> {
    let mut bytes = [0; MESSAGE_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(
        control.as_fd(),
        &mut [IoSliceMut::new(&mut bytes)],
        &mut rights,
        RecvFlags::empty(),
    )?;
    if received.bytes == 0 {
        return Ok(Call::Over);
    }
    let streams: Vec<OwnedFd> = rights
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        })
        .flatten()
        .collect();
    for stream in &streams {
        // Only the three copies that exec puts in place may reach the child.
        fcntl_setfd(stream, FdFlags::CLOEXEC)?;
    }
    read_exact(control.as_fd(), &mut bytes[received.bytes..])?;
    if SupervisorCommand::decode(&bytes).is_some() {
        return Ok(Call::TooLate);
    }
    let streams = streams.try_into();
    let ((CALL, length), Ok(streams)) = (parts(&bytes), streams) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let mut errand = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    read_exact(control.as_fd(), &mut errand)?;
    Ok(Call::SpawnRequest { errand, streams })
}

/// As much as is asked for, from a line that may only be borrowed.
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

/// All of it, to a line that may only be borrowed.
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
    fn every_notice_survives_the_line() {
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
            Notice::LeaderEnded(ProcessEnd::Exited { code: -1 }),
            Notice::LeaderEnded(ProcessEnd::Signaled { signal: 9 }),
            Notice::TreeExited {
                swept: u64::MAX,
                supervisor: Afterwards::Waits,
            },
            Notice::TreeExited {
                swept: 0,
                supervisor: Afterwards::Leaves,
            },
            Notice::Mistaken { bytes: 7 },
        ] {
            assert_eq!(Notice::read(&notice.encode()[..]).unwrap(), notice);
        }
    }

    #[test]
    fn every_order_survives_the_line() {
        for order in [
            SupervisorCommand::Kill,
            SupervisorCommand::Stop {
                grace: Duration::from_millis(1500),
            },
        ] {
            assert_eq!(SupervisorCommand::decode(&order.encode()), Some(order));
        }
    }

    #[test]
    fn a_dead_keeper_is_an_unexpected_end() {
        assert_eq!(
            Notice::read(&b"P1"[..]).unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof
        );
    }

    #[test]
    fn streams_are_handed_over_in_order() {
        let (here, there) = UnixStream::pair().unwrap();
        let (reader, writer) = io::pipe().unwrap();
        let streams = [reader.as_fd(), writer.as_fd(), writer.as_fd()];
        hand_over(&here, b"errand", streams).unwrap();
        drop(writer);
        let Ok(Call::SpawnRequest { errand, streams }) = take_over(&there) else {
            panic!("no errand");
        };
        let [_stdin, stdout, stderr] = streams;
        assert_eq!(errand, b"errand");
        rustix::io::write(&stdout, b"out").unwrap();
        rustix::io::write(&stderr, b"err").unwrap();
        drop((stdout, stderr));
        assert_eq!(io::read_to_string(reader).unwrap(), "outerr");
    }

    #[test]
    fn orders_before_a_call_are_too_late_and_orders_after_it_count() {
        let (mut here, there) = UnixStream::pair().unwrap();
        let null = std::fs::File::open("/dev/null").unwrap();
        let stop = SupervisorCommand::Stop {
            grace: Duration::ZERO,
        };
        here.write_all(&stop.encode()).unwrap();
        here.write_all(&SupervisorCommand::Kill.encode()).unwrap();
        hand_over(&here, b"errand", [null.as_fd(); 3]).unwrap();
        here.write_all(&SupervisorCommand::Kill.encode()).unwrap();
        drop(here);
        assert!(matches!(take_over(&there).unwrap(), Call::TooLate));
        assert!(matches!(take_over(&there).unwrap(), Call::TooLate));
        assert!(
            matches!(take_over(&there).unwrap(), Call::SpawnRequest { errand, .. } if errand == b"errand")
        );
        let mut order = [0; MESSAGE_BYTES];
        read_exact(there.as_fd(), &mut order).unwrap();
        assert_eq!(SupervisorCommand::decode(&order), Some(SupervisorCommand::Kill));
        assert!(matches!(take_over(&there).unwrap(), Call::Over));
    }

    #[test]
    fn nonsense_is_no_call() {
        let (mut here, there) = UnixStream::pair().unwrap();
        here.write_all(&message(CALL, 0)).unwrap();
        assert!(take_over(&there).is_err(), "without streams");
        here.write_all(b"nonsense!").unwrap();
        assert!(take_over(&there).is_err());
    }
}
