//! `--while-open FD`: stops the run when the program that started it has ended.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Signal, getpid, kill_process};

use crate::ok_or_log;
use crate::run::Host;

/// Sends SIGTERM to this process as soon as all writers have closed the pipe. Input on it is ignored.
pub(super) fn watch(descriptor: i32, host: &Host) -> io::Result<()> {
    // Opening without O_NONBLOCK would wait for a writer if all of them are gone.
    let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
    let pipe = OpenOptions::new()
        .read(true)
        .custom_flags(nonblocking)
        .open(format!("/dev/fd/{descriptor}"))?;
    let watch = move || {
        wait_for_end(pipe);
        // A real signal, because the run may not have subscribed yet.
        let sent = kill_process(getpid(), Signal::TERM);
        ok_or_log!(sent, "cannot send SIGTERM to this process");
    };
    host.panics().spawn("lifeline", watch).map(drop)
}

/// Waits until nothing can be read any more.
fn wait_for_end(mut pipe: File) {
    let mut ignored = [0; 256];
    loop {
        match pipe.read(&mut ignored) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let waited = poll(&mut [PollFd::new(&pipe, PollFlags::IN)], None);
                if waited.is_err_and(|error| error != Errno::INTR) {
                    return;
                }
            }
            // Fail closed: a descriptor that cannot be read protects nothing.
            Err(_) => return,
        }
    }
}
