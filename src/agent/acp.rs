//! Resolves `backend: acp` and `acp:COMMAND`: an agent that speaks the Agent Client Protocol.

use crate::config::{Settings, split_words};
use crate::event::UsageMeaning;

use super::invocation::{PromptDelivery, environment_of};
use super::{
    ACP, AGENTS, Agent, AgentError, GENERAL_LIMIT_PHRASES, Probe, PromptQuirk, ResolvedAgent, Resume,
    Terminal,
};

/// Resolves the agent. `command` is the part of the backend after `acp:`; without it, `cli.command` and `cli.args` count.
pub(super) fn acp_agent(
    command: Option<&str>,
    settings: &Settings,
    probe: &dyn Probe,
) -> Result<ResolvedAgent, AgentError> {
    let cli = &settings.cli;
    let words = match command {
        Some(line) => split_words(line).map_err(|error| AgentError::AcpArguments {
            line: line.to_owned(),
            error,
        })?,
        None => cli.command.iter().chain(&cli.args).cloned().collect(),
    };
    let mut words = words.into_iter().filter(|word| !word.trim().is_empty());
    let mut name = words.next().ok_or(AgentError::AcpWithoutCommand)?;
    let mut args: Vec<String> = words.collect();
    let row = row_of(&name);
    // A single name of a built-in agent stands for its command.
    if let Some(server) = row.and_then(|row| row.acp).filter(|_| args.is_empty()) {
        name = server.program.to_owned();
        args.extend(server.args.iter().map(ToString::to_string));
    }
    let program = probe.find(&name).ok_or_else(|| AgentError::CustomNotFound {
        command: name.clone(),
    })?;
    let adapter = settings.adapters.get(ACP);
    args.extend(adapter.iter().flat_map(|adapter| adapter.args.iter().cloned()));
    args.extend(cli.extra_args.iter().cloned());
    let file_name = program
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    Ok(ResolvedAgent {
        name: ACP.to_owned(),
        display_name: file_name.unwrap_or(name),
        program,
        version: None,
        format: ACP.to_owned(),
        terminal: Terminal::Pipe,
        auth_hint: row.map_or("", |row| row.auth_hint).to_owned(),
        limit_phrases: row
            .map_or(&[][..], |row| row.limit_phrases)
            .iter()
            .chain(GENERAL_LIMIT_PHRASES)
            .copied()
            .collect(),
        environment: row.map(environment_of).unwrap_or_default(),
        filter: None,
        warnings: warnings(settings),
        resume: Some(Resume::InProtocol),
        args,
        usage_flag: None,
        delivery: PromptDelivery::Acp {
            usage: row
                .and_then(|row| row.acp)
                .map(|server| server.usage)
                .unwrap_or_default(),
        },
        // Agents take a leading slash as one of their commands.
        prompt_quirk: PromptQuirk::FirstSlash,
        prompt_limit: None,
    })
}

/// The row of an agent with this name, or with this program as its server.
fn row_of(command: &str) -> Option<&'static Agent> {
    let file_name = command.rsplit('/').next().unwrap_or(command);
    let serves = |agent: &&Agent| agent.acp.is_some_and(|server| server.program == file_name);
    AGENTS.iter().find(serves).or_else(|| {
        AGENTS
            .iter()
            .find(|agent| agent.acp.is_some() && agent.name == command)
    })
}

fn warnings(settings: &Settings) -> Vec<String> {
    let cli = &settings.cli;
    let mut warnings = Vec::new();
    if cli.transcript.as_deref().is_some_and(|format| format != ACP) {
        warnings.push("cli.transcript has no effect: the protocol has its own format".to_owned());
    }
    if cli.model.is_some() {
        warnings.push(
            "cli.model has no effect: choose the model in the agent's command or configuration".to_owned(),
        );
    }
    warnings
}

impl ResolvedAgent {
    /// What the usage of an agent that speaks the Agent Client Protocol covers; `None` for all other agents.
    pub fn acp_usage(&self) -> Option<UsageMeaning> {
        match self.delivery {
            PromptDelivery::Acp { usage } => Some(usage),
            PromptDelivery::Builtin(_)
            | PromptDelivery::CustomArgument { .. }
            | PromptDelivery::CustomStdin
            | PromptDelivery::Wrapper
            | PromptDelivery::Driver(_)
            | PromptDelivery::Interactive(_) => None,
        }
    }
}
