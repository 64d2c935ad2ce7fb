//! Takes over the real terminal and restores it: at the end, on an error, on a panic, and, through the guard process,
//! after `kill -9`.

use std::io::{self, BufWriter, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, kill_current_process_group};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use crate::panic_hook::{CleanupGuard, PanicScope, Severity};

/// Enters the alternate screen, hides the cursor, enables bracketed paste, and saves and enables alternate scroll, which
/// turns the mouse wheel into arrow keys. The mouse is not captured, so selecting text works as usual.
const TAKE_OVER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[?1007s\x1b[?1007h";
/// The modes to set again after a resize or a stop.
const REAPPLY: &[u8] = b"\x1b[?25l\x1b[?2004h\x1b[?1007h";
/// Undoes `TAKE_OVER`.
pub const RESTORE_TERMINAL: &str = "\x1b[?1007r\x1b[?2004l\x1b[0m\x1b[?1049l\x1b[?25h";
/// Limit for waiting until the terminal accepts output.
const WRITE_TIMEOUT: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};
const STOP_DELAY: Duration = Duration::from_millis(100);
const BUFFER_BYTES: usize = 64 * 1024;
const DEFAULT_SIZE: Rect = Rect::new(0, 0, 80, 24);

/// Restores the terminal if ralph is killed before this value is dropped.
pub type TerminalGuard = Box<dyn Send>;

/// The original modes of the terminal, while ralph has taken it over. Clones share them.
#[derive(Clone, Default)]
pub(super) struct OriginalModes(Arc<Mutex<Option<Termios>>>);

/// The terminal while ralph has taken it over.
pub(super) struct Tty {
    pub(super) terminal: Terminal<CrosstermBackend<BufWriter<TtyWriter>>>,
    modes: OriginalModes,
    _restore_on_panic: CleanupGuard,
    _guard: Option<TerminalGuard>,
}

impl Tty {
    /// Takes over the terminal. When a thread panics, restores it and calls `on_panic`, before the panic is reported.
    pub(super) fn take_over(
        guard: Option<TerminalGuard>,
        panics: &PanicScope,
        on_panic: impl Fn(Severity) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let modes = OriginalModes::default();
        let for_hook = modes.clone();
        let restore_on_panic = panics.before_report(move |severity| {
            for_hook.restore();
            on_panic(severity);
        });
        let before = tcgetattr(rustix::stdio::stdin())?;
        *modes.lock() = Some(before.clone());
        let mut writer = TtyWriter(modes.clone());
        let opened = set_raw(&before)
            .and_then(|()| writer.write_all(TAKE_OVER))
            .and_then(|()| {
                let backend = CrosstermBackend::new(BufWriter::with_capacity(BUFFER_BYTES, writer));
                let viewport = Viewport::Fixed(size());
                Terminal::with_options(backend, TerminalOptions { viewport })
            });
        match opened {
            Ok(terminal) => Ok(Self {
                terminal,
                modes,
                _restore_on_panic: restore_on_panic,
                _guard: guard,
            }),
            Err(error) => {
                modes.restore();
                Err(error)
            }
        }
    }

    /// Adapts to the window size, sets the modes again in case a shell changed them, and redraws everything.
    pub(super) fn resize(&mut self) -> io::Result<()> {
        if let Some(before) = &*self.modes.lock() {
            set_raw(before)?;
        }
        self.writer().write_all(REAPPLY)?;
        self.terminal.resize(size())
    }

    /// Gives the terminal back and stops this process group, as Ctrl-Z does in a shell. Returns after it was continued.
    pub(super) fn suspend(&mut self) -> io::Result<()> {
        let Some(before) = self.modes.lock().clone() else {
            return Ok(());
        };
        self.writer().write_all(RESTORE_TERMINAL.as_bytes())?;
        tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &before)?;
        let stopped = kill_current_process_group(Signal::TSTP);
        crate::ok_or_log!(stopped, "cannot stop the process group");
        // The signal stops all threads within this time. Without a shell that would continue the process, the system
        // ignores it.
        std::thread::sleep(STOP_DELAY);
        set_raw(&before)?;
        self.writer().write_all(TAKE_OVER)?;
        self.terminal.resize(size())
    }

    /// Asks the terminal for the color of its background. Terminals that do not know the query ignore it.
    pub(super) fn ask_for_background(&mut self) -> io::Result<()> {
        self.send("\x1b]11;?\x07")
    }

    /// Writes an escape sequence.
    pub(super) fn send(&mut self, sequence: &str) -> io::Result<()> {
        self.writer().write_all(sequence.as_bytes())
    }

    /// The handle that restores the terminal if the render thread does not.
    pub(super) fn modes(&self) -> OriginalModes {
        self.modes.clone()
    }

    fn writer(&self) -> TtyWriter {
        TtyWriter(self.modes.clone())
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        self.modes.restore();
    }
}

impl OriginalModes {
    /// Restores the terminal. Does nothing if that was already done.
    pub(super) fn restore(&self) {
        let Some(before) = self.lock().take() else {
            return;
        };
        // Do not block on a terminal that accepts no output.
        if wait_until_writable() {
            crate::ok_or_log!(
                write_all(RESTORE_TERMINAL.as_bytes()),
                "cannot restore the screen"
            );
        }
        let restored = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &before);
        crate::ok_or_log!(restored, "cannot restore the terminal");
    }

    fn lock(&self) -> MutexGuard<'_, Option<Termios>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn set_raw(before: &Termios) -> io::Result<()> {
    let mut raw = before.clone();
    raw.make_raw();
    Ok(tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &raw)?)
}

fn size() -> Rect {
    let size = tcgetwinsize(rustix::stdio::stdout()).ok();
    size.filter(|size| size.ws_col > 0 && size.ws_row > 0)
        .map_or(DEFAULT_SIZE, |size| Rect::new(0, 0, size.ws_col, size.ws_row))
}

fn wait_until_writable() -> bool {
    let mut fds = [PollFd::from_borrowed_fd(rustix::stdio::stdout(), PollFlags::OUT)];
    poll(&mut fds, Some(&WRITE_TIMEOUT)).is_ok_and(|ready| ready > 0)
}

fn write_all(mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(rustix::stdio::stdout(), bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(rustix::io::Errno::INTR) => {}
            // Another process that shares the terminal has made it non-blocking.
            Err(rustix::io::Errno::AGAIN) => {
                wait_until_writable();
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Standard output while ralph has the terminal. Discards output after the terminal was restored.
pub(super) struct TtyWriter(OriginalModes);

impl Write for TtyWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.lock().is_some() {
            write_all(bytes)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
