//! Mistakes that are made on purpose, for the tests of what happens then. There are none in a release.

/// Makes the mistake, once, if `PANIC_IN_RALPH` names this place.
#[cfg(debug_assertions)]
pub fn failpoint(place: &str) {
    use std::ffi::OsString;
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicBool, Ordering};

    static ASKED: LazyLock<Option<OsString>> = LazyLock::new(|| std::env::var_os("PANIC_IN_RALPH"));
    static MADE: AtomicBool = AtomicBool::new(false);
    let asked = ASKED.as_ref().is_some_and(|asked| asked == place);
    assert!(
        !asked || MADE.swap(true, Ordering::SeqCst),
        "as the test wants it, in: {place}"
    );
}

/// The same in a place that is also passed before there is a run.
#[cfg(debug_assertions)]
pub fn failpoint_in_run(place: &str) {
    if super::is_watched() {
        failpoint(place);
    }
}

#[cfg(not(debug_assertions))]
mod release {
    #[inline]
    pub fn failpoint(_: &str) {}
    #[inline]
    pub fn failpoint_in_run(_: &str) {}
}

#[cfg(not(debug_assertions))]
pub use release::{failpoint, failpoint_in_run};
