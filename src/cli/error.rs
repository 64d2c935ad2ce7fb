//! Everything that can go wrong, as the user meets it: what happened, and its exit code. The remedies are in `hints`.

use std::io;
use std::path::PathBuf;

use crate::agent::AgentError;
use crate::agent::driver::DriverError;
use crate::config::{ConfigError, SplitError};
use crate::engine::HatError;
use crate::run::RunError;
use crate::store::StoreError;

use super::args::ForeignName;
use super::exit::Exit;
use super::prompt::PromptError;

#[derive(Debug, thiserror::Error)]
pub(super) enum CliError {
    #[error("the working directory {} is not accessible: {source}", path.display())]
    WorkingDirectory { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("--agent-cmd {0}")]
    AgentCommand(#[from] SplitError),
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error(transparent)]
    Task(#[from] PromptError),
    #[error("run {id} is complete: nobody will take it in")]
    RunCompleted { id: String },
    #[error(transparent)]
    Filter(#[from] crate::transcript::jq::CompileError),
    #[error("unknown transcript format `{name}`")]
    UnknownTranscript { name: String },
    #[error("{}", super::trust::described(subjects))]
    Untrusted {
        subjects: Vec<super::trust::Subject>,
        /// The command that allows it.
        allow: String,
    },
    #[error("cannot remember what is allowed: {0}")]
    Ledger(#[source] io::Error),
    #[error("cannot write {}: {source}", path.display())]
    Unwritable { path: PathBuf, source: io::Error },
    #[error("there is no file of {from} here")]
    NothingToConvert { from: ForeignName },
    #[error("as-claude: {0}")]
    AsClaude(String),
    #[error("cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Hats(#[from] HatError),
    #[error("there is no {what} `{name}`")]
    UnknownName {
        what: &'static str,
        name: String,
        known: Vec<String>,
    },
    #[error("cannot read {}: {source}", path.display())]
    InputUnreadable { path: PathBuf, source: io::Error },
    #[error("--speed needs recorded times, and {} has none", path.display())]
    SpeedWithoutTimes { path: PathBuf },
    #[error("--transcript is for raw output, and `{what}` is a run")]
    TranscriptOfRun { what: String },
    #[error("`session: continue` is not possible in interactive mode: a screen names no session")]
    SessionInInteractiveMode,
    #[error("the configuration has changed since this run began:\n  {}", changes.join("\n  "))]
    SettingsChanged { changes: Vec<String> },
    #[error("run {id} has left neither a run.json nor a journal that can be read")]
    HeaderMissing { id: String },
    #[error("--interactive needs a terminal to ask on")]
    TerminalRequired,
    #[error("there is nothing to tell")]
    EmptyCommand,
    #[error("`session: continue` is not possible with {agent}: ralph knows no way to resume its sessions")]
    ResumeUnsupported { agent: String },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Run(RunError),
    #[error("nobody is there to be asked whether {runs} may go")]
    CannotConfirm { runs: String },
    #[error("{} is there already", path.display())]
    AlreadyExists { path: PathBuf },
    #[error("run {id} has no iteration {iteration}")]
    NoIteration {
        id: String,
        iteration: u64,
        iterations: u64,
    },
    #[error(transparent)]
    Bench(#[from] super::bench::BenchError),
    #[error("the demo cannot be set up: {0}")]
    Demo(String),
    #[error("{what} needs a terminal, in the foreground, for input and output")]
    NoTerminal { what: &'static str },
    #[error("cannot write to the terminal: {0}")]
    Output(#[source] io::Error),
}

impl From<RunError> for CliError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Store(error) => Self::Store(error),
            error => Self::Run(error),
        }
    }
}

impl CliError {
    pub(super) fn exit(&self) -> Exit {
        match self {
            Self::Agent(error) => match error {
                AgentError::NoneFound { .. }
                | AgentError::NotInstalled { .. }
                | AgentError::CustomNotFound { .. }
                | AgentError::ProviderNotFound { .. }
                | AgentError::Driver(DriverError::NoProgram { .. }) => Exit::NoAgent,
                AgentError::Disabled { .. }
                | AgentError::Unknown { .. }
                | AgentError::CustomWithoutCommand
                | AgentError::ProviderArguments { .. }
                | AgentError::Driver(_)
                | AgentError::NoFilter
                | AgentError::NoScreen { .. }
                | AgentError::PromptTooLong { .. }
                | AgentError::NulInPrompt => Exit::Usage,
            },
            Self::Config(_)
            | Self::AgentCommand(_)
            | Self::Task(_)
            | Self::RunCompleted { .. }
            | Self::UnknownTranscript { .. }
            | Self::SessionInInteractiveMode
            | Self::NoTerminal { .. }
            | Self::NothingToConvert { .. }
            | Self::AsClaude(_)
            | Self::Filter(_)
            | Self::Untrusted { .. }
            | Self::Hats(_)
            | Self::UnknownName { .. }
            | Self::SettingsChanged { .. }
            | Self::TerminalRequired
            | Self::EmptyCommand
            | Self::ResumeUnsupported { .. }
            | Self::InputUnreadable { .. }
            | Self::SpeedWithoutTimes { .. }
            | Self::TranscriptOfRun { .. }
            | Self::CannotConfirm { .. }
            | Self::AlreadyExists { .. }
            | Self::NoIteration { .. } => Exit::Usage,
            Self::Bench(error) => error.exit(),
            Self::Store(error) => store_exit(error),
            Self::WorkingDirectory { .. }
            | Self::Run(_)
            | Self::HeaderMissing { .. }
            | Self::Demo(_)
            | Self::Ledger(_)
            | Self::Unreadable { .. }
            | Self::Unwritable { .. }
            | Self::Output(_) => Exit::Failed,
        }
    }
}

fn store_exit(error: &StoreError) -> Exit {
    match error {
        StoreError::Locked { .. } => Exit::Busy,
        StoreError::Io { .. } => Exit::Failed,
        StoreError::NoRuns { .. }
        | StoreError::UnknownRun { .. }
        | StoreError::AmbiguousRun { .. }
        | StoreError::NotARun { .. }
        | StoreError::NoBenches { .. }
        | StoreError::UnknownBench { .. }
        | StoreError::AmbiguousBench { .. }
        | StoreError::NotABench { .. }
        | StoreError::CopyIntoItself { .. }
        | StoreError::LeadsElsewhere { .. } => Exit::Usage,
    }
}
