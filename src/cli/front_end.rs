//! Chooses the front end of a run: TUI, plain text or JSON.

use std::fs::File;
use std::path::Path;

use crate::config::{PartialSettings, Settings, ThemeName};
use crate::process::ExitWatchdog;
use crate::run::{FrontEnds, Host, TraceExport, TraceExportError};
use crate::ui::tui::{self, OnEnd, Role, ScreenOptions, TerminalGuard, ThemeChoice};
use crate::ui::{FrontEnd, Terminal, Verbosity};

use super::args::{DisplayArguments, TuiArguments};
use super::context::Context;
use super::error::CliError;
use super::run_files::StoredRunFiles;

/// Whether to use the TUI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TuiChoice {
    Always,
    /// If stdin and stdout are a terminal.
    Auto,
    Never,
}

impl TuiChoice {
    pub(super) fn of(tui: bool, no_tui: bool) -> Self {
        match (tui, no_tui) {
            (true, _) => Self::Always,
            (false, true) => Self::Never,
            (false, false) => Self::Auto,
        }
    }

    /// Turns `Auto` into `Never` if plain output was requested.
    pub(super) fn unless(self, plain: bool) -> Self {
        match self {
            Self::Auto if plain => Self::Never,
            choice => choice,
        }
    }

    /// Returns whether to use the TUI; an error if it is required but there is no terminal.
    pub(super) fn use_tui(self, terminal: &Terminal) -> Result<bool, CliError> {
        match self {
            Self::Never => Ok(false),
            Self::Auto => Ok(terminal.supports_tui()),
            Self::Always if terminal.supports_tui() => Ok(true),
            Self::Always => Err(CliError::NoTerminal { what: "--tui" }),
        }
    }
}

/// Whether the flags ask for the TUI; an error if they require it and there is no terminal.
pub(super) fn wants_tui(show: &DisplayArguments, terminal: &Terminal) -> Result<bool, CliError> {
    let TuiArguments { tui, no_tui } = show.screen;
    let is_plain = show.json_on_stdout() || show.quiet || show.verbose;
    TuiChoice::of(tui, no_tui).unless(is_plain).use_tui(terminal)
}

/// Creates the requested front ends.
pub(super) fn front_ends_for(
    show: &DisplayArguments,
    settings: &Settings,
    host: &Host,
    terminal: &Terminal,
) -> Result<FrontEnds, CliError> {
    let verbosity = match (show.quiet, show.verbose) {
        (true, _) => Verbosity::Quiet,
        (false, true) => Verbosity::Verbose,
        (false, false) => Verbosity::Normal,
    };
    let record_file = show
        .record_file()
        .map(|path| create_record_file(path, terminal))
        .transpose()?;
    let visible = if wants_tui(show, terminal)? {
        driver_tui(OnEnd::Close, theme_of(settings), terminal, host)?
    } else if show.json_on_stdout() {
        terminal.json_front_end()
    } else {
        terminal.plain_front_end(verbosity)
    };
    let traces = trace_export().unwrap_or_else(|error| {
        // Traces are an addition: the run does not depend on them.
        let _ = terminal.warn(&error.to_string());
        None
    });
    Ok(FrontEnds {
        visible,
        record_file,
        traces,
    })
}

/// The export of traces that the environment configures.
pub(super) fn trace_export() -> Result<Option<Box<dyn FrontEnd>>, TraceExportError> {
    let export = TraceExport::from_env(|name| std::env::var(name).ok())?;
    Ok(export.map(|export| Box::new(export) as Box<dyn FrontEnd>))
}

fn create_record_file(path: &Path, terminal: &Terminal) -> Result<Box<dyn FrontEnd>, CliError> {
    let file = File::create(path).map_err(|source| CliError::Unwritable {
        path: path.to_owned(),
        source,
    })?;
    Ok(terminal.record_file(file))
}

fn theme_of(settings: &Settings) -> ThemeChoice {
    match settings.ui.theme {
        ThemeName::Auto => ThemeChoice::Auto,
        ThemeName::Dark => ThemeChoice::Dark,
        ThemeName::Light => ThemeChoice::Light,
    }
}

/// The theme that is configured here. A configuration with errors does not prevent looking at a run.
pub(super) fn theme_here(host: &Host) -> ThemeChoice {
    let loaded = Context::here(host).and_then(|context| context.load(PartialSettings::default(), None));
    loaded.map_or(ThemeChoice::Auto, |loaded| theme_of(&loaded.settings))
}

/// Creates the TUI for a run that this process drives.
pub(super) fn driver_tui(
    on_end: OnEnd,
    theme: ThemeChoice,
    terminal: &Terminal,
    host: &Host,
) -> Result<Box<dyn FrontEnd>, CliError> {
    let files = StoredRunFiles::of_header(host);
    let screen = ScreenOptions {
        role: Role::Driver,
        on_end,
        theme,
    };
    let tui = terminal.tui(screen, files, terminal_guard(host));
    Ok(Box::new(tui.map_err(CliError::Output)?))
}

/// Starts the watchdog that restores the terminal if ralph is killed.
pub(super) fn terminal_guard(host: &Host) -> Option<TerminalGuard> {
    let watchdog = ExitWatchdog::start(
        host.supervisors(),
        tui::GUARD_ARGUMENT,
        tui::RESTORE_TERMINAL,
        tui::CLEAN_EXIT,
    )?;
    Some(Box::new(watchdog))
}
