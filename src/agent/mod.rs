//! Agents: selects the agent of a run and builds its command line.
//!
//! This module starts only `--version` probes and driver scripts. It does not read session output.

mod access;
mod account;
mod acp;
mod builtin;
mod detect;
pub mod driver;
mod driver_agent;
mod interactive;
mod invocation;
mod permission_mode;
mod probe;
mod table;
mod wrapper;

pub use access::AgentAccess;
pub use account::AgentAccount;
pub use builtin::{AGENTS, GENERAL_LIMIT_PHRASES, NESTED_SESSION};
pub use detect::{AgentCheck, Unusable, check_all, detect};
pub use driver_agent::{driver_dirs, load_driver};
pub use invocation::{FilterCode, Invocation, ResolvedAgent, StdinSource};
pub use probe::{PathProbe, Probe};
pub use table::{
    Agent, Delivery, Evidence, LongPrompt, PromptLimit, PromptQuirk, Resume, ShortPrompt, Terminal,
};

use std::path::PathBuf;
use std::sync::Arc;

use crate::config::{Settings, SplitError};

/// Backend name of a custom command.
pub const CUSTOM: &str = "custom";
const AUTO: &str = "auto";
/// Backend name of an agent that speaks the Agent Client Protocol.
pub const ACP: &str = "acp";
/// Prefix of a backend that is the command of such an agent.
pub const ACP_COMMAND: &str = "acp:";
/// Prefix of a backend that is a driver script.
pub const DRIVER: &str = "driver:";
const JQ: &str = "jq";

#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error("no usable agent found")]
    NoneFound { checked: Vec<AgentCheck> },
    #[error("cannot use {} (backend: {}): `{program}` not found in PATH", agent.display_name, agent.name)]
    NotInstalled { agent: &'static Agent, program: String },
    #[error("agent `{name}` is disabled (adapters.{name}.enabled: false)")]
    Disabled { name: String },
    #[error("unknown agent `{name}`")]
    Unknown {
        name: String,
        nearest: Option<&'static str>,
    },
    #[error("`backend: custom` requires a command")]
    CustomWithoutCommand,
    #[error("`backend: acp` requires a command")]
    AcpWithoutCommand,
    #[error("cannot parse the command `{line}`: {error}")]
    AcpArguments { line: String, error: SplitError },
    #[error("custom command `{command}` not found")]
    CustomNotFound { command: String },
    #[error("cli.claude_command: `{command}` not found")]
    WrapperNotFound { command: String },
    #[error("cannot parse `{line}` (cli.claude_command or cli.claude_args): {error}")]
    WrapperArguments { line: String, error: SplitError },
    #[error(transparent)]
    Driver(#[from] driver::DriverError),
    #[error("{agent} has no interactive mode: {reason}")]
    NotInteractive { agent: String, reason: &'static str },
    #[error("the `jq` transcript format requires a filter")]
    NoFilter,
    #[error("prompt too long for {agent}: {size} (limit: {limit})")]
    PromptTooLong {
        agent: String,
        size: String,
        limit: String,
    },
    #[error("the prompt contains a NUL byte, which cannot be passed as an argument")]
    NulInPrompt,
}

/// Names of the built-in agents in detection order.
pub fn names() -> Vec<&'static str> {
    AGENTS.iter().map(|agent| agent.name).collect()
}

/// Resolves the agent that the settings select. Never substitutes another one silently.
pub fn resolve(settings: &Settings, probe: &Arc<dyn Probe>) -> Result<ResolvedAgent, AgentError> {
    let mut agent = choose(settings, probe)?;
    if let Some(adapter) = settings.adapters.get(agent.adapter()) {
        let own = adapter.env.iter();
        agent
            .environment
            .extend(own.map(|(name, value)| (name.clone(), value.clone())));
    }
    // A filter for a custom command implies the jq format.
    if agent.name == CUSTOM && settings.cli.jq_filter.is_some() && settings.cli.transcript.is_none() {
        agent.format = JQ.to_owned();
    }
    match (&settings.cli.jq_filter, agent.format.as_str()) {
        (Some(code), JQ) => agent.filter = Some(FilterCode::User(code.clone())),
        (None, JQ) if agent.filter.is_none() => return Err(AgentError::NoFilter),
        (Some(_), format) => {
            let warning = format!("cli.jq_filter has no effect: the transcript format is {format}, not jq");
            agent.warnings.push(warning);
        }
        (None, _) => {}
    }
    Ok(agent)
}

fn choose(settings: &Settings, probe: &Arc<dyn Probe>) -> Result<ResolvedAgent, AgentError> {
    let backend = settings.cli.backend.as_str();
    match backend {
        AUTO if settings.cli.command.is_some() => custom(settings, probe.as_ref()),
        AUTO | wrapper::CLAUDE if wrapper::is_configured(settings) => {
            wrapper::wrapper_agent(settings, probe.as_ref())
        }
        AUTO => {
            let found = detect(probe, settings)?;
            Ok(ResolvedAgent::builtin(
                found.agent,
                found.program,
                Some(found.version),
                settings,
            ))
        }
        CUSTOM => custom(settings, probe.as_ref()),
        ACP => acp::acp_agent(None, settings, probe.as_ref()),
        name => match (name.strip_prefix(DRIVER), name.strip_prefix(ACP_COMMAND)) {
            (Some(driver), _) => driver_agent::driver_agent(driver, settings, probe.as_ref()),
            (None, Some(command)) => acp::acp_agent(Some(command), settings, probe.as_ref()),
            (None, None) => named(name, settings, probe.as_ref()),
        },
    }
}

fn named(name: &str, settings: &Settings, probe: &dyn Probe) -> Result<ResolvedAgent, AgentError> {
    let Some(agent) = AGENTS.iter().find(|agent| agent.name == name) else {
        return Err(AgentError::Unknown {
            name: name.to_owned(),
            nearest: nearest(name),
        });
    };
    if !detect::enabled(agent, settings) {
        return Err(AgentError::Disabled {
            name: name.to_owned(),
        });
    }
    let program = agent.programs.iter().find_map(|program| probe.find(program));
    let missing = || AgentError::NotInstalled {
        agent,
        program: agent.programs.join("` or `"),
    };
    Ok(ResolvedAgent::builtin(
        agent,
        program.ok_or_else(missing)?,
        None,
        settings,
    ))
}

fn custom(settings: &Settings, probe: &dyn Probe) -> Result<ResolvedAgent, AgentError> {
    let command = settings
        .cli
        .command
        .as_deref()
        .filter(|command| !command.trim().is_empty());
    let command = command.ok_or(AgentError::CustomWithoutCommand)?;
    let program: Option<PathBuf> = probe.find(command);
    let program = program.ok_or_else(|| AgentError::CustomNotFound {
        command: command.to_owned(),
    })?;
    Ok(ResolvedAgent::custom(program, settings))
}

/// The known name closest to a misspelled one.
fn nearest(name: &str) -> Option<&'static str> {
    let known = AGENTS.iter().map(|agent| agent.name).chain([AUTO, CUSTOM, ACP]);
    let scored = known.map(|known| (strsim::damerau_levenshtein(name, known), known));
    scored
        .filter(|(distance, known)| *distance <= known.len() / 2)
        .min()
        .map(|(_, known)| known)
}
