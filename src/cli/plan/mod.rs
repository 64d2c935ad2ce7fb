//! `ralph plan`: checks a list of tasks.

mod check;

use crate::run::Host;
use crate::ui::Terminal;

use super::args::{PlanArguments, PlanCommand};
use super::error::CliError;
use super::exit::Exit;

pub(super) fn plan(arguments: &PlanArguments, terminal: &Terminal, host: &Host) -> Result<Exit, CliError> {
    match &arguments.command {
        PlanCommand::Check(arguments) => check::check(arguments, terminal, host),
    }
}
