//! Claude-compatible wrappers: programs that are called like Claude (`<command> <args…> -p <prompt>`) and print
//! Claude's stream format, usually to run another agent.

use std::path::PathBuf;

use crate::config::{Settings, split_words};

use super::invocation::PromptDelivery;
use super::{AGENTS, AgentError, GENERAL_LIMIT_PHRASES, Probe, PromptQuirk, ResolvedAgent, Terminal};

/// The agent that a wrapper replaces.
pub(super) const CLAUDE: &str = "claude";
/// Default arguments, the same as for Claude. Wrappers ignore arguments that they do not support.
const DEFAULT_ARGS: &[&str] = &[
    "--dangerously-skip-permissions",
    "--output-format",
    "stream-json",
    "--verbose",
];

/// True if the settings configure a wrapper.
pub(super) fn is_configured(settings: &Settings) -> bool {
    settings.cli.claude_command.is_some() || settings.cli.claude_args.is_some()
}

pub(super) fn wrapper_agent(settings: &Settings, probe: &dyn Probe) -> Result<ResolvedAgent, AgentError> {
    let cli = &settings.cli;
    let command = cli.claude_command.as_deref().unwrap_or(CLAUDE);
    let (program, mut args) = locate(command, probe)?;
    match &cli.claude_args {
        None => args.extend(DEFAULT_ARGS.iter().map(ToString::to_string)),
        Some(line) => args.extend(parse_words(line)?),
    }
    let adapter = settings.adapters.get(CLAUDE);
    let model = cli
        .model
        .as_ref()
        .or(adapter.and_then(|adapter| adapter.model.as_ref()));
    args.extend(
        model
            .into_iter()
            .flat_map(|model| ["--model".to_owned(), model.clone()]),
    );
    args.extend(adapter.iter().flat_map(|adapter| adapter.args.iter().cloned()));
    args.extend(cli.extra_args.iter().cloned());
    let name = program
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_else(|| command.to_owned());
    // `claude_command` may also name the real Claude.
    let builtin = AGENTS
        .iter()
        .find(|agent| agent.name == CLAUDE && agent.programs.contains(&name.as_str()));
    let version = builtin.is_none().then(|| format!("by {name}"));
    let terminal = builtin.map_or(Terminal::Pipe, |agent| agent.terminal);
    Ok(ResolvedAgent {
        name: CLAUDE.to_owned(),
        display_name: name,
        program,
        // Shown as `claude by NAME`.
        version,
        format: cli.transcript.clone().unwrap_or_else(|| CLAUDE.to_owned()),
        terminal: if cli.pty_mode { Terminal::Pty } else { terminal },
        auth_hint: builtin.map_or("", |agent| agent.auth_hint).to_owned(),
        limit_phrases: builtin
            .map_or(&[][..], |agent| agent.limit_phrases)
            .iter()
            .chain(GENERAL_LIMIT_PHRASES)
            .copied()
            .collect(),
        environment: Vec::new(),
        filter: None,
        warnings: Vec::new(),
        args,
        usage_flag: None,
        delivery: PromptDelivery::Wrapper,
        resume: None,
        prompt_quirk: PromptQuirk::Nothing,
        prompt_limit: None,
    })
}

/// The program, and its arguments if the command has several words (`npx some-package`).
fn locate(command: &str, probe: &dyn Probe) -> Result<(PathBuf, Vec<String>), AgentError> {
    if let Some(program) = probe.find(&expand_home(command)) {
        return Ok((program, Vec::new()));
    }
    let mut words = parse_words(command)?.into_iter();
    let program = words.next().and_then(|word| probe.find(&expand_home(&word)));
    let program = program.ok_or_else(|| AgentError::WrapperNotFound {
        command: command.to_owned(),
    })?;
    Ok((program, words.collect()))
}

fn parse_words(line: &str) -> Result<Vec<String>, AgentError> {
    split_words(line).map_err(|error| AgentError::WrapperArguments {
        line: line.to_owned(),
        error,
    })
}

/// Expands a leading `~/`, which no shell expands in a configuration file.
fn expand_home(command: &str) -> String {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    match (command.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest).to_string_lossy().into_owned(),
        _ => command.to_owned(),
    }
}
