//! `ralph fork`: continues a run from the end of an iteration, as a new run in a worktree of its own.

use crate::run::Host;
use crate::ui::Terminal;
use crate::ui::clean::clean;

use super::args::ForkArguments;
use super::context::Context;
use super::error::CliError;
use super::exit::Exit;
use super::fork_setup::{CreatedFork, ForkSource};
use super::resume::resume_in;

pub(super) fn fork(arguments: &ForkArguments, terminal: &Terminal, host: &Host) -> Result<Exit, CliError> {
    let source = ForkSource::find(&arguments.what, host)?;
    let run_arguments = arguments.run.run_arguments();
    let into = arguments
        .into
        .as_deref()
        .map(std::path::absolute)
        .transpose()
        .map_err(CliError::Output)?;
    let fork = source.create(&run_arguments.overrides()?, into.as_deref(), host)?;
    if !arguments.run.show.json_on_stdout() {
        terminal.print(&text(&source, &fork)).map_err(CliError::Output)?;
    }
    if arguments.no_run {
        return Ok(Exit::Success);
    }
    let context = Context {
        cwd: fork.place.workspace.clone(),
        host: host.clone(),
        state: None,
    };
    resume_in(&context, &run_arguments, Some(&fork.run), terminal)
}

fn text(source: &ForkSource, fork: &CreatedFork) -> String {
    let branch = fork.place.branch.as_ref();
    let branch = branch
        .map(|branch| format!("\n  branch     {branch}"))
        .unwrap_or_default();
    format!(
        "Forked {}@{} as run {}.\n  directory  {}{branch}\n",
        clean(&source.run_id()),
        source.name.iteration,
        fork.run,
        clean(&fork.place.workspace.to_string_lossy()),
    )
}
