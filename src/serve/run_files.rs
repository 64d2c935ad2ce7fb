//! Finds the directory of a run. No path of a request reaches the file system: a run is looked up among the ids that exist.

use std::path::PathBuf;

use super::Server;
use super::response::{ApiError, ApiResult};
use crate::event::Secrets;
use crate::files::{self, ReadRule};
use crate::store::{Project, RunIndex, attempt_directory_name};

/// A run that exists.
#[derive(Debug, Clone)]
pub(super) struct FoundRun {
    pub(super) project: Project,
    pub(super) directory: PathBuf,
}

impl FoundRun {
    pub(super) fn journal(&self) -> PathBuf {
        self.directory.join("events.jsonl")
    }

    /// The receipt that was written at the end of the run.
    pub(super) fn receipt(&self) -> ApiResult<Vec<u8>> {
        let path = self.directory.join("receipt.json");
        files::read(&path, ReadRule::STATE).map_err(|_| ApiError::not_found("receipt"))
    }

    /// The prompt of an attempt, redacted: unlike the journal, prompt.md is stored unredacted.
    pub(super) fn prompt(&self, iteration: u64, attempt: u64) -> ApiResult<String> {
        let name = attempt_directory_name(iteration, attempt);
        let path = self.directory.join("iterations").join(name).join("prompt.md");
        let bytes = files::read(&path, ReadRule::PROMPT).map_err(|_| ApiError::not_found("prompt"))?;
        let prompt = String::from_utf8_lossy(&bytes).into_owned();
        Ok(Secrets::from_env(std::env::vars_os()).redact_text(prompt))
    }
}

impl Server {
    /// Finds a run by its complete id.
    pub(super) fn find_run(&self, id: &str) -> ApiResult<FoundRun> {
        for project in self.state.projects() {
            let index = RunIndex::load(&project);
            if index.newest_first().any(|known| known == id) {
                let directory = index.directory(id);
                return Ok(FoundRun { project, directory });
            }
        }
        Err(ApiError::not_found("run"))
    }
}
