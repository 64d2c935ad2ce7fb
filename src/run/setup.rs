//! The inputs of a run: engine, agent, prompt, workspace and hooks.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::hooks::HookCommands;
use super::sandbox::SandboxSetup;
use super::{RunAccounts, Watched};
use crate::agent::ResolvedAgent;
use crate::engine::Engine;
use crate::event::RunHeader;
use crate::files::{self, ReadRule};
use crate::snapshot::SnapshotRules;
use crate::store::{Run, SettingsFile};
use crate::transcript::Format;
use crate::transcript::jq::Filter;

/// The source of the user's prompt. A file is read again for each iteration.
#[derive(Debug, Clone)]
pub enum PromptSource {
    Text(String),
    File(PathBuf),
}

impl PromptSource {
    pub fn read(&self) -> Result<String, String> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::File(path) => files::read(path, ReadRule::PROMPT)
                .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
                .map_err(|error| format!("cannot read the prompt file {}: {error}", path.display())),
        }
    }
}

/// One agent of a run.
pub struct RunAgent {
    pub agent: Arc<ResolvedAgent>,
    pub format: &'static Format,
    /// Extracts text from the output, in addition to the format or instead of it.
    pub filter: Option<Filter>,
}

/// Everything a run needs.
pub struct Setup {
    pub engine: Engine,
    pub header: RunHeader,
    /// `run.json`. It is replaced only after a resumed run has journaled its hash, so a kill in between leaves a file whose hash
    /// the journal contains.
    pub settings_file: SettingsFile,
    pub run: Arc<Run>,
    /// In the order of the engine's [`crate::engine::Agents::rules`].
    pub agents: Vec<RunAgent>,
    pub prompt: PromptSource,
    pub workspace: PathBuf,
    pub max_line_bytes: usize,
    pub watched: Watched,
    pub snapshots: SnapshotRules,
    pub hooks: HookCommands,
    pub accounts: RunAccounts,
    pub sandbox: SandboxSetup,
    pub beginning: Beginning,
}

/// Whether a run is new or resumed.
#[derive(Debug, Clone, Default)]
pub enum Beginning {
    #[default]
    Fresh,
    Resumed {
        /// The duration of the run so far, on its own clock.
        elapsed: Duration,
        /// The number of its last record.
        seq: u64,
        /// The settings that have changed.
        changed: Vec<String>,
    },
}
