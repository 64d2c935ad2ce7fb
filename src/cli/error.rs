//! The error type of the command line, with exit codes. `hints` has the hints.

use std::io;
use std::path::PathBuf;

use crate::agent::AgentError;
use crate::agent::driver::DriverError;
use crate::bench::BenchError;
use crate::config::{ConfigError, SplitError};
use crate::engine::HatError;
use crate::plan::PlanError;
use crate::run::{RunError, SandboxUnavailable};
#[cfg(feature = "serve")]
use crate::serve::ServeError;
use crate::snapshot::SnapshotError;
use crate::store::{BrokenChain, StoreError};
use crate::trust::{FileTrust, TrustError};

use super::args::ImportArgument;
use super::emit_error::EmitError;
use super::exit::Exit;
use super::fleet_error::FleetError;
use super::prompt::PromptError;
use super::review_error::ReviewError;
use super::undo_error::UndoError;

#[derive(Debug, thiserror::Error)]
pub(super) enum CliError {
    #[error("cannot access the working directory {}: {source}", path.display())]
    WorkingDirectory { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    LogLevels(#[from] crate::debug_log::InvalidLevels),
    #[error("--agent-cmd: {0}")]
    AgentCommand(#[from] SplitError),
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error(transparent)]
    Prompt(#[from] PromptError),
    #[error("run {id} has already completed")]
    RunCompleted { id: String },
    #[error(transparent)]
    Emit(#[from] EmitError),
    #[error("run {id} is not active")]
    RunInactive { id: String },
    #[error(transparent)]
    Filter(#[from] crate::transcript::jq::CompileError),
    #[error("unknown transcript format `{name}`")]
    UnknownTranscript { name: String },
    #[error("{}", crate::trust::describe(files))]
    Untrusted {
        files: Vec<FileTrust>,
        /// The command that allows these files.
        allow: String,
    },
    #[cfg(feature = "serve")]
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error(transparent)]
    Trust(#[from] TrustError),
    #[error("cannot write {}: {source}", path.display())]
    Unwritable { path: PathBuf, source: io::Error },
    #[error("no {from} file found")]
    NothingToConvert { from: ImportArgument },
    #[error("as-claude: {0}")]
    AsClaude(String),
    #[error("cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Hats(#[from] HatError),
    #[error("no {what} named `{name}`")]
    UnknownName {
        what: &'static str,
        name: String,
        known: Vec<String>,
    },
    #[error("cannot read {}: {source}", path.display())]
    InputUnreadable { path: PathBuf, source: io::Error },
    #[error("--speed requires recorded times, but {} has none", path.display())]
    SpeedWithoutTimes { path: PathBuf },
    #[error("--transcript applies to raw output, but `{what}` is a run")]
    TranscriptOfRun { what: String },
    #[error(
        "`session: continue` is not supported in interactive mode: the agent's TUI reports no session id"
    )]
    SessionInInteractiveMode,
    #[error("the configuration has changed since this run started:\n  {}", changes.join("\n  "))]
    SettingsChanged { changes: Vec<String> },
    #[error("run {id} has neither a readable run.json nor a readable journal")]
    HeaderMissing { id: String },
    #[error("the journal of run {id} is damaged: {broken}")]
    JournalDamaged { id: String, broken: BrokenChain },
    #[error("run.json of run {id} is not the one that ralph wrote")]
    SettingsFileChanged { id: String },
    #[error("run {id} was written by a newer ralph (format {version})")]
    NewerRun { id: String, version: u32 },
    #[error("--interactive requires a terminal")]
    TerminalRequired,
    #[error("cannot watch the file descriptor {descriptor} (--while-open)")]
    Lifeline { descriptor: i32, source: std::io::Error },
    #[error("no message or command given")]
    EmptyCommand,
    #[error("`session: continue` is not supported with {agent}: ralph cannot resume its sessions")]
    ResumeUnsupported { agent: String },
    #[error("{key}.model: ralph does not know how to select a model of agent `{agent}`")]
    RoleWithoutModel { key: String, agent: String },
    #[error(transparent)]
    Review(#[from] ReviewError),
    #[error("no gates are configured, and `event_loop.require_gates` is set")]
    GatesRequired,
    #[error("hats.{hat}.disallowed_tools cannot be enforced: the output of {agent} does not show its tools")]
    ToolsNotReported { hat: String, agent: String },
    #[error("gate `{gate}` runs in a clean checkout, which needs snapshots, but `snapshots` is off")]
    SnapshotsRequired { gate: String },
    #[error("`event_loop.on_rejected: restore` needs snapshots, but `snapshots` is off")]
    RestoreNeedsSnapshots,
    #[error(transparent)]
    Fleet(FleetError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Sandbox(#[from] SandboxUnavailable),
    #[error(transparent)]
    Run(RunError),
    #[error("refusing to delete {runs} without confirmation (no terminal)")]
    CannotConfirm { runs: String },
    #[error("{} already exists", path.display())]
    AlreadyExists { path: PathBuf },
    #[error("run {id} has no iteration {iteration}")]
    NoIteration {
        id: String,
        iteration: u64,
        iterations: u64,
    },
    #[error(transparent)]
    Undo(#[from] UndoError),
    #[error(transparent)]
    Bench(BenchError),
    #[error(transparent)]
    Plan(PlanError),
    #[error("cannot set up the demo: {0}")]
    Demo(String),
    #[error("{what} requires a foreground terminal for input and output")]
    NoTerminal { what: &'static str },
    #[error("cannot write output: {0}")]
    Output(#[source] io::Error),
}

impl From<SnapshotError> for CliError {
    fn from(error: SnapshotError) -> Self {
        Self::Undo(UndoError::Snapshot(error))
    }
}

impl From<RunError> for CliError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Store(error) => Self::Store(error),
            error => Self::Run(error),
        }
    }
}

impl From<BenchError> for CliError {
    fn from(error: BenchError) -> Self {
        match error {
            BenchError::Agent(error) => Self::Agent(error),
            BenchError::Config(error) => Self::Config(error),
            BenchError::Store(error) => Self::Store(error),
            BenchError::Output(error) => Self::Output(error),
            BenchError::Unwritable { path, source } => Self::Unwritable { path, source },
            BenchError::UnknownTask { name, known } => Self::UnknownName {
                what: "task",
                name,
                known,
            },
            error => Self::Bench(error),
        }
    }
}

fn agent_exit(error: &AgentError) -> Exit {
    match error {
        AgentError::NoneFound { .. }
        | AgentError::NotInstalled { .. }
        | AgentError::CustomNotFound { .. }
        | AgentError::WrapperNotFound { .. }
        | AgentError::Driver(DriverError::NoProgram { .. }) => Exit::NoAgent,
        AgentError::Disabled { .. }
        | AgentError::Unknown { .. }
        | AgentError::CustomWithoutCommand
        | AgentError::AcpWithoutCommand
        | AgentError::AcpArguments { .. }
        | AgentError::WrapperArguments { .. }
        | AgentError::Driver(_)
        | AgentError::NoFilter
        | AgentError::NotInteractive { .. }
        | AgentError::PromptTooLong { .. }
        | AgentError::NulInPrompt => Exit::Usage,
    }
}

impl From<PlanError> for CliError {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Store(error) => Self::Store(error),
            PlanError::Output(error) => Self::Output(error),
            error => Self::Plan(error),
        }
    }
}

impl CliError {
    /// Whether an agent is not installed, as opposed to misconfigured.
    pub(super) fn is_missing_agent(&self) -> bool {
        matches!(
            self,
            Self::Agent(
                AgentError::NoneFound { .. }
                    | AgentError::NotInstalled { .. }
                    | AgentError::CustomNotFound { .. }
                    | AgentError::WrapperNotFound { .. }
            )
        )
    }

    pub(super) fn exit(&self) -> Exit {
        match self {
            Self::Agent(error) => agent_exit(error),
            Self::Config(_)
            | Self::LogLevels(_)
            | Self::AgentCommand(_)
            | Self::Prompt(_)
            | Self::RunCompleted { .. }
            | Self::RunInactive { .. }
            | Self::Emit(_)
            | Self::ToolsNotReported { .. }
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
            | Self::Lifeline { .. }
            | Self::EmptyCommand
            | Self::ResumeUnsupported { .. }
            | Self::RoleWithoutModel { .. }
            | Self::GatesRequired
            | Self::SnapshotsRequired { .. }
            | Self::RestoreNeedsSnapshots
            | Self::Sandbox(_)
            | Self::InputUnreadable { .. }
            | Self::SpeedWithoutTimes { .. }
            | Self::TranscriptOfRun { .. }
            | Self::CannotConfirm { .. }
            | Self::AlreadyExists { .. }
            | Self::NoIteration { .. } => Exit::Usage,
            Self::Bench(BenchError::Signals(_)) => Exit::Failed,
            Self::Undo(error) => error.exit(),
            Self::Review(error) => error.exit(),
            Self::Fleet(FleetError::NotStarted { .. }) => Exit::Failed,
            Self::Fleet(_) => Exit::Usage,
            Self::Plan(error) => plan_exit(error),
            Self::Bench(_) => Exit::Usage,
            Self::Store(error) => store_exit(error),
            Self::WorkingDirectory { .. }
            | Self::Run(_)
            | Self::HeaderMissing { .. }
            | Self::NewerRun { .. }
            | Self::JournalDamaged { .. }
            | Self::SettingsFileChanged { .. }
            | Self::Demo(_)
            | Self::Trust(_)
            | Self::Unreadable { .. }
            | Self::Unwritable { .. }
            | Self::Output(_) => Exit::Failed,
            #[cfg(feature = "serve")]
            Self::Serve(_) => Exit::Failed,
        }
    }
}

fn plan_exit(error: &PlanError) -> Exit {
    match error {
        PlanError::Signals(_)
        | PlanError::Thread(_)
        | PlanError::Git(_)
        | PlanError::Mark { .. }
        | PlanError::Worktrees(_) => Exit::Failed,
        _ => Exit::Usage,
    }
}

fn store_exit(error: &StoreError) -> Exit {
    match error {
        StoreError::Locked { .. } => Exit::Busy,
        StoreError::Io { .. } | StoreError::StateUnusable { .. } | StoreError::NoState => Exit::Failed,
        StoreError::NoRuns { .. }
        | StoreError::RunExists { .. }
        | StoreError::UnknownRun { .. }
        | StoreError::AmbiguousRun { .. }
        | StoreError::NotARun { .. }
        | StoreError::NoBenches { .. }
        | StoreError::UnknownBench { .. }
        | StoreError::AmbiguousBench { .. }
        | StoreError::NotABench { .. }
        | StoreError::CopyIntoItself { .. }
        | StoreError::Symlink { .. }
        | StoreError::RelativeState { .. }
        | StoreError::OtherProject { .. }
        | StoreError::LegacyRun { .. }
        | StoreError::Refused { .. } => Exit::Usage,
    }
}
