//! Which face a run gets: the whole terminal, lines, or JSON.

use std::path::Path;

use crate::process::ExitWatchdog;
use crate::ui::tui::{self, Guard, OnEnd, Role};
use crate::ui::{FrontEnd, Terminal, Verbosity};

use super::args::{DisplayArguments, TuiArguments};
use super::error::CliError;
use super::run_files::StoredRunFiles;

/// Whether the whole terminal is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TuiChoice {
    Always,
    /// Wherever there is one.
    Usually,
    Never,
}

impl TuiChoice {
    pub(super) fn of(tui: bool, no_tui: bool) -> Self {
        match (tui, no_tui) {
            (true, _) => Self::Always,
            (false, true) => Self::Never,
            (false, false) => Self::Usually,
        }
    }

    /// Lines, where they are as good.
    pub(super) fn unless(self, lines: bool) -> Self {
        match self {
            Self::Usually if lines => Self::Never,
            wanted => wanted,
        }
    }

    /// Whether the terminal is taken. It is an error to insist where there is none.
    pub(super) fn is_granted(self, terminal: &Terminal) -> Result<bool, CliError> {
        match self {
            Self::Never => Ok(false),
            Self::Usually => Ok(terminal.can_be_taken()),
            Self::Always if terminal.can_be_taken() => Ok(true),
            Self::Always => Err(CliError::NoTerminal { what: "--tui" }),
        }
    }
}

/// The face that was asked for.
pub(super) fn front_end_for(
    show: DisplayArguments,
    workspace: &Path,
    terminal: &Terminal,
) -> Result<Box<dyn FrontEnd>, CliError> {
    let verbosity = match (show.quiet, show.verbose) {
        (true, _) => Verbosity::Quiet,
        (false, true) => Verbosity::Verbose,
        (false, false) => Verbosity::Normal,
    };
    let TuiArguments { tui, no_tui } = show.screen;
    let wanted = TuiChoice::of(tui, no_tui).unless(show.json || verbosity != Verbosity::Normal);
    if wanted.is_granted(terminal)? {
        driver(workspace, OnEnd::Leave, terminal)
    } else if show.json {
        Ok(terminal.json_face())
    } else {
        Ok(terminal.plain_face(verbosity))
    }
}

/// The whole terminal, for a run of this workspace that we drive.
pub(super) fn driver(
    workspace: &Path,
    on_end: OnEnd,
    terminal: &Terminal,
) -> Result<Box<dyn FrontEnd>, CliError> {
    let index = StoredRunFiles::of_workspace(workspace);
    let tui = terminal.tui(Role::Driver, on_end, index, guard());
    Ok(Box::new(tui.map_err(CliError::Output)?))
}

/// Posted at the terminal as it is now: gives it back even when we are killed.
pub(super) fn guard() -> Option<Guard> {
    let companion = ExitWatchdog::start(tui::GUARD, tui::GIVE_BACK, tui::GOODBYE)?;
    Some(Box::new(companion))
}
