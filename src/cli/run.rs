//! `ralph run`: starts a new run, resumes one, or prints what a run would do.

use crate::run::Host;
use crate::trust::Consent;
use crate::ui::Terminal;

use super::args::RunArguments;
use super::error::CliError;
use super::exit::Exit;
use super::lifeline;
use super::resume;
use super::run_request::RunRequest;

pub(super) fn run(arguments: &RunArguments, terminal: &Terminal, host: &Host) -> Result<Exit, CliError> {
    if arguments.interactive && !terminal.can_ask() {
        return Err(CliError::TerminalRequired);
    }
    if let Some(descriptor) = arguments.supervision.while_open {
        lifeline::watch(descriptor, host).map_err(|source| CliError::Lifeline { descriptor, source })?;
    }
    if let Some(given) = &arguments.resume {
        return resume::resume(arguments, given.as_deref(), terminal, host);
    }
    let request = RunRequest {
        flags: arguments.overrides()?,
        config: arguments.choice.config.as_ref(),
        consent: Consent::of(arguments.choice.trust),
        asking: arguments.asking(),
        run_id: arguments.supervision.run_id.clone(),
        dry_run_mode: arguments.dry_run_mode(),
        show: arguments.show.clone(),
    };
    request.execute(terminal, host)
}
