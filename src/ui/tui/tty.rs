//! The real terminal: taken over, and always given back: at the end, on an error, on a panic. After `kill -9` nobody
//! is left to do it; the command `reset` does.

use std::io::{self, Stdout, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use crossterm::{cursor, execute};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

/// The wheel as arrow keys, which terminals do by themselves in this mode: no mouse is captured, and selecting text
/// with it works as everywhere. What was set before is put back.
const WHEEL_ON: &[u8] = b"\x1b[?1007s\x1b[?1007h";
const WHEEL_BACK: &[u8] = b"\x1b[?1007r";

static TAKEN: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();

/// The terminal while it is ours.
pub(super) struct Tty {
    pub(super) terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Tty {
    pub(super) fn take() -> io::Result<Self> {
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                give_back();
                before(panic);
            }));
        });
        enable_raw_mode()?;
        TAKEN.store(true, Ordering::SeqCst);
        let mut stdout = io::stdout();
        let prepared = execute!(stdout, EnterAlternateScreen, cursor::Hide, EnableBracketedPaste)
            .and_then(|()| stdout.write_all(WHEEL_ON))
            .and_then(|()| Terminal::new(CrosstermBackend::new(stdout)));
        match prepared {
            Ok(terminal) => Ok(Self { terminal }),
            Err(error) => {
                give_back();
                Err(error)
            }
        }
    }

    /// Writes a sequence of our own making.
    pub(super) fn send(&mut self, sequence: &str) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(sequence.as_bytes())?;
        stdout.flush()
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        give_back();
    }
}

/// Puts the terminal back as it was found. Harmless when that was done already.
fn give_back() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut stdout = io::stdout();
    // A terminal that takes no more text cannot be helped.
    let _ = stdout.write_all(WHEEL_BACK);
    let _ = execute!(stdout, DisableBracketedPaste, LeaveAlternateScreen, cursor::Show);
    let _ = disable_raw_mode();
}
