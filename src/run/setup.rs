//! What a run is made of before it begins.

use std::path::PathBuf;
use std::time::Duration;

use super::{Hooks, Watched};
use crate::agent::ResolvedAgent;
use crate::engine::Engine;
use crate::event::RunHeader;
use crate::process::Supervisors;
use crate::store::Run;
use crate::transcript::Format;
use crate::transcript::jq::Filter;

/// Where the user's prompt comes from. A file is read again for every iteration.
#[derive(Debug, Clone)]
pub enum PromptSource {
    Text(String),
    File(PathBuf),
}

impl PromptSource {
    pub fn read(&self) -> Result<String, String> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::File(path) => std::fs::read(path)
                .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
                .map_err(|error| format!("cannot read the prompt file {}: {error}", path.display())),
        }
    }
}

/// Everything a run needs.
pub struct Setup {
    pub engine: Engine,
    pub header: RunHeader,
    pub run: Run,
    pub agent: ResolvedAgent,
    pub format: &'static Format,
    /// Beside the format, or for it.
    pub filter: Option<Filter>,
    pub prompt: PromptSource,
    pub workspace: PathBuf,
    pub supervisors: Supervisors,
    pub max_line_bytes: usize,
    pub watched: Watched,
    pub hooks: Hooks,
    pub beginning: Beginning,
}

/// Whether a run is new, or goes on.
#[derive(Debug, Clone, Default)]
pub enum Beginning {
    #[default]
    Fresh,
    Resumed {
        /// How long the run had taken before, on its own clock.
        elapsed: Duration,
        /// The number of its last record.
        seq: u64,
        /// What was taken out of its inbox before.
        received: Vec<String>,
        /// Settings that are different now, for the record.
        changed: Vec<String>,
    },
}
