//! The full-screen terminal UI.
//!
//! `model` folds records into a `TuiState`, `view` holds the user's position in it, and `draw` renders both; all three
//! are pure. `render_loop` is the drawing thread, `input_thread` the input thread, and `tty` the terminal. Keys become
//! `Command`s, which the run applies.

mod agent_screen;
mod clipboard;
mod decode;
mod document;
mod draw;
mod export;
mod fallback;
mod guard;
mod input_thread;
mod keys;
mod layout;
mod line_editor;
mod list_screen;
mod loaded_files;
mod model;
mod patch;
mod render_loop;
mod run_files;
mod tab;
#[cfg(test)]
mod tests;
mod text;
mod theme;
mod tty;
mod view;

pub use guard::{CLEAN_EXIT, GUARD_ARGUMENT, run_guard_if_requested};
pub use list_screen::{ListEvent, ListPage, ListScreen};
pub use run_files::{AttemptId, OpenRunFiles, RunFiles};
pub use theme::ThemeChoice;
pub use tty::{RESTORE_TERMINAL, TerminalGuard};
pub use view::Role;

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use jiff::Timestamp;

use self::fallback::Fallback;
use self::input_thread::InputThread;
use self::loaded_files::LoadedFiles;
use self::model::TuiState;
use self::render_loop::{RenderLoop, RenderMsg, SharedState};
use self::theme::{ColorMode, Theme};
use self::tty::{OriginalModes, Tty};
use self::view::View;
use super::{FrontEnd, OnClose, Plain, PlainOptions, UiHost, Verbosity};
use crate::event::{CommandSender, Record, Sink};
use crate::failpoint;
use crate::panic_hook::{PanicScope, Severity};

/// Whether the screen closes when the run ends while the user follows the live end of the transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnEnd {
    Close,
    StayOpen,
}

/// How the TUI shows a run.
#[derive(Debug, Clone, Copy)]
pub struct ScreenOptions {
    pub role: Role,
    pub on_end: OnEnd,
    pub theme: ThemeChoice,
}

pub struct TuiOptions {
    pub color: bool,
    pub screen: ScreenOptions,
    /// Columns of the report that is printed on the main screen afterwards.
    pub width: u16,
    pub open_run_files: OpenRunFiles,
    pub guard: Option<TerminalGuard>,
    pub host: UiHost,
}

/// A front end that draws on the whole terminal.
pub struct Tui {
    shared: Arc<SharedState>,
    to_renderer: Sender<RenderMsg>,
    renderer: Option<JoinHandle<()>>,
    input: Option<InputThread>,
    /// Disconnects when the render thread ends.
    done: Receiver<()>,
    role: Role,
    /// Written to the main screen afterwards.
    report: Option<Plain<ReportBuffer>>,
    report_buffer: ReportBuffer,
    fallback: Fallback,
    /// Restores the terminal if the render thread hangs.
    modes: OriginalModes,
    host: UiHost,
}

/// Limit for the render thread to end. A terminal that accepts no output blocks it forever.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);
/// Poll interval while waiting for the user to close the screen.
const CLOSE_POLL: Duration = Duration::from_secs(1);
/// Tick interval while the displayed clock differs from the system clock, as in a replay.
const CLOCK_SYNC: Duration = Duration::from_millis(500);

impl Tui {
    /// Takes over the terminal and starts the render and input threads.
    pub fn open(options: TuiOptions) -> io::Result<Self> {
        let host = options.host;
        let shared = Arc::new(SharedState {
            state: Mutex::new(TuiState::new(crate::ui::local_time_zone())),
            dirty: AtomicBool::new(false),
            shutdown_requested: Arc::default(),
            broken: AtomicBool::new(false),
            offset: AtomicI64::new(0),
        });
        let for_hook = Arc::clone(&shared);
        let tty = Tty::take_over(options.guard, &host.panics, move |severity| {
            // Only the render thread's panic is recoverable.
            if severity == Severity::Recoverable {
                for_hook.broken.store(true, Ordering::SeqCst);
            }
        })?;
        let modes = tty.modes();
        let (to_renderer, messages) = mpsc::channel();
        let (finished, done) = mpsc::channel();
        let input = InputThread::start(to_renderer.clone(), &shared.shutdown_requested, &host)?;
        let report_buffer = ReportBuffer::default();
        let (lines, report) = plain_options(options.color, options.width);
        let role = options.screen.role;
        let panic_flag = PanicFlag(Arc::clone(&shared));
        // Without the screen that it draws, a run continues with plain output.
        let (severity, name) = match role {
            Role::Driver => (Severity::Recoverable, "screen"),
            Role::Viewer => (Severity::Fatal, "viewer"),
        };
        let parts = RendererParts {
            shared: Arc::clone(&shared),
            tty,
            screen: options.screen,
            color: options.color,
            open_run_files: options.open_run_files,
            panics: host.panics.clone(),
        };
        let render = move || {
            // Both are dropped when the thread ends, even by a panic, in reverse order: the flag is set before `done`
            // disconnects.
            let _finished = finished;
            let _panic_flag = panic_flag;
            parts.into_loop().run(&messages);
        };
        let renderer = host.panics.spawn_as(severity, name, render)?;
        Ok(Self {
            shared,
            to_renderer,
            renderer: Some(renderer),
            input: Some(input),
            done,
            role,
            report: (role == Role::Driver).then(|| Plain::new(report_buffer.clone(), report)),
            report_buffer,
            fallback: Fallback::new(lines, host.stdout.clone()),
            modes,
            host,
        })
    }

    /// Waits until the screen is closed. Returns false if that takes longer than `timeout`.
    pub fn wait_until_closed(&self, timeout: Duration) -> bool {
        self.done.recv_timeout(timeout) == Err(RecvTimeoutError::Disconnected)
    }

    /// Shows that the process driving the run died, unless the run has ended.
    pub fn mark_died(&self) {
        self.change(TuiState::mark_died);
    }

    fn change(&self, update: impl FnOnce(&mut TuiState)) {
        update(&mut self.shared.state.lock().unwrap_or_else(PoisonError::into_inner));
        // At most one `Changed` message is queued until the render thread takes its next snapshot.
        if !self.shared.dirty.swap(true, Ordering::SeqCst) {
            // Sending fails once the screen is closed.
            let _ = self.to_renderer.send(RenderMsg::Changed);
        }
    }

    /// Restores the terminal. Returns false if it accepts no output.
    fn close(&mut self) -> bool {
        let _ = self.to_renderer.send(RenderMsg::Shutdown);
        self.input = None;
        let Some(renderer) = self.renderer.take() else {
            return true;
        };
        if !self.wait_until_closed(SHUTDOWN_TIMEOUT) {
            self.modes.restore();
            return false;
        }
        // The panic hook has already reported a panic.
        let _ = renderer.join();
        true
    }

    fn is_broken(&self) -> bool {
        self.shared.broken.load(Ordering::SeqCst)
    }
}

impl Sink for Tui {
    fn accept(&mut self, record: &Record) -> io::Result<()> {
        self.fallback.remember(record);
        if self.is_broken() && self.role == Role::Driver {
            self.report = None;
            return self.fallback.accept(record);
        }
        if let Some(report) = self
            .report
            .as_mut()
            .filter(|report| report.interest().includes(&record.event))
        {
            report.accept(record)?;
        }
        self.change(|state| {
            if state.is_working() {
                failpoint!(self.host.panics, TuiState);
            }
            state.apply(record);
        });
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.fallback.flush()
    }
}

impl FrontEnd for Tui {
    /// Longer than `finish` takes after a signal.
    fn shutdown_grace(&self) -> Duration {
        Duration::from_secs(10)
    }

    fn tick(&mut self, now: Timestamp) -> io::Result<()> {
        let offset = now.duration_since(Timestamp::now()).as_millis();
        let offset = i64::try_from(offset).unwrap_or_default();
        self.shared.offset.store(offset, Ordering::Relaxed);
        self.fallback.tick(now)
    }

    fn next_tick(&self) -> Option<Duration> {
        let clock_differs = self.shared.offset.load(Ordering::Relaxed).abs() > 5000;
        self.fallback.next_tick().or(clock_differs.then_some(CLOCK_SYNC))
    }

    fn backfill(&mut self, record: &Record) {
        self.change(|state| state.backfill(record));
    }

    fn set_commands(&mut self, commands: CommandSender) -> super::KeyboardUse {
        // Sending fails once the screen is closed.
        let _ = self.to_renderer.send(RenderMsg::SetCommands(commands));
        super::KeyboardUse::Taken
    }

    fn on_close(&mut self, on_close: OnClose) {
        // Sending fails once the screen is closed.
        let _ = self.to_renderer.send(RenderMsg::SetOnClose(on_close));
    }

    /// Keeps the screen open for a user who is reading. A signal closes it, even if the terminal accepts no output.
    fn finish(&mut self) {
        self.mark_died();
        let mut polls_after_signal = 2;
        if self.to_renderer.send(RenderMsg::RecordsEnded).is_ok() {
            while polls_after_signal > 0 && !self.wait_until_closed(CLOSE_POLL) {
                polls_after_signal -= u8::from(self.shared.shutdown_requested.load(Ordering::SeqCst));
            }
        }
        self.close();
    }
}

impl Drop for Tui {
    fn drop(&mut self) {
        let writable = self.close();
        self.report = None;
        let text = std::mem::take(&mut *self.report_buffer.lock());
        if writable && !self.is_broken() {
            // Errors are dropped: this is the last output, and `drop` cannot return them.
            let _ = io::stdout().write_all(&text);
            let _ = io::stdout().flush();
        }
    }
}

/// What the render thread needs. It creates the rest itself, because a view cannot change threads.
struct RendererParts {
    shared: Arc<SharedState>,
    tty: Tty,
    screen: ScreenOptions,
    color: bool,
    open_run_files: OpenRunFiles,
    panics: PanicScope,
}

impl RendererParts {
    fn into_loop(self) -> RenderLoop {
        let ScreenOptions { role, on_end, theme } = self.screen;
        let colors = Theme::new(ColorMode::of(self.color)).on(theme.background());
        RenderLoop {
            shared: self.shared,
            tty: self.tty,
            view: View::new(colors, role),
            files: LoadedFiles::default(),
            open_run_files: self.open_run_files,
            run_files: None,
            commands: None,
            on_close: None,
            on_end,
            // Without colors, the background does not matter.
            theme: if self.color { theme } else { ThemeChoice::Dark },
            records_ended: false,
            panics: self.panics,
        }
    }
}

/// The options of the fallback, and of the report on the main screen.
fn plain_options(color: bool, width: u16) -> (PlainOptions, PlainOptions) {
    let lines = PlainOptions {
        color,
        live: true,
        width,
        verbosity: Verbosity::Normal,
    };
    let report = PlainOptions {
        live: false,
        verbosity: Verbosity::Quiet,
        ..lines
    };
    (lines, report)
}

/// Marks the screen as broken when the render thread panics.
struct PanicFlag(Arc<SharedState>);

impl Drop for PanicFlag {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.broken.store(true, Ordering::SeqCst);
        }
    }
}

/// Report bytes, buffered until the terminal is restored.
#[derive(Clone, Default)]
struct ReportBuffer(Arc<Mutex<Vec<u8>>>);

impl ReportBuffer {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for ReportBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
