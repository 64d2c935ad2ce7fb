//! The thread that passes on to the user's terminal what another program draws there. It writes as it is: this is the
//! user's own terminal and a program that the user wants to see. A slow terminal holds up the program, and nobody else.

use std::io;
use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;

use super::modes::Modes;
use crate::panic_hook;

/// How long a terminal may take for the last of it.
const LAST_STROKE: Duration = Duration::from_secs(2);

/// How the painting ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum PassthroughEnd {
    All,
    /// The terminal took no more in time, or is gone.
    Cut,
}

/// Paints pieces of any kind, in their order.
#[derive(Debug)]
pub struct Passthrough<B> {
    pieces: Sender<B>,
    end: Receiver<PassthroughEnd>,
}

impl<B: Deref<Target = [u8]> + Send + 'static> Passthrough<B> {
    /// `lost` is called once if the terminal cannot be written to.
    pub fn begin(terminal: OwnedFd, lost: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let (pieces, to_paint) = mpsc::channel::<B>();
        let (ended, end) = mpsc::channel();
        let paint = move || {
            let mut modes = Modes::default();
            let painted = to_paint.iter().try_for_each(|piece| {
                panic_hook::failpoint("painter");
                modes.see(&piece);
                write_all(&terminal, &piece)
            });
            let painted = match painted.and_then(|()| write_all(&terminal, &modes.undo())) {
                Ok(()) => PassthroughEnd::All,
                Err(_) => {
                    lost();
                    PassthroughEnd::Cut
                }
            };
            // Nobody may be waiting any more.
            let _ = ended.send(painted);
        };
        thread::Builder::new().name("painter".into()).spawn(paint)?;
        Ok(Self { pieces, end })
    }

    pub fn paint(&self, piece: B) {
        // A painter without a terminal has said so.
        let _ = self.pieces.send(piece);
    }

    /// Nothing more comes: whatever was left switched on is switched off.
    pub fn finish(self) -> PassthroughEnd {
        drop(self.pieces);
        match self.end.recv_timeout(LAST_STROKE) {
            Ok(painted) => painted,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => PassthroughEnd::Cut,
        }
    }
}

fn write_all(terminal: &OwnedFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(terminal, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            // A terminal that somebody else made non-blocking.
            Err(Errno::AGAIN) => thread::sleep(Duration::from_millis(5)),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
