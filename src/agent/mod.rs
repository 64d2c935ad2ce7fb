//! Who: which agent works for us, and how it is called. Starts nothing but `--version`; reads no output of a
//! session; knows no loop.

mod builtin;
mod detect;
mod driven;
pub mod driver;
mod interactive;
mod invocation;
mod probe;
mod provider;
mod table;

pub use builtin::{AGENTS, GENERAL_LIMITS, NESTED_SESSION};
pub use detect::{Checked, Unusable, detect, survey};
pub use driven::{driver_places, load_driver};
pub use interactive::{FirstPrompt, Interactive};
pub use invocation::{FilterCode, Invocation, ResolvedAgent, StdinSource};
pub use probe::{PathProbe, Probe};
pub use table::{
    Agent, Delivery, Evidence, LongPrompt, PromptLimit, PromptQuirk, Resume, ShortPrompt, Terminal,
};

use std::path::PathBuf;
use std::sync::Arc;

use crate::config::{Settings, SplitError};

/// The backend that is the user's own command line.
pub const CUSTOM: &str = "custom";
const AUTO: &str = "auto";
/// What a backend that is a driver script begins with.
pub const DRIVER: &str = "driver:";
const JQ: &str = "jq";

#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error("no usable agent was found")]
    NoneFound { checked: Vec<Checked> },
    #[error("{} was requested (backend: {}) but `{program}` is not in PATH", agent.display_name, agent.name)]
    NotInstalled { agent: &'static Agent, program: String },
    #[error("{name} was requested but is disabled (adapters.{name}.enabled: false)")]
    Disabled { name: String },
    #[error("unknown agent `{name}`")]
    Unknown {
        name: String,
        nearest: Option<&'static str>,
    },
    #[error("backend: custom needs a command")]
    CustomWithoutCommand,
    #[error("the custom command `{command}` was not found")]
    CustomNotFound { command: String },
    #[error("`{command}` (cli.claude_command) was not found")]
    ProviderNotFound { command: String },
    #[error("`{line}`, of cli.claude_command or cli.claude_args, {error}")]
    ProviderArguments { line: String, error: SplitError },
    #[error(transparent)]
    Driver(#[from] driver::DriverError),
    #[error("{agent} has no screen to type into: {why}")]
    NoScreen { agent: String, why: &'static str },
    #[error("--transcript jq needs a filter")]
    NoFilter,
    #[error("the prompt is too long for {agent}: {size}, and the limit is {limit}")]
    PromptTooLong {
        agent: String,
        size: String,
        limit: String,
    },
    #[error("the prompt contains a NUL byte, which no command line can carry")]
    NulInPrompt,
}

/// Names of the built-in agents, in the order of detection.
pub fn names() -> Vec<&'static str> {
    AGENTS.iter().map(|agent| agent.name).collect()
}

/// Finds the agent that the settings ask for. Never a silent substitute.
pub fn resolve(settings: &Settings, probe: &Arc<dyn Probe>) -> Result<ResolvedAgent, AgentError> {
    let mut selected = choose(settings, probe)?;
    // A filter for an agent of one's own can mean only one thing.
    if selected.name == CUSTOM && settings.cli.jq_filter.is_some() && settings.cli.transcript.is_none() {
        selected.format = JQ.to_owned();
    }
    match (&settings.cli.jq_filter, selected.format.as_str()) {
        (Some(code), JQ) => selected.filter = Some(FilterCode::User(code.clone())),
        (None, JQ) if selected.filter.is_none() => return Err(AgentError::NoFilter),
        (Some(_), format) => {
            let warning = format!("cli.jq_filter has no effect: the transcript is {format}, not jq");
            selected.warnings.push(warning);
        }
        (None, _) => {}
    }
    Ok(selected)
}

fn choose(settings: &Settings, probe: &Arc<dyn Probe>) -> Result<ResolvedAgent, AgentError> {
    let backend = settings.cli.backend.as_str();
    match backend {
        AUTO if settings.cli.command.is_some() => custom(settings, probe.as_ref()),
        AUTO | provider::CLAUDE if provider::is_wanted(settings) => {
            provider::provider(settings, probe.as_ref())
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
        name => match name.strip_prefix(DRIVER) {
            Some(driver) => driven::driven(driver, settings, probe.as_ref()),
            None => named(name, settings, probe.as_ref()),
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

/// The known name that a misspelt one may have meant.
fn nearest(name: &str) -> Option<&'static str> {
    let known = AGENTS.iter().map(|agent| agent.name).chain([AUTO, CUSTOM]);
    let scored = known.map(|known| (strsim::damerau_levenshtein(name, known), known));
    scored
        .filter(|(distance, known)| *distance <= known.len() / 2)
        .min()
        .map(|(_, known)| known)
}
