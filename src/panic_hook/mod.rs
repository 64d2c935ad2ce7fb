//! Panic handling: restores the terminal, prints one line, notifies the run, and ends the process if it hangs.
//!
//! Every thread that works for a run belongs to the run's `PanicScope`, so that a panic ends this run and no other one
//! of the same process.

mod failpoint;
mod message;

#[cfg(debug_assertions)]
pub use failpoint::Failpoint;

use std::backtrace::{Backtrace, BacktraceStatus};
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::panic::PanicHookInfo;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::Duration;

use rustix::stdio::stderr;
use rustix::termios::isatty;

use crate::debug_log::ParentLog;

/// Where to report a panic.
const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");
/// The time for an orderly end after a panic. Then the process exits, and the supervisors stop what it has started.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);
/// Clears the current line, which may contain partial output.
const NEW_LINE: &str = "\r\x1b[K";

/// What happens to the process after a panic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterPanic {
    /// The process is the `ralph` program: it exits at the latest after 10 s. Threads without a scope belong to the program.
    ExitProcess,
    /// ralph is part of a larger program: only the run ends. Panics of threads without a scope go to the previous hook.
    KeepProcess,
}

/// The effect of a panic on the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The run ends.
    Fatal,
    /// The run continues without the thread.
    Recoverable,
}

/// A group of threads whose panics end the same run. Clones are handles of the same scope.
#[derive(Clone)]
pub struct PanicScope {
    process: Arc<Process>,
    state: Arc<ScopeState>,
}

/// The state that the scopes of a process share.
struct Process {
    after: AfterPanic,
    threads: Mutex<HashMap<ThreadId, Registration>>,
    scopes: Mutex<Vec<Weak<ScopeState>>>,
    exit_scheduled: AtomicBool,
}

#[derive(Clone)]
struct Registration {
    scope: Arc<ScopeState>,
    severity: Severity,
}

type Listener = Arc<dyn Fn() + Send + Sync>;
type Cleanup = Arc<dyn Fn(Severity) + Send + Sync>;

#[derive(Default)]
struct ScopeState {
    /// The program's own scope: its panics end every run of the process.
    is_root: bool,
    inner: Mutex<ScopeInner>,
    #[cfg(debug_assertions)]
    armed: Mutex<Option<Failpoint>>,
}

#[derive(Default)]
struct ScopeInner {
    /// The first fatal panic.
    first_panic: Option<String>,
    journal: Option<PathBuf>,
    listener: Option<Listener>,
    cleanups: Vec<Cleanup>,
}

impl fmt::Debug for PanicScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PanicScope").finish_non_exhaustive()
    }
}

impl PanicScope {
    /// Installs the panic hook of the process and returns the scope of the program.
    pub fn install(after: AfterPanic) -> Self {
        let scope = Self::uninstalled(after);
        #[cfg(debug_assertions)]
        if after == AfterPanic::ExitProcess {
            *lock(&scope.state.armed) = Failpoint::from_environment();
        }
        let (root, previous) = (scope.clone(), std::panic::take_hook());
        std::panic::set_hook(Box::new(move |panic| {
            let registered = lock(&root.process.threads).get(&thread::current().id()).cloned();
            match (registered, after) {
                (Some(thread), _) => root.process.on_panic(panic, &thread),
                (None, AfterPanic::ExitProcess) => {
                    let scope = Arc::clone(&root.state);
                    let severity = Severity::Fatal;
                    root.process.on_panic(panic, &Registration { scope, severity });
                }
                (None, AfterPanic::KeepProcess) => previous(panic),
            }
        }));
        scope
    }

    /// A scope without a hook, for code that runs outside of the program, such as a test of one part.
    pub fn detached() -> Self {
        Self::uninstalled(AfterPanic::KeepProcess)
    }

    fn uninstalled(after: AfterPanic) -> Self {
        let state = Arc::new(ScopeState {
            is_root: true,
            ..ScopeState::default()
        });
        let process = Process {
            after,
            threads: Mutex::default(),
            scopes: Mutex::new(vec![Arc::downgrade(&state)]),
            exit_scheduled: AtomicBool::new(false),
        };
        Self {
            process: Arc::new(process),
            state,
        }
    }

    /// A new scope, whose panics end nothing else.
    #[must_use]
    pub fn for_run(&self) -> Self {
        let state = Arc::new(ScopeState::default());
        let mut scopes = lock(&self.process.scopes);
        scopes.retain(|scope| scope.strong_count() > 0);
        scopes.push(Arc::downgrade(&state));
        Self {
            process: Arc::clone(&self.process),
            state,
        }
    }

    /// Starts a thread that belongs to the scope and logs where the current thread does.
    pub fn spawn<T: Send + 'static>(
        &self,
        name: &str,
        run: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        self.spawn_as(Severity::Fatal, name, run)
    }

    /// Starts a thread that belongs to the scope and whose panic has this severity.
    pub fn spawn_as<T: Send + 'static>(
        &self,
        severity: Severity,
        name: &str,
        run: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        let (scope, log) = (self.clone(), ParentLog::current());
        thread::Builder::new().name(name.to_owned()).spawn(move || {
            let _member = scope.register(severity);
            log.run(run)
        })
    }

    /// Makes the current thread belong to the scope until the returned value is dropped.
    pub fn enter(&self) -> ScopeMember {
        self.register(Severity::Fatal)
    }

    fn register(&self, severity: Severity) -> ScopeMember {
        let thread = thread::current().id();
        let scope = Arc::clone(&self.state);
        let registration = Registration { scope, severity };
        let previous = lock(&self.process.threads).insert(thread, registration);
        ScopeMember {
            process: Arc::clone(&self.process),
            thread,
            previous,
        }
    }

    /// The first fatal panic: its message and place.
    pub fn first_panic(&self) -> Option<String> {
        lock(&self.state.inner).first_panic.clone()
    }

    /// Sets the journal that the report of a panic names.
    pub fn set_journal(&self, journal: &Path) {
        lock(&self.state.inner).journal = Some(journal.to_owned());
    }

    /// Calls `listener` after a fatal panic, at once if there was one before.
    pub fn on_panic(&self, listener: impl Fn() + Send + Sync + 'static) -> PanicListener {
        let mut inner = lock(&self.state.inner);
        if inner.first_panic.is_some() {
            listener();
        }
        inner.listener = Some(Arc::new(listener));
        PanicListener(Arc::clone(&self.state))
    }

    /// Calls `cleanup` when a thread panics, before the panic is reported: the report must reach a restored terminal.
    pub fn before_report(&self, cleanup: impl Fn(Severity) + Send + Sync + 'static) -> CleanupGuard {
        let cleanup: Cleanup = Arc::new(cleanup);
        lock(&self.state.inner).cleanups.push(Arc::clone(&cleanup));
        CleanupGuard {
            scope: Arc::clone(&self.state),
            cleanup,
        }
    }

    /// Handles the panic of a process that works for the scope.
    pub fn report_remote(&self, message: String) {
        self.process.schedule_exit();
        self.process.clean_up(&self.state, Severity::Fatal);
        self.process.report(&self.state, message, None);
    }

    /// Arms a failpoint in this scope only.
    #[cfg(all(debug_assertions, any(test, feature = "test-support")))]
    pub fn arm(&self, failpoint: Failpoint) {
        *lock(&self.state.armed) = Some(failpoint);
    }

    /// Whether the failpoint is armed; disarms it. Called by `failpoint!`.
    #[cfg(debug_assertions)]
    pub fn take_failpoint(&self, failpoint: Failpoint) -> bool {
        let mut armed = lock(&self.state.armed);
        if *armed != Some(failpoint) {
            return false;
        }
        if failpoint.requires_run() && lock(&self.state.inner).listener.is_none() {
            return false;
        }
        armed.take().is_some()
    }
}

/// Membership of a thread in a scope.
#[must_use]
pub struct ScopeMember {
    process: Arc<Process>,
    thread: ThreadId,
    previous: Option<Registration>,
}

impl Drop for ScopeMember {
    fn drop(&mut self) {
        let mut threads = lock(&self.process.threads);
        match self.previous.take() {
            Some(previous) => threads.insert(self.thread, previous),
            None => threads.remove(&self.thread),
        };
    }
}

/// Removes the listener when dropped.
#[must_use]
pub struct PanicListener(Arc<ScopeState>);

impl Drop for PanicListener {
    fn drop(&mut self) {
        lock(&self.0.inner).listener = None;
    }
}

/// Removes the cleanup when dropped.
#[must_use]
pub struct CleanupGuard {
    scope: Arc<ScopeState>,
    cleanup: Cleanup,
}

impl Drop for CleanupGuard {
    fn drop(&mut self) {
        lock(&self.scope.inner)
            .cleanups
            .retain(|cleanup| !Arc::ptr_eq(cleanup, &self.cleanup));
    }
}

impl fmt::Debug for CleanupGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CleanupGuard")
    }
}

impl Process {
    fn on_panic(&self, panic: &PanicHookInfo<'_>, thread: &Registration) {
        let message = message::describe(panic);
        let backtrace = Backtrace::capture();
        let backtrace = (backtrace.status() == BacktraceStatus::Captured).then(|| backtrace.to_string());
        // Before anything that may block.
        if thread.severity == Severity::Fatal {
            self.schedule_exit();
        }
        self.clean_up(&thread.scope, thread.severity);
        match thread.severity {
            Severity::Fatal => self.report(&thread.scope, message, backtrace.as_deref()),
            Severity::Recoverable => {
                print(&message::recoverable(&message, REPOSITORY), backtrace.as_deref());
            }
        }
    }

    fn clean_up(&self, scope: &Arc<ScopeState>, severity: Severity) {
        for scope in self.affected_by(scope) {
            let cleanups = lock(&scope.inner).cleanups.clone();
            cleanups.iter().for_each(|cleanup| cleanup(severity));
        }
    }

    /// Prints the first fatal panic of a scope and notifies its runs. Later ones often follow from it.
    fn report(&self, scope: &Arc<ScopeState>, message: String, backtrace: Option<&str>) {
        let affected = self.affected_by(scope);
        let line = {
            let mut inner = lock(&scope.inner);
            if inner.first_panic.is_some() {
                return;
            }
            let line = message::fatal(&message, inner.journal.as_deref(), REPOSITORY);
            inner.first_panic = Some(message.clone());
            line
        };
        // Before the listeners, which may end the program.
        print(&line, backtrace);
        for scope in affected {
            let listener = {
                let mut inner = lock(&scope.inner);
                inner.first_panic.get_or_insert_with(|| message.clone());
                inner.listener.clone()
            };
            if let Some(listener) = listener {
                listener();
            }
        }
    }

    /// The scope itself; every scope for that of the program.
    fn affected_by(&self, scope: &Arc<ScopeState>) -> Vec<Arc<ScopeState>> {
        if scope.is_root {
            lock(&self.scopes).iter().filter_map(Weak::upgrade).collect()
        } else {
            vec![Arc::clone(scope)]
        }
    }

    /// Ends the process after `EXIT_TIMEOUT`, unless it ends by itself before.
    fn schedule_exit(&self) {
        if self.after == AfterPanic::KeepProcess || self.exit_scheduled.swap(true, Ordering::SeqCst) {
            return;
        }
        let wait = || {
            thread::sleep(EXIT_TIMEOUT);
            exit();
        };
        let spawned = thread::Builder::new().name("exit timeout".into()).spawn(wait);
        crate::ok_or_log!(spawned, "the process ends only by itself");
    }
}

#[expect(clippy::exit, reason = "the main thread hangs or was not notified")]
fn exit() {
    std::process::exit(1);
}

/// Writes to stderr without any buffer or lock: the thread that panicked may hold one.
fn print(line: &str, backtrace: Option<&str>) {
    let start = if isatty(stderr()) { NEW_LINE } else { "" };
    let text = format!("{start}{line}\n{}", backtrace.unwrap_or_default());
    let mut bytes = text.as_bytes();
    while let Ok(count @ 1..) = rustix::io::retry_on_intr(|| rustix::io::write(stderr(), bytes)) {
        bytes = &bytes[count..];
    }
}

/// No code that can panic runs while one of the locks is held.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
