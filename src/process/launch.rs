//! System calls without a safe interface: what prepares a child between fork and exec, and what confines it.
//!
//! A child leads a session of its own, with default signals and no descriptor besides its three streams. `std` offers none
//! of these, so they are set up in `pre_exec`, where only functions that are safe after a fork may run: the system calls
//! below. None of them allocates, locks or panics.
#![expect(
    unsafe_code,
    reason = "pre_exec, signal dispositions, clone, mount_setattr and Landlock have no safe interface"
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

/// Copies this process into new namespaces, like a fork. Returns `None` in the copy. The caller has one thread, so the copy can
/// use everything that the original could.
#[cfg(target_os = "linux")]
pub(super) fn clone_into(namespaces: libc::c_int) -> io::Result<Option<rustix::process::Pid>> {
    let flags = libc::c_long::from(namespaces | libc::SIGCHLD);
    // SAFETY: without a stack of its own, the copy continues here, as after a fork; no other thread can hold a lock.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0_usize, 0_usize, 0_usize, 0_usize) };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw)),
    }
}

/// Ends this process at once, without running anything that the process from which it was copied has registered.
#[cfg(target_os = "linux")]
pub(super) fn exit_now(code: i32) -> ! {
    // SAFETY: the call takes a number and does not return.
    unsafe { libc::_exit(code) }
}

/// Which mounts a change applies to.
#[cfg(target_os = "linux")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mounts {
    One,
    WithSubmounts,
}

/// What can be done with a mount.
#[cfg(target_os = "linux")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MountAccess {
    ReadOnly,
}

/// Changes the access to mounts: those at a path, or those of a descriptor if the path is empty.
#[cfg(target_os = "linux")]
pub(super) fn set_mount_attributes(
    directory: impl std::os::fd::AsFd,
    path: &std::ffi::CStr,
    mounts: Mounts,
    access: MountAccess,
) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    /// The kernel's `struct mount_attr`.
    #[repr(C)]
    struct Attributes {
        set: u64,
        clear: u64,
        propagation: u64,
        user_namespace: u64,
    }

    const MOUNT_ATTR_RDONLY: u64 = 1;
    const AT_RECURSIVE: libc::c_int = 0x8000;

    let set = match access {
        MountAccess::ReadOnly => MOUNT_ATTR_RDONLY,
    };
    let attributes = Attributes {
        set,
        clear: 0,
        propagation: 0,
        user_namespace: 0,
    };
    let flags = libc::AT_EMPTY_PATH
        | match mounts {
            Mounts::One => 0,
            Mounts::WithSubmounts => AT_RECURSIVE,
        };
    // SAFETY: the pointers are valid for the call, and the size is that of the structure.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            directory.as_fd().as_raw_fd(),
            path.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<Attributes>(),
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Activates the loopback interface of a new network namespace.
#[cfg(target_os = "linux")]
pub(super) fn activate_loopback(socket: impl std::os::fd::AsFd) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    // SAFETY: zeros are a valid value of the structure.
    let mut request: libc::ifreq = unsafe { MaybeUninit::zeroed().assume_init() };
    for (to, from) in request.ifr_name.iter_mut().zip(c"lo".to_bytes()) {
        *to = from.cast_signed() as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the structure is the one that this request reads, and lives during the call.
    let result = unsafe {
        libc::ioctl(
            socket.as_fd().as_raw_fd(),
            libc::SIOCSIFFLAGS as _,
            &raw const request,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Gives this process a session keyring of its own. Keys of the user's session then stay outside. Where the call is missing or
/// forbidden, the program cannot use keyrings either.
#[cfg(target_os = "linux")]
pub(super) fn leave_session_keyring() {
    const JOIN_SESSION_KEYRING: libc::c_int = 1;
    let no_name = ptr::null::<libc::c_char>();
    // SAFETY: without a name, the call reads no memory.
    let _ = unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, no_name) };
}

/// The version of Landlock that the kernel has; `None` without it.
#[cfg(target_os = "linux")]
pub(super) fn landlock_version() -> Option<u32> {
    const CREATE_RULESET_VERSION: libc::c_uint = 1;
    let nothing = ptr::null::<libc::c_void>();
    // SAFETY: with this flag, the call takes no structure and returns a number.
    let version = unsafe { libc::syscall(LANDLOCK_CREATE_RULESET, nothing, 0_usize, CREATE_RULESET_VERSION) };
    u32::try_from(version).ok().filter(|version| *version > 0)
}

#[cfg(target_os = "linux")]
const LANDLOCK_CREATE_RULESET: libc::c_long = 444;
#[cfg(target_os = "linux")]
const LANDLOCK_RESTRICT_SELF: libc::c_long = 446;

/// Restricts abstract Unix sockets and signals of this process to processes with the same restriction. Requires version 6 of
/// Landlock and `no_new_privs`.
#[cfg(target_os = "linux")]
pub(super) fn restrict_sockets_and_signals() -> io::Result<()> {
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

    /// The kernel's `struct landlock_ruleset_attr`.
    #[repr(C)]
    struct Ruleset {
        files: u64,
        network: u64,
        scoped: u64,
    }

    const SCOPE_ABSTRACT_UNIX_SOCKET: u64 = 1;
    const SCOPE_SIGNAL: u64 = 2;

    let ruleset = Ruleset {
        files: 0,
        network: 0,
        scoped: SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL,
    };
    // SAFETY: the structure lives during the call, and the size is its own.
    let created = unsafe {
        libc::syscall(
            LANDLOCK_CREATE_RULESET,
            &raw const ruleset,
            size_of::<Ruleset>(),
            0,
        )
    };
    let Ok(descriptor @ 0..) = i32::try_from(created) else {
        return Err(io::Error::last_os_error());
    };
    // SAFETY: the kernel has just returned this descriptor.
    let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
    // SAFETY: the call takes numbers only.
    let result = unsafe { libc::syscall(LANDLOCK_RESTRICT_SELF, descriptor.as_raw_fd(), 0) };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
