//! The moment between fork and exec: the only place of the crate that needs `unsafe`.
//!
//! The child must lead a session of its own, with untouched signals and no descriptor but its three
//! streams. `std` offers none of these, so they are done in `pre_exec`, where only functions that are safe
//! after a fork may run: the plain system calls below. None of them allocates, locks or panics.
#![expect(
    unsafe_code,
    reason = "pre_exec and signal dispositions have no safe interface"
)]

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;

use super::wire::Terminal;

/// Beyond the last signal of every Unix; the kernel refuses those that do not exist.
const SIGNALS: std::ops::Range<libc::c_int> = 1..65;

/// Lets the command start as the leader of a new session, with a clean slate.
pub(super) fn lead_a_session(command: &mut Command, terminal: Terminal) {
    let prepare = move || {
        rustix::process::setsid()?;
        if terminal == Terminal::Stdout {
            rustix::process::ioctl_tiocsctty(rustix::stdio::stdout())?;
        }
        let_a_broken_pipe_kill();
        unblock_signals();
        die_with_the_keeper();
        leave_no_descriptor();
        io::Result::Ok(())
    };
    // SAFETY: `prepare` runs in the forked child and makes system calls only (see above); `std` has put the
    // three streams in place before, so fd 1 is the child's stdout.
    unsafe { command.pre_exec(prepare) };
}

/// A parent may have blocked signals for us; without SIGCHLD a keeper would wait for ever.
fn unblock_signals() {
    let mut none = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` initialises the set before it is read; no handler or memory is touched.
    unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut());
    }
}

/// For a keeper and all that it starts: what was ignored before us would stay ignored in every child. Our own handlers, which
/// come later, vanish with exec. A broken pipe is an error that a keeper wants to see, so that one waits for the child.
pub(super) fn reset_signals() {
    for signal in SIGNALS.filter(|signal| *signal != libc::SIGPIPE) {
        // SAFETY: the default disposition runs no code of ours.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    unblock_signals();
}

fn let_a_broken_pipe_kill() {
    // SAFETY: as above.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// Even when keeper and ralph are killed in the same instant, the leader does not work on. The keeper has
/// one thread, so the death of the thread that forked is the death of the keeper.
fn die_with_the_keeper() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
}

/// Closes what this process has inherited beside its three streams: a keeper must not hold open what somebody
/// else waits to see closed. Only for the very beginning of a process, before it has opened anything.
pub(super) fn close_inherited_descriptors() {
    close_range(0);
}

/// Marks all but the three streams close-on-exec; `std` still needs its own pipe until then.
fn leave_no_descriptor() {
    #[cfg(target_os = "linux")]
    close_range(libc::CLOSE_RANGE_CLOEXEC);
}

/// From 3 upwards. An old kernel refuses, and then only what ralph's own parent leaked is passed on.
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
