//! The action that the process takes for a signal.
#![expect(unsafe_code, reason = "the disposition of a signal has no safe interface")]

use std::mem::MaybeUninit;
use std::ptr;

/// Whether a signal is ignored, which is inherited from the parent process.
pub(super) fn is_ignored(signal: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action, the call only writes to `action`, which is valid when zeroed.
    let action = unsafe {
        libc::sigaction(signal, ptr::null(), action.as_mut_ptr());
        action.assume_init()
    };
    action.sa_sigaction == libc::SIG_IGN
}
