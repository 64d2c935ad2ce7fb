//! The terminal of an interactive child: its input and its size.

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

/// Ralph's side of a child's terminal. It may outlive the child; then input is discarded.
#[derive(Debug, Clone)]
pub struct Screen {
    parent: Arc<OwnedFd>,
}

impl Screen {
    pub(super) fn new(parent: OwnedFd) -> Self {
        Self {
            parent: Arc::new(parent),
        }
    }

    /// Writes as much input as the terminal accepts now; returns the number of bytes.
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match rustix::io::write(&self.parent, bytes) {
            Ok(count) => Ok(count),
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// Sets the size. The child receives SIGWINCH if it differs.
    pub fn resize(&self, size: Size) {
        // Fails only if the terminal is closed.
        let _ = tcsetwinsize(&self.parent, size.into());
    }
}

impl AsFd for Screen {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.parent.as_fd()
    }
}
