//! `ralph plan`: checks and runs a list of tasks, and controls it while it runs.

mod check;
mod control;
mod run;
mod task_run;

use crate::run::Host;
use crate::ui::Terminal;

use super::args::{PlanArguments, PlanCommand};
use super::error::CliError;
use super::exit::Exit;

pub(super) fn plan(arguments: &PlanArguments, terminal: &Terminal, host: &Host) -> Result<Exit, CliError> {
    match &arguments.command {
        PlanCommand::Check(arguments) => check::check(arguments, terminal, host),
        PlanCommand::Run(arguments) => run::run(arguments, terminal, host),
        PlanCommand::Status(arguments) => control::status(arguments, terminal),
        PlanCommand::Tell(arguments) => control::tell(arguments, terminal),
        PlanCommand::Retry(arguments) => control::retry(arguments, terminal),
        PlanCommand::Skip(arguments) => control::skip(arguments, terminal),
        PlanCommand::Stop(arguments) => control::stop(arguments, terminal),
    }
}
