//! The last way out: a process that puts the terminal back when ralph was killed and cannot. It is started before the
//! terminal is taken, is told what to print, and does nothing if ralph has said goodbye.

use std::io::{self, Read};
use std::process::ExitCode;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::stdio::stdout;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

/// The argument with which ralph is a guard.
pub const GUARD: &str = "__terminal-guard";
/// The last thing that a guard hears, after what is to be printed if it is not said.
pub const GOODBYE: &str = ".";
const PATIENCE: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// Early in `main`: if this process was started as a guard, is one and returns its exit code.
pub fn guard_if_asked() -> Option<ExitCode> {
    if std::env::args_os().nth(1)? != GUARD {
        return None;
    }
    Some(ExitCode::from(u8::from(guard().is_err())))
}

fn guard() -> io::Result<()> {
    // Out of reach of what is typed, and of job control: the terminal is then nobody's but may still be set.
    rustix::process::setsid()?;
    let before = tcgetattr(stdout())?;
    rustix::io::write(rustix::stdio::stderr(), b"+")?;
    let mut said = Vec::new();
    io::stdin().read_to_end(&mut said)?;
    if said.ends_with(GOODBYE.as_bytes()) {
        return Ok(());
    }
    // A terminal that takes no text is not waited for.
    let mut fds = [PollFd::from_borrowed_fd(stdout(), PollFlags::OUT)];
    if poll(&mut fds, Some(&PATIENCE)).is_ok_and(|ready| ready > 0) {
        rustix::io::write(stdout(), &said)?;
    }
    // Unless a shell has set it already as it needs it.
    let mut ours = before.clone();
    ours.make_raw();
    if tcgetattr(stdout()).is_ok_and(|now| modes(&now) == modes(&ours)) {
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
