//! Claude-compatible providers: a program that is called as claude is, `<command> <args…> -p <prompt>`, and answers in
//! claude's stream format. Wrappers for other agents are written this way.

use std::path::PathBuf;

use crate::config::{Settings, split_words};

use super::invocation::PromptDelivery;
use super::{AGENTS, AgentError, GENERAL_LIMITS, Probe, PromptQuirk, ResolvedAgent, Terminal};

/// The agent in whose place a provider stands.
pub(super) const CLAUDE: &str = "claude";
/// What claude itself is given, and every wrapper ignores what it does not know.
const USUAL: &[&str] = &[
    "--dangerously-skip-permissions",
    "--output-format",
    "stream-json",
    "--verbose",
];

/// Whether the settings ask for a provider, where the backend leaves room for one.
pub(super) fn is_wanted(settings: &Settings) -> bool {
    settings.cli.claude_command.is_some() || settings.cli.claude_args.is_some()
}

pub(super) fn provider(settings: &Settings, probe: &dyn Probe) -> Result<ResolvedAgent, AgentError> {
    let cli = &settings.cli;
    let command = cli.claude_command.as_deref().unwrap_or(CLAUDE);
    let (program, mut args) = locate(command, probe)?;
    match &cli.claude_args {
        None => args.extend(USUAL.iter().map(ToString::to_string)),
        Some(line) => args.extend(words_of(line)?),
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
    // Claude itself under its own name has its own needs.
    let itself = AGENTS
        .iter()
        .find(|agent| agent.name == CLAUDE && agent.programs.contains(&name.as_str()));
    let version = itself.is_none().then(|| format!("by {name}"));
    let own = itself.map_or(Terminal::Pipe, |agent| agent.terminal);
    Ok(ResolvedAgent {
        name: CLAUDE.to_owned(),
        display_name: name,
        program,
        // Who it really is that stands there.
        version,
        format: cli.transcript.clone().unwrap_or_else(|| CLAUDE.to_owned()),
        terminal: if cli.pty_mode { Terminal::Pty } else { own },
        auth_hint: itself.map_or("", |agent| agent.auth_hint).to_owned(),
        limits: itself
            .map_or(&[][..], |agent| agent.limits)
            .iter()
            .chain(GENERAL_LIMITS)
            .copied()
            .collect(),
        environment: Vec::new(),
        filter: None,
        warnings: Vec::new(),
        args,
        usage_flag: None,
        delivery: PromptDelivery::Provider,
        resume: None,
        misreads: PromptQuirk::Nothing,
        prompt_limit: None,
    })
}

/// The program, and the words that follow it where the command is more than a name (`npx some-package`).
fn locate(command: &str, probe: &dyn Probe) -> Result<(PathBuf, Vec<String>), AgentError> {
    if let Some(program) = probe.find(&expand_home(command)) {
        return Ok((program, Vec::new()));
    }
    let mut words = words_of(command)?.into_iter();
    let program = words.next().and_then(|word| probe.find(&expand_home(&word)));
    let program = program.ok_or_else(|| AgentError::ProviderNotFound {
        command: command.to_owned(),
    })?;
    Ok((program, words.collect()))
}

fn words_of(line: &str) -> Result<Vec<String>, AgentError> {
    split_words(line).map_err(|error| AgentError::ProviderArguments {
        line: line.to_owned(),
        error,
    })
}

/// `~/bin/x`, as people write it in a file that no shell reads.
fn expand_home(command: &str) -> String {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    match (command.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest).to_string_lossy().into_owned(),
        _ => command.to_owned(),
    }
}
