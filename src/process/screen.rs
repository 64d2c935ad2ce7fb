//! The screen of a child that draws on one: what its user types, and how large it is.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::termios::{Winsize, tcsetwinsize};

/// Rows and columns of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub rows: u16,
    pub columns: u16,
}

impl From<Size> for Winsize {
    fn from(size: Size) -> Self {
        Self {
            ws_row: size.rows,
            ws_col: size.columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        }
    }
}

/// Our side of a child's screen. It may outlive the child: then nothing comes of what is typed.
#[derive(Debug, Clone)]
pub struct Screen {
    ours: Arc<OwnedFd>,
}

impl Screen {
    pub(super) fn new(ours: OwnedFd) -> Self {
        Self { ours: Arc::new(ours) }
    }

    /// Types as much as the child takes now, and says how much that was.
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match rustix::io::write(&self.ours, bytes) {
            Ok(count) => Ok(count),
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// Tells the child of another size. The same size tells it nothing.
    pub fn resize(&self, size: Size) {
        // A screen that has gone needs no size.
        let _ = tcsetwinsize(&self.ours, size.into());
    }
}

impl AsFd for Screen {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ours.as_fd()
    }
}
