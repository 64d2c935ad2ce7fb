//! `ralph replay`: a recorded run, or raw output, through the faces that `ralph run` has.

use std::path::{Path, PathBuf};

use crate::run::{self, LeftOut, Pace, ReplayEnd, RunError};
use crate::store::{Journal, LATEST, find_run, journal_at};
use crate::ui::tui::{OnEnd, Role};
use crate::ui::{FrontEnd, Terminal, Verbosity};

use super::args::ReplayArguments;
use super::context::Context;
use super::error::CliError;
use super::exit::Exit;
use super::run_files::StoredRunFiles;
use super::transcript::{Capture, FrontEndListener, ignore_broken_pipe};

pub(super) fn replay(arguments: &ReplayArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let recorded = recorded_journal(arguments)?;
    let verbosity = match arguments.verbose {
        true => Verbosity::Verbose,
        false => Verbosity::Normal,
    };
    let mut front_end = if arguments.tui {
        viewer(recorded.as_deref(), terminal)?
    } else if arguments.json {
        terminal.json_face()
    } else {
        terminal.plain_face(verbosity)
    };
    match recorded {
        Some(journal) => tell(&journal, arguments, front_end.as_mut(), terminal),
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

/// The screen, for what is over already.
fn viewer(journal: Option<&Path>, terminal: &Terminal) -> Result<Box<dyn FrontEnd>, CliError> {
    if !terminal.can_be_taken() {
        return Err(CliError::NoTerminal { what: "--tui" });
    }
    let place = journal
        .and_then(Path::parent)
        .unwrap_or(Path::new("."))
        .to_owned();
    let open_shelf = Box::new(move |_: &_| Box::new(StoredRunFiles::at(place.clone())) as Box<_>);
    let tui = terminal.tui(Role::Viewer, OnEnd::Stay, open_shelf, super::front_end::guard());
    Ok(Box::new(tui.map_err(CliError::Output)?))
}

/// The journal of the run that is meant; none where it is raw output that is meant.
fn recorded_journal(arguments: &ReplayArguments) -> Result<Option<PathBuf>, CliError> {
    let what = arguments.what.as_path();
    let journal = match named_run(what)? {
        Some(directory) => journal_at(&directory)?,
        // A file for which a format is given is raw output, whatever it looks like.
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

/// The directory of a run that is called by its name. What is there as a file is called by its path.
pub(super) fn named_run(what: &Path) -> Result<Option<PathBuf>, CliError> {
    let name = what.to_string_lossy();
    let is_path = name == "-" || name.contains('/') || (name != LATEST && what.exists());
    if is_path {
        return Ok(None);
    }
    Ok(Some(find_run(&Context::here()?.cwd, &name)?))
}

fn tell(
    journal: &Path,
    arguments: &ReplayArguments,
    front_end: &mut dyn FrontEnd,
    terminal: &Terminal,
) -> Result<Exit, CliError> {
    let pace = arguments.speed.map_or(Pace::AtOnce, Pace::Times);
    let (end, left_out) = match run::replay(Journal::entries(journal)?, pace, front_end) {
        Ok(told) => told,
        Err(RunError::FrontEnd(error)) => return ignore_broken_pipe(error),
        Err(error) => return Err(error.into()),
    };
    if end == ReplayEnd::Told {
        front_end.finish();
    }
    warnings(&left_out, journal)
        .iter()
        .try_for_each(|warning| terminal.warn(warning))
        .map_err(CliError::Output)?;
    Ok(match end {
        ReplayEnd::Told | ReplayEnd::Left => Exit::Success,
        ReplayEnd::Interrupted(by) => Exit::from(by),
    })
}

pub(super) fn warnings(left_out: &LeftOut, journal: &Path) -> Vec<String> {
    let mut warnings = Vec::new();
    if left_out.empty {
        warnings.push(format!("{} holds no record", journal.display()));
    }
    if let Some(version) = left_out.later_version {
        warnings.push(format!(
            "the journal was written by a later ralph (format {version}); some of it may be shown wrongly"
        ));
    }
    if left_out.unknown > 0 {
        let kinds: Vec<&str> = left_out.kinds.iter().map(String::as_str).take(10).collect();
        warnings.push(format!(
            "left out {} of a kind that this ralph does not know: {}",
            records(left_out.unknown),
            kinds.join(", ")
        ));
    }
    if left_out.damaged > 0 {
        let damaged = records(left_out.damaged);
        warnings.push(format!(
            "left out {damaged} that cannot be read: the journal is damaged"
        ));
    }
    warnings
}

fn records(count: u64) -> String {
    crate::ui::units::count(count, "record")
}
