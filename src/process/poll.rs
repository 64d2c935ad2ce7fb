//! Waits until a descriptor is ready or a deadline has passed.

use std::os::fd::BorrowedFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Returns which descriptors are ready; none after the deadline or a signal.
pub(super) fn wait<const N: usize>(
    wanted: [(BorrowedFd<'_>, PollFlags); N],
    deadline: Option<Instant>,
) -> [bool; N] {
    let mut fds = wanted.map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags));
    let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    // A deadline that is too far away to be represented is no deadline.
    let timeout = left.and_then(|left| Timespec::try_from(left).ok());
    match poll(&mut fds, timeout.as_ref()) {
        Ok(0) | Err(_) => [false; N],
        Ok(_) => fds.map(|fd| !fd.revents().is_empty()),
    }
}
