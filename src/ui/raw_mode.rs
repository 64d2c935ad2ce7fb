//! The user's terminal, lent to a program that draws on it: raw while it is lent, so that every key arrives as it is,
//! and exactly as it was before on every way out, a panic included.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::panic;
use std::sync::{Mutex, Once, PoisonError};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// Rows and columns, where a terminal does not know them.
const USUAL: (u16, u16) = (24, 80);

/// A terminal that is lent; dropped, it is given back.
#[derive(Debug)]
pub struct RawMode {
    terminal: OwnedFd,
    before: Termios,
}

impl RawMode {
    /// From now on it is raw.
    pub fn take(terminal: OwnedFd) -> io::Result<Self> {
        let before = tcgetattr(&terminal)?;
        remember(&terminal, &before)?;
        let lent = Self { terminal, before };
        lent.resume()?;
        Ok(lent)
    }

    /// Raw again, after it was given back for a while, or after somebody else has changed it.
    pub fn resume(&self) -> io::Result<()> {
        let mut raw = self.before.clone();
        raw.make_raw();
        Ok(tcsetattr(&self.terminal, OptionalActions::Drain, &raw)?)
    }

    /// As it was before. What was typed and not read is forgotten: it was meant for somebody who is not there any more.
    pub fn suspend(&self) {
        // A terminal that has gone cannot be mended.
        let _ = tcsetattr(&self.terminal, OptionalActions::Flush, &self.before);
    }

    /// Rows and columns.
    pub fn size(&self) -> (u16, u16) {
        let size = tcgetwinsize(&self.terminal).ok();
        size.map(|size| (size.ws_row, size.ws_col))
            .filter(|(rows, columns)| *rows > 0 && *columns > 0)
            .unwrap_or(USUAL)
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        self.suspend();
        *in_case_of_panic() = None;
    }
}

/// A panic's words come before anything is dropped, and must be readable.
fn remember(terminal: impl AsFd, before: &Termios) -> io::Result<()> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if let Some((terminal, before)) = in_case_of_panic().take() {
                let _ = tcsetattr(&terminal, OptionalActions::Now, &before);
            }
            usual(panic);
        }));
    });
    let terminal = terminal.as_fd().try_clone_to_owned()?;
    *in_case_of_panic() = Some((terminal, before.clone()));
    Ok(())
}

fn in_case_of_panic() -> std::sync::MutexGuard<'static, Option<(OwnedFd, Termios)>> {
    static BEFORE: Mutex<Option<(OwnedFd, Termios)>> = Mutex::new(None);
    BEFORE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pty::{OpenptFlags, openpt, unlockpt};
    use rustix::termios::LocalModes;

    fn terminal() -> (OwnedFd, OwnedFd) {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        unlockpt(&ours).unwrap();
        let name = rustix::pty::ptsname(&ours, Vec::new()).unwrap();
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
        let theirs = rustix::fs::open(name, flags, rustix::fs::Mode::empty()).unwrap();
        (ours, theirs)
    }

    /// All that `stty -a` would show.
    fn look(terminal: &OwnedFd) -> String {
        format!("{:?}", tcgetattr(terminal).unwrap())
    }

    #[test]
    fn a_terminal_is_raw_while_it_is_lent_and_afterwards_as_it_was() {
        let (_ours, terminal) = terminal();
        let before = look(&terminal);
        let lent = RawMode::take(terminal.try_clone().unwrap()).unwrap();
        assert!(
            !tcgetattr(&terminal)
                .unwrap()
                .local_modes
                .contains(LocalModes::ICANON)
        );
        lent.suspend();
        assert_eq!(look(&terminal), before);
        lent.resume().unwrap();
        assert_ne!(look(&terminal), before);
        drop(lent);
        assert_eq!(look(&terminal), before);

        // A panic gives it back too, before it says a word. In one test, because there is one terminal to a process.
        let lent = RawMode::take(terminal.try_clone().unwrap()).unwrap();
        let thread = std::thread::spawn(|| panic!("for the test"));
        assert!(thread.join().is_err());
        assert_eq!(look(&terminal), before);
        drop(lent);
    }
}
