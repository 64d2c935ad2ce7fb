//! What can go wrong with a bench, as the user meets it.

use std::io;
use std::path::PathBuf;

use crate::cli::exit::Exit;

#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum BenchError {
    #[error("there is no tasks file {}", path.display())]
    NoTasksFile { path: PathBuf },
    #[error("task `{task}`: cannot read its prompt file {}: {source}", path.display())]
    PromptFile {
        task: String,
        path: PathBuf,
        source: io::Error,
    },
    #[error("task `{task}`: its prompt file {} is empty", path.display())]
    EmptyPrompt { task: String, path: PathBuf },
    #[error("task `{task}`: there is no directory {} to copy", path.display())]
    NothingToCopy { task: String, path: PathBuf },
    #[error("agent `{name}` is given twice")]
    AgentTwice { name: String },
    #[error("neither XDG_STATE_HOME nor HOME says where a bench could be kept")]
    NoPlace,
    #[error("bench {id} was made by a newer ralph (version {version} of its plan)")]
    TooNew { id: String, version: u32 },
    #[error("{} has not been benched yet", path.display())]
    NeverBenched { path: PathBuf },
    #[error("cannot listen to signals: {0}")]
    Signals(#[source] io::Error),
}

impl BenchError {
    pub(in crate::cli) fn exit(&self) -> Exit {
        match self {
            Self::NoTasksFile { .. }
            | Self::PromptFile { .. }
            | Self::EmptyPrompt { .. }
            | Self::NothingToCopy { .. }
            | Self::AgentTwice { .. }
            | Self::NoPlace
            | Self::TooNew { .. }
            | Self::NeverBenched { .. } => Exit::Usage,
            Self::Signals(_) => Exit::Failed,
        }
    }

    pub(in crate::cli) fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::NoTasksFile { .. } => "check the path; docs/bench.md shows how such a file is written",
            Self::PromptFile { .. } => "check the path; it is relative to the tasks file",
            Self::EmptyPrompt { .. } => "say what the agent is to do",
            Self::NothingToCopy { .. } => "check `copy`; it is relative to the tasks file",
            Self::AgentTwice { .. } => {
                "name each agent once; to try it more often: --repeat N; another model: NAME@MODEL"
            }
            Self::NoPlace => "say where: --dir DIR",
            Self::TooNew { .. } => "use that ralph, or begin a new bench",
            Self::NeverBenched { .. } => {
                "leave --continue out to begin; to see the benches: ralph bench list"
            }
            Self::Signals(_) => return Vec::new(),
        };
        vec![hint.to_owned()]
    }
}
