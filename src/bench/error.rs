//! The errors of a bench, with hints.

use std::io;
use std::path::PathBuf;

use crate::agent::AgentError;
use crate::config::ConfigError;
use crate::store::StoreError;

#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    #[error("tasks file not found: {}", path.display())]
    NoTasksFile { path: PathBuf },
    #[error("task `{task}`: cannot read the prompt file {}: {source}", path.display())]
    PromptFile {
        task: String,
        path: PathBuf,
        source: io::Error,
    },
    #[error("task `{task}`: the prompt file {} is empty", path.display())]
    EmptyPrompt { task: String, path: PathBuf },
    #[error("task `{task}`: directory to copy not found: {}", path.display())]
    CopySourceMissing { task: String, path: PathBuf },
    #[error("agent `{name}` is listed twice")]
    DuplicateAgent { name: String },
    #[error("bench {id} was created by a newer ralph (plan version {version})")]
    PlanTooNew { id: String, version: u32 },
    #[error("no bench of {} found", path.display())]
    NoBenchForTasks { path: PathBuf },
    #[error("cannot handle signals: {0}")]
    Signals(#[source] io::Error),
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
    #[error("no task named `{name}`")]
    UnknownTask { name: String, known: Vec<String> },
    #[error("cannot write {}: {source}", path.display())]
    Unwritable { path: PathBuf, source: io::Error },
    #[error("cannot write output: {0}")]
    Output(#[source] io::Error),
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl BenchError {
    /// Returns what the user can do about the errors that only a bench has.
    pub fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::NoTasksFile { .. } => "check the path; for the format, see docs/bench.md",
            Self::PromptFile { .. } => "check the path; it is relative to the tasks file",
            Self::EmptyPrompt { .. } => "describe the task for the agent",
            Self::CopySourceMissing { .. } => "check `copy`; it is relative to the tasks file",
            Self::DuplicateAgent { .. } => {
                "list each agent once; for more attempts, use --repeat N; for another model, NAME@MODEL"
            }
            Self::PlanTooNew { .. } => "use the newer ralph, or start a new bench",
            Self::NoBenchForTasks { .. } => {
                "to start one, remove --continue; to list the benches: ralph bench list"
            }
            Self::Signals(_)
            | Self::Thread(_)
            | Self::UnknownTask { .. }
            | Self::Unwritable { .. }
            | Self::Output(_)
            | Self::Agent(_)
            | Self::Config(_)
            | Self::Store(_) => return Vec::new(),
        };
        vec![hint.to_owned()]
    }
}
