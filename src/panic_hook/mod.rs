//! Mistakes of ralph's own: a panic, on whatever thread. It is told in one line, whoever drives a run is rung up so that
//! the agent is stopped and the journal ends with a word, and the program ends with exit code 1, in any case soon.
//!
//! One thread is excused: without the screen that it draws, a run goes on line by line.

mod failpoint;
mod message;

pub use failpoint::{failpoint, failpoint_in_run};

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::PanicHookInfo;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::stdio::stderr;
use rustix::termios::isatty;

/// The name of the thread that a run can do without.
pub const SCREEN: &str = "screen";
/// Where to go with it; empty as long as there is no such place.
const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");
/// Whatever still hangs then is not waited for. The keepers, who notice that we are gone, stop what we have started.
const LAST_RESORT: Duration = Duration::from_secs(10);
/// A terminal may stand in the middle of a line.
const NEW_LINE: &str = "\r\x1b[K";

type Bell = Box<dyn Fn() + Send>;

struct Known {
    /// The first mistake that was not excused.
    first_panic: Option<String>,
    journal: Option<PathBuf>,
    bell: Option<Bell>,
}

static KNOWN: Mutex<Known> = Mutex::new(Known {
    first_panic: None,
    journal: None,
    bell: None,
});

/// No code that can panic runs under this lock.
fn known() -> MutexGuard<'static, Known> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(debug_assertions)]
fn is_watched() -> bool {
    known().bell.is_some()
}

/// From now on no panic goes by unheard.
pub fn install() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| std::panic::set_hook(Box::new(hear)));
}

/// What went wrong, and where, if something did that cannot be excused.
pub fn first_panic() -> Option<String> {
    known().first_panic.clone()
}

/// There is a run, and this is its journal.
pub fn set_journal(journal: &Path) {
    known().journal = Some(journal.to_owned());
}

/// Somebody is rung up when something goes wrong; at once, if it has already.
pub fn on_panic(bell: impl Fn() + Send + 'static) -> PanicListener {
    let mut known = known();
    if known.first_panic.is_some() {
        bell();
    }
    known.bell = Some(Box::new(bell));
    PanicListener
}

/// Until this is dropped.
#[derive(Debug)]
#[must_use]
pub struct PanicListener;

impl Drop for PanicListener {
    fn drop(&mut self) {
        known().bell = None;
    }
}

/// A process that works for us has told us of a mistake.
pub fn report_remote(first_panic: String) {
    first_aid();
    tell_once(first_panic, None);
}

fn hear(panic: &PanicHookInfo<'_>) {
    let first_panic = message::of(panic);
    let backtrace = Backtrace::capture();
    let backtrace = (backtrace.status() == BacktraceStatus::Captured).then(|| backtrace.to_string());
    if thread::current().name() == Some(SCREEN) {
        say(&message::excused(&first_panic, REPOSITORY), backtrace.as_deref());
        return;
    }
    first_aid();
    tell_once(first_panic, backtrace.as_deref());
}

/// Before anything that may block: the end comes, whatever happens.
fn first_aid() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let wait = || {
            thread::sleep(LAST_RESORT);
            leave();
        };
        // Without a thread to be had, the ordinary ways out are all that there is.
        let _ = thread::Builder::new().name("last resort".into()).spawn(wait);
    });
}

#[expect(clippy::exit, reason = "the main thread hangs, or is not told")]
fn leave() {
    std::process::exit(1);
}

/// One mistake often leads to the next: only the first is told.
fn tell_once(first_panic: String, backtrace: Option<&str>) {
    let line = {
        let mut known = known();
        if known.first_panic.is_some() {
            return;
        }
        let line = message::fatal(&first_panic, known.journal.as_deref(), REPOSITORY);
        known.first_panic = Some(first_panic);
        line
    };
    // Said before somebody is rung up, who may end the program.
    say(&line, backtrace);
    if let Some(bell) = &known().bell {
        bell();
    }
}

/// Past every buffer and lock: whoever holds one may be the one who has failed.
fn say(line: &str, backtrace: Option<&str>) {
    let start = if isatty(stderr()) { NEW_LINE } else { "" };
    let text = format!("{start}{line}\n{}", backtrace.unwrap_or_default());
    let mut bytes = text.as_bytes();
    while let Ok(count @ 1..) = rustix::io::retry_on_intr(|| rustix::io::write(stderr(), bytes)) {
        bytes = &bytes[count..];
    }
}
