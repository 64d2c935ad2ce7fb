//! Asks the user to allow the commands of a repository before they run.

use crate::config::{FileCommands, LoadedConfig};
use crate::trust::{Consent, FileTrust, TrustScope, commands_to_run, describe};
use crate::ui::{Confirmed, Terminal};

use super::context::Context;
use super::error::CliError;

/// The commands to run, and the command line that allows them.
pub(super) struct TrustRequest {
    pub(super) commands: Vec<FileCommands>,
    pub(super) allow: String,
}

/// Checks that all commands of the configuration may run. Asks for unknown files on a terminal, and refuses otherwise.
pub(super) fn require(
    context: &Context,
    loaded: &LoadedConfig,
    consent: Consent,
    terminal: &Terminal,
) -> Result<(), CliError> {
    let request = || TrustRequest {
        commands: commands_to_run(loaded, &context.cwd, TrustScope::Command),
        allow: "ralph trust".to_owned(),
    };
    match consent {
        Consent::Given => Ok(()),
        Consent::Required => require_all(context, request(), consent, terminal),
    }
}

/// Like `require`, for the given commands.
pub(super) fn require_all(
    context: &Context,
    request: TrustRequest,
    consent: Consent,
    terminal: &Terminal,
) -> Result<(), CliError> {
    if consent == Consent::Given {
        return Ok(());
    }
    let mut trust = context.trust()?;
    let files = trust.check(request.commands)?;
    let unknown: Vec<FileTrust> = files.into_iter().filter(FileTrust::is_unknown).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    if terminal.can_ask() {
        let question = format!(
            "{}\nAllow these commands? The answer is remembered until the files change.",
            describe(&unknown)
        );
        let answer = terminal
            .confirm(&format!("{question} [y/N] "))
            .map_err(CliError::Output)?;
        if answer == Confirmed::Yes {
            return Ok(trust.allow(&unknown)?);
        }
    }
    Err(CliError::Untrusted {
        files: unknown,
        allow: request.allow,
    })
}

/// Returns whether all commands may run without confirmation.
pub(super) fn is_trusted(
    context: &Context,
    loaded: &LoadedConfig,
    consent: Consent,
) -> Result<bool, CliError> {
    if consent == Consent::Given {
        return Ok(true);
    }
    let found = commands_to_run(loaded, &context.cwd, TrustScope::Command);
    let files = context.trust()?.check(found)?;
    Ok(!files.iter().any(FileTrust::is_unknown))
}
