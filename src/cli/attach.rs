//! `ralph attach`: shows a run of this directory in the TUI.

use std::path::Path;

use crate::run::Host;
use crate::store::LATEST;
use crate::ui::Terminal;

use super::args::AttachArguments;
use super::error::CliError;
use super::exit::Exit;
use super::run_lookup::named_run;
use super::viewer;

pub(super) fn attach(
    arguments: &AttachArguments,
    terminal: &Terminal,
    host: &Host,
) -> Result<Exit, CliError> {
    let what = arguments.run.as_deref().unwrap_or(Path::new(LATEST));
    let path = named_run(what)?.unwrap_or_else(|| what.to_owned());
    viewer::view(&path, terminal, host)
}
