//! `ralph replay`: shows a recorded run, or raw output, in the front ends of `ralph run`.

use std::path::{Path, PathBuf};

use crate::run::{self, Host, Pace, ReplayEnd, RunError};
use crate::store::{Journal, journal_at};
use crate::ui::tui::{OnEnd, Role, ScreenOptions};
use crate::ui::{FrontEnd, Terminal, Verbosity};

use super::args::ReplayArguments;
use super::capture::{Capture, FrontEndListener};
use super::common::{ignore_broken_pipe, replay_warnings};
use super::error::CliError;
use super::exit::Exit;
use super::run_files::StoredRunFiles;
use super::run_lookup::named_run;

pub(super) fn replay(
    arguments: &ReplayArguments,
    terminal: &Terminal,
    host: &Host,
) -> Result<Exit, CliError> {
    let recorded = recorded_journal(arguments)?;
    let verbosity = match arguments.verbose {
        true => Verbosity::Verbose,
        false => Verbosity::Normal,
    };
    let mut front_end = if arguments.tui {
        viewer_tui(recorded.as_deref(), terminal, host)?
    } else if arguments.json {
        terminal.json_front_end()
    } else {
        terminal.plain_front_end(verbosity)
    };
    match recorded {
        Some(journal) => replay_journal(&journal, arguments, front_end.as_mut(), terminal, host),
        None => {
            let capture = Capture::open(&arguments.what, arguments.transcript.as_deref().unwrap_or("auto"))?;
            if arguments.speed.is_some() {
                return Err(CliError::SpeedWithoutTimes {
                    path: arguments.what.clone(),
                });
            }
            let exit = capture.read(&mut FrontEndListener::new(front_end.as_mut()), terminal)?;
            front_end.finish();
            Ok(exit)
        }
    }
}

/// Creates the TUI for a recorded run.
fn viewer_tui(
    journal: Option<&Path>,
    terminal: &Terminal,
    host: &Host,
) -> Result<Box<dyn FrontEnd>, CliError> {
    if !terminal.supports_tui() {
        return Err(CliError::NoTerminal { what: "--tui" });
    }
    let directory = journal
        .and_then(Path::parent)
        .unwrap_or(Path::new("."))
        .to_owned();
    let files = StoredRunFiles::at(directory, host);
    let open_run_files = Box::new(move |_: &_| Box::new(files.clone()) as Box<_>);
    let tui = terminal.tui(
        ScreenOptions {
            role: Role::Viewer,
            on_end: OnEnd::StayOpen,
            theme: super::front_end::theme_here(host),
        },
        open_run_files,
        super::front_end::terminal_guard(host),
    );
    Ok(Box::new(tui.map_err(CliError::Output)?))
}

/// Returns the journal of the run; `None` for raw output.
fn recorded_journal(arguments: &ReplayArguments) -> Result<Option<PathBuf>, CliError> {
    let what = arguments.what.as_path();
    let journal = match named_run(what)? {
        Some(directory) => journal_at(&directory)?,
        // With a format, a file is always raw output.
        None if arguments.transcript.is_some() && !what.is_dir() => None,
        None => journal_at(what)?,
    };
    if journal.is_some() && arguments.transcript.is_some() {
        return Err(CliError::TranscriptOfRun {
            what: what.display().to_string(),
        });
    }
    Ok(journal)
}

fn replay_journal(
    journal: &Path,
    arguments: &ReplayArguments,
    front_end: &mut dyn FrontEnd,
    terminal: &Terminal,
    host: &Host,
) -> Result<Exit, CliError> {
    let pace = arguments.speed.map_or(Pace::AtOnce, Pace::Times);
    let (end, left_out) = match run::replay(host, Journal::entries(journal)?, pace, front_end) {
        Ok(result) => result,
        Err(RunError::FrontEnd(error)) => return ignore_broken_pipe(error),
        Err(error) => return Err(error.into()),
    };
    if end == ReplayEnd::Finished {
        front_end.finish();
    }
    replay_warnings(&left_out, journal)
        .iter()
        .try_for_each(|warning| terminal.warn(warning))
        .map_err(CliError::Output)?;
    Ok(match end {
        ReplayEnd::Finished | ReplayEnd::Left => Exit::Success,
        ReplayEnd::Interrupted(by) => Exit::from(by),
    })
}
