//! Default signal dispositions for the programs that tests start.
#![expect(
    unsafe_code,
    reason = "pre_exec and signal dispositions have no safe interface"
)]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// A non-interactive shell ignores these signals in its background jobs, `nohup` ignores SIGHUP, and a child inherits that.
const SIGNALS: [libc::c_int; 4] = [libc::SIGINT, libc::SIGHUP, libc::SIGTERM, libc::SIGQUIT];

/// Resets the signals that end a process to their default, however the tests themselves were started. A shell cannot trap a
/// signal that was ignored when it started, and ralph respects an ignored SIGHUP.
pub(crate) fn with_default_signals(command: &mut Command) -> &mut Command {
    let reset = || {
        for signal in SIGNALS {
            // SAFETY: `signal` is safe to call after a fork, and the default disposition runs no code of this process.
            if unsafe { libc::signal(signal, libc::SIG_DFL) } == libc::SIG_ERR {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: `reset` runs in the forked child and makes system calls only.
    unsafe { command.pre_exec(reset) }
}
