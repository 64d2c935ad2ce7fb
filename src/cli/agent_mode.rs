//! Interactive or autonomous mode: checks whether interactive mode is possible and adapts the agent.

use std::io::IsTerminal;

use crate::agent::ResolvedAgent;
use crate::config::{Mode, Settings};
use crate::policy::Session;
use crate::ui::Terminal;

use super::args::{DisplayArguments, TuiArguments};
use super::error::CliError;

/// Falls back to autonomous mode, with a warning, if there is no terminal for the agent's TUI.
pub(super) fn fall_back_to_autonomous(
    settings: &mut Settings,
    show: &DisplayArguments,
    terminal: &Terminal,
) -> Result<(), CliError> {
    let reason = match settings.cli.default_mode {
        Mode::Autonomous => None,
        Mode::Interactive if show.json_on_stdout() => Some("--json uses stdout"),
        Mode::Interactive if !std::io::stdin().is_terminal() => Some("stdin is not a terminal"),
        Mode::Interactive if !std::io::stdout().is_terminal() => Some("stdout is not a terminal"),
        Mode::Interactive => None,
    };
    if let Some(reason) = reason {
        settings.cli.default_mode = Mode::Autonomous;
        let text = format!("interactive mode is not available: {reason}; running autonomously");
        terminal.warn(&text).map_err(CliError::Output)?;
    }
    Ok(())
}

/// Forces plain output in interactive mode, where the agent's TUI uses the terminal during iterations.
pub(super) fn force_line_output(settings: &Settings, mut show: DisplayArguments) -> DisplayArguments {
    if settings.cli.default_mode == Mode::Interactive {
        show.quiet = false;
        show.screen = TuiArguments {
            tui: false,
            no_tui: true,
        };
    }
    show
}

/// Adapts the agent to the configured mode.
pub(super) fn agent_in_mode(agent: ResolvedAgent, settings: &Settings) -> Result<ResolvedAgent, CliError> {
    match settings.cli.default_mode {
        Mode::Autonomous => Ok(agent),
        Mode::Interactive if settings.session == Session::Continue => Err(CliError::SessionInInteractiveMode),
        Mode::Interactive => {
            let mut agent = agent.into_interactive(settings, &|name| std::env::var_os(name))?;
            if settings
                .cli
                .transcript
                .as_deref()
                .is_some_and(|name| name != "plain")
            {
                let text = "in interactive mode the transcript is the plain text of the agent's screen";
                agent.warnings.push(text.to_owned());
            }
            if !settings.hats.is_empty() {
                let text = "in interactive mode topics on the agent's screen are not read; \
                            only default_publishes activates another hat";
                agent.warnings.push(text.to_owned());
            }
            Ok(agent)
        }
    }
}
