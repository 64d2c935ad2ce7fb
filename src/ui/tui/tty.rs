//! The real terminal: taken over, and always given back: at the end, on an error, on a panic, and after a `kill -9` by the
//! guard that was posted before.

use std::io::{self, BufWriter, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};

use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use crate::panic_hook;

/// The other screen, no cursor, pasted text marked as such. The wheel as arrow keys, which terminals do by themselves
/// in this mode: no mouse is captured, and selecting text with it works as everywhere. What was set before is put back.
const TAKE: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[?1007s\x1b[?1007h";
const AGAIN: &[u8] = b"\x1b[?25l\x1b[?2004h\x1b[?1007h";
pub const GIVE_BACK: &str = "\x1b[?1007r\x1b[?2004l\x1b[0m\x1b[?1049l\x1b[?25h";
/// A terminal that takes no text for so long is not waited for.
const PATIENCE: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};
const BUFFER: usize = 64 * 1024;
const USUAL: Rect = Rect::new(0, 0, 80, 24);

/// How the terminal was set before; while this is here, the terminal is ours.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);
static HOOK: Once = Once::new();
/// Whoever draws has failed: known before anybody is told, and before it has come down.
static LOST: AtomicBool = AtomicBool::new(false);

/// Somebody who gives the terminal back when we cannot, for as long as this is not dropped.
pub type Guard = Box<dyn Send>;

/// The terminal while it is ours.
pub(super) struct Tty {
    pub(super) terminal: Terminal<CrosstermBackend<BufWriter<Out>>>,
    /// Gives it back when we cannot.
    _guard: Option<Guard>,
}

impl Tty {
    pub(super) fn take(guard: Option<Guard>) -> io::Result<Self> {
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                give_back();
                if std::thread::current().name() == Some(panic_hook::SCREEN) {
                    LOST.store(true, Ordering::SeqCst);
                }
                before(panic);
            }));
        });
        LOST.store(false, Ordering::SeqCst);
        let before = tcgetattr(rustix::stdio::stdin())?;
        *lock() = Some(before.clone());
        let prepared = set_raw(&before)
            .and_then(|()| Out.write_all(TAKE))
            .and_then(|()| {
                let backend = CrosstermBackend::new(BufWriter::with_capacity(BUFFER, Out));
                let viewport = Viewport::Fixed(size());
                Terminal::with_options(backend, TerminalOptions { viewport })
            });
        match prepared {
            Ok(terminal) => Ok(Self {
                terminal,
                _guard: guard,
            }),
            Err(error) => {
                give_back();
                Err(error)
            }
        }
    }

    /// The window may have another size from now on, or a shell had the terminal for a while: all is set and drawn anew.
    pub(super) fn resize(&mut self) -> io::Result<()> {
        if let Some(before) = &*lock() {
            set_raw(before)?;
        }
        Out.write_all(AGAIN)?;
        self.terminal.resize(size())
    }

    /// Writes a sequence of our own making.
    pub(super) fn send(&mut self, sequence: &str) -> io::Result<()> {
        Out.write_all(sequence.as_bytes())
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        give_back();
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
        .map_or(USUAL, |size| Rect::new(0, 0, size.ws_col, size.ws_row))
}

/// Whether the terminal was given back because drawing has failed.
pub(super) fn is_lost() -> bool {
    LOST.load(Ordering::SeqCst)
}

/// Puts the terminal back as it was found. Harmless when that was done already.
pub(super) fn give_back() {
    let Some(before) = lock().take() else {
        return;
    };
    // A terminal that takes no more text cannot be helped.
    if takes_text() {
        let _ = write_all(GIVE_BACK.as_bytes());
    }
    let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &before);
}

fn takes_text() -> bool {
    let mut fds = [PollFd::from_borrowed_fd(rustix::stdio::stdout(), PollFlags::OUT)];
    poll(&mut fds, Some(&PATIENCE)).is_ok_and(|ready| ready > 0)
}

fn write_all(mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(rustix::stdio::stdout(), bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(rustix::io::Errno::INTR) => {}
            // Somebody who shares the terminal has made it so.
            Err(rustix::io::Errno::AGAIN) => {
                takes_text();
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn lock() -> std::sync::MutexGuard<'static, Option<Termios>> {
    BEFORE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Standard output while the terminal is ours. What is left to be drawn when it no longer is, is not drawn.
pub(super) struct Out;

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if lock().is_some() {
            write_all(bytes)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
