//! Prepares a child between fork and exec, which needs `unsafe`.
//!
//! A child leads a session of its own, with default signals and no descriptor besides its three streams. `std` offers none
//! of these, so they are set up in `pre_exec`, where only functions that are safe after a fork may run: the system calls
//! below. None of them allocates, locks or panics.
#![expect(
    unsafe_code,
    reason = "pre_exec and signal dispositions have no safe interface"
)]

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;

use super::wire::ControllingTerminal;

/// All signal numbers of every Unix. The kernel refuses those that do not exist.
const SIGNALS: std::ops::Range<libc::c_int> = 1..65;

/// Makes the command start as the leader of a new session, with default signals and no inherited descriptors.
pub(super) fn lead_a_session(command: &mut Command, terminal: ControllingTerminal) {
    let prepare = move || {
        rustix::process::setsid()?;
        if terminal == ControllingTerminal::Stdout {
            rustix::process::ioctl_tiocsctty(rustix::stdio::stdout())?;
        }
        reset_broken_pipe_signal();
        unblock_signals();
        exit_with_supervisor();
        mark_descriptors_close_on_exec();
        io::Result::Ok(())
    };
    // SAFETY: `prepare` runs in the forked child and makes system calls only (see above); `std` has put the
    // three streams in place before, so fd 1 is the child's stdout.
    unsafe { command.pre_exec(prepare) };
}

/// Unblocks all signals, which a parent may have blocked. Without SIGCHLD, a supervisor would wait forever.
fn unblock_signals() {
    let mut none = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` initializes the set before it is read; no handler or memory is touched.
    unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut());
    }
}

/// Resets all signals of a supervisor: a child inherits ignored signals, while handlers end with exec. SIGPIPE stays ignored in
/// the supervisor, which handles the error of the write, and is reset in the child.
pub(super) fn reset_signals() {
    for signal in SIGNALS.filter(|signal| *signal != libc::SIGPIPE) {
        // SAFETY: the default disposition runs no code of this program.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    unblock_signals();
}

fn reset_broken_pipe_signal() {
    // SAFETY: as above.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// Ends the child's leader with the supervisor, even if ralph and the supervisor are killed at the same time. The kernel watches
/// the thread that forked; a supervisor has only one.
fn exit_with_supervisor() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
}

/// Closes all inherited descriptors besides the three streams: a supervisor must not hold a pipe open for which another
/// process waits. Called only at the start of a process, before it has opened anything.
pub(super) fn close_inherited_descriptors() {
    close_range(0);
}

/// Marks all descriptors besides the three streams close-on-exec; `std` needs a pipe until then.
fn mark_descriptors_close_on_exec() {
    #[cfg(target_os = "linux")]
    close_range(libc::CLOSE_RANGE_CLOEXEC);
}

/// Closes or marks descriptors from 3 upwards. An old kernel refuses; then descriptors leaked by ralph's parent are inherited.
fn close_range(flags: libc::c_uint) {
    #[cfg(target_os = "linux")]
    // SAFETY: no descriptor from 3 upwards has an owner in this process: it has either just begun, or is
    // about to become another program. The raw call, since older C libraries have no function for it.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, flags);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = flags;
}
