//! The terminal guard: a process that restores the terminal if ralph is killed.
//!
//! Ralph starts it before it takes over the terminal and writes the restore sequence to its stdin. The guard does nothing
//! if ralph appends `CLEAN_EXIT` before it closes the pipe.

use std::io::{self, Read};
use std::process::ExitCode;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::stdio::stdout;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

/// The hidden command-line argument that starts ralph as a guard.
pub const GUARD_ARGUMENT: &str = "__terminal-guard";
/// Last byte on the guard's stdin after a clean exit. The bytes before it are the restore sequence.
pub const CLEAN_EXIT: &str = ".";
const WRITE_TIMEOUT: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// Runs the guard and returns its exit code if this process was started as one. Called early in `main`.
pub fn run_guard_if_requested() -> Option<ExitCode> {
    if std::env::args_os().nth(1)? != GUARD_ARGUMENT {
        return None;
    }
    Some(ExitCode::from(u8::from(guard().is_err())))
}

fn guard() -> io::Result<()> {
    // A session of its own receives no signals from the keyboard or job control, and can still set the terminal modes.
    rustix::process::setsid()?;
    let before = tcgetattr(stdout())?;
    rustix::io::write(rustix::stdio::stderr(), b"+")?;
    let mut input = Vec::new();
    io::stdin().read_to_end(&mut input)?;
    if input.ends_with(CLEAN_EXIT.as_bytes()) {
        return Ok(());
    }
    // Do not block on a terminal that accepts no output.
    let mut fds = [PollFd::from_borrowed_fd(stdout(), PollFlags::OUT)];
    if poll(&mut fds, Some(&WRITE_TIMEOUT)).is_ok_and(|ready| ready > 0) {
        rustix::io::write(stdout(), &input)?;
    }
    // Leave the modes alone if a shell has already changed them.
    let mut raw = before.clone();
    raw.make_raw();
    if tcgetattr(stdout()).is_ok_and(|now| modes(&now) == modes(&raw)) {
        tcsetattr(stdout(), OptionalActions::Now, &before)?;
    }
    Ok(())
}

fn modes(termios: &Termios) -> impl PartialEq {
    (
        termios.input_modes,
        termios.output_modes,
        termios.control_modes,
        termios.local_modes,
    )
}
