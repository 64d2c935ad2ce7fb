//! Whether somebody sits in front of the agent: what was wished for, and what can be.

use std::io::IsTerminal;

use crate::agent::ResolvedAgent;
use crate::config::{Mode, Session, Settings};
use crate::ui::Terminal;

use super::args::{DisplayArguments, TuiArguments};
use super::error::CliError;

/// Without a terminal to lend, an agent works by itself, and that is said.
pub(super) fn fall_back_to_autonomous(
    settings: &mut Settings,
    show: DisplayArguments,
    terminal: &Terminal,
) -> Result<(), CliError> {
    let obstacle = match settings.cli.default_mode {
        Mode::Autonomous => None,
        Mode::Interactive if show.json => Some("--json has stdout for itself"),
        Mode::Interactive if !std::io::stdin().is_terminal() => Some("stdin is not a terminal"),
        Mode::Interactive if !std::io::stdout().is_terminal() => Some("stdout is not a terminal"),
        Mode::Interactive => None,
    };
    if let Some(obstacle) = obstacle {
        settings.cli.default_mode = Mode::Autonomous;
        let text = format!("interactive mode is not possible: {obstacle}; the agent works by itself");
        terminal.warn(&text).map_err(CliError::Output)?;
    }
    Ok(())
}

/// The terminal is the agent's own: what ralph has to say comes between, line by line, and who is asked must see it.
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

/// The agent as this mode calls it.
pub(super) fn agent_in_mode(agent: ResolvedAgent, settings: &Settings) -> Result<ResolvedAgent, CliError> {
    match settings.cli.default_mode {
        Mode::Autonomous => Ok(agent),
        Mode::Interactive if settings.session == Session::Continue => Err(CliError::SessionInInteractiveMode),
        Mode::Interactive => {
            let mut agent = agent.on_a_screen(settings)?;
            if settings
                .cli
                .transcript
                .as_deref()
                .is_some_and(|name| name != "plain")
            {
                let text =
                    "the transcript of an interactive iteration is the plain text of the agent's screen";
                agent.warnings.push(text.to_owned());
            }
            if !settings.hats.is_empty() {
                let text = "events on an agent's screen are not read: in interactive mode only \
                            default_publishes moves from hat to hat";
                agent.warnings.push(text.to_owned());
            }
            Ok(agent)
        }
    }
}
