//! Switches the user's terminal to raw mode for an interactive agent, and restores it on every exit path, including
//! panics.

use std::io;
use std::os::fd::OwnedFd;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use crate::panic_hook::{CleanupGuard, PanicScope};

/// Rows and columns if the terminal does not report its size.
const DEFAULT_SIZE: (u16, u16) = (24, 80);

/// A terminal in raw mode. Dropping it restores the original settings.
#[derive(Debug)]
pub struct RawMode {
    terminal: OwnedFd,
    original: Termios,
    _restore_on_panic: CleanupGuard,
}

impl RawMode {
    /// Saves the current settings and enables raw mode.
    pub fn enable(terminal: OwnedFd, panics: &PanicScope) -> io::Result<Self> {
        let original = tcgetattr(&terminal)?;
        let raw_mode = Self {
            _restore_on_panic: restore_on_panic(terminal.try_clone()?, original.clone(), panics),
            terminal,
            original,
        };
        raw_mode.resume()?;
        Ok(raw_mode)
    }

    /// Enables raw mode again, after `suspend` or after another program changed the settings.
    pub fn resume(&self) -> io::Result<()> {
        let mut raw = self.original.clone();
        raw.make_raw();
        Ok(tcsetattr(&self.terminal, OptionalActions::Drain, &raw)?)
    }

    /// Restores the original settings. Discards unread input, because it was typed for the agent.
    pub fn suspend(&self) {
        let restored = tcsetattr(&self.terminal, OptionalActions::Flush, &self.original);
        crate::ok_or_log!(restored, "cannot restore the terminal");
    }

    /// Rows and columns.
    pub fn size(&self) -> (u16, u16) {
        let size = tcgetwinsize(&self.terminal).ok();
        size.map(|size| (size.ws_row, size.ws_col))
            .filter(|(rows, columns)| *rows > 0 && *columns > 0)
            .unwrap_or(DEFAULT_SIZE)
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        self.suspend();
    }
}

/// Restores the terminal in the panic hook, because the panic message is printed before anything is dropped.
fn restore_on_panic(terminal: OwnedFd, original: Termios, panics: &PanicScope) -> CleanupGuard {
    panics.before_report(move |_| {
        let _ = tcsetattr(&terminal, OptionalActions::Now, &original);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::panic_hook::AfterPanic;
    use rustix::pty::{OpenptFlags, openpt, unlockpt};
    use rustix::termios::LocalModes;

    fn terminal() -> (OwnedFd, OwnedFd) {
        let parent = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        unlockpt(&parent).unwrap();
        let name = rustix::pty::ptsname(&parent, Vec::new()).unwrap();
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
        let child = rustix::fs::open(name, flags, rustix::fs::Mode::empty()).unwrap();
        (parent, child)
    }

    /// All settings that `stty -a` shows.
    fn settings(terminal: &OwnedFd) -> String {
        format!("{:?}", tcgetattr(terminal).unwrap())
    }

    #[test]
    fn raw_mode_is_restored_on_suspend_drop_and_panic() {
        let (_parent, terminal) = terminal();
        let before = settings(&terminal);
        let panics = PanicScope::install(AfterPanic::KeepProcess);
        let raw_mode = RawMode::enable(terminal.try_clone().unwrap(), &panics).unwrap();
        assert!(
            !tcgetattr(&terminal)
                .unwrap()
                .local_modes
                .contains(LocalModes::ICANON)
        );
        raw_mode.suspend();
        assert_eq!(settings(&terminal), before);
        raw_mode.resume().unwrap();
        assert_ne!(settings(&terminal), before);
        drop(raw_mode);
        assert_eq!(settings(&terminal), before);

        let raw_mode = RawMode::enable(terminal.try_clone().unwrap(), &panics).unwrap();
        let thread = panics.spawn("panicking", || panic!("for the test")).unwrap();
        assert!(thread.join().is_err());
        assert_eq!(settings(&terminal), before);
        drop(raw_mode);
    }
}
