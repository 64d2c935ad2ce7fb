//! Creates the fork of a run, for `ralph fork` and `ralph race`.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::config::PartialSettings;
use crate::plan::{ForkWorkspace, ForkWorkspaceRequest};
use crate::run::{ForkPoint, ForkRequest, Host, SavedRun};
use crate::store::{StoreError, id_from_path, state_directory};

use super::error::CliError;
use super::run_lookup::resolve_run;
use super::snapshots::{IterationName, RunSnapshots};
use super::undo_error::UndoError;

/// The run and the iteration that forks continue.
pub(super) struct ForkSource {
    directory: PathBuf,
    pub(super) name: IterationName,
    point: ForkPoint,
}

/// A fork that is ready to run.
pub(super) struct CreatedFork {
    pub(super) run: String,
    pub(super) place: ForkWorkspace,
}

impl ForkSource {
    /// Finds what `RUN@N` names.
    pub(super) fn find(what: &str, host: &Host) -> Result<Self, CliError> {
        let name = IterationName::parse(what).ok_or_else(|| UndoError::NoIteration {
            name: what.to_owned(),
        })?;
        let directory = resolve_run(Some(&name.run))?;
        let point = ForkPoint::find(&directory.join("events.jsonl"), name.iteration)?;
        let Some(point) = point else {
            let snapshots = RunSnapshots::of(Some(&name.run), host)?;
            return Err(snapshots.missing(format!("after iteration {}", name.iteration)));
        };
        Ok(Self {
            directory,
            name,
            point,
        })
    }

    pub(super) fn run_id(&self) -> String {
        id_from_path(&self.directory)
    }

    /// The settings with which the run started.
    pub(super) fn saved(&self) -> Result<SavedRun, CliError> {
        let id = self.run_id();
        let text = std::fs::read(self.directory.join("run.json")).unwrap_or_default();
        serde_json::from_slice(&text).map_err(|_| CliError::HeaderMissing { id })
    }

    /// Creates a fork in a new worktree or directory.
    pub(super) fn create(
        &self,
        flags: &PartialSettings,
        into: Option<&Path>,
        host: &Host,
    ) -> Result<CreatedFork, CliError> {
        let saved = self.saved()?;
        let root = saved.header.project_root.clone();
        let root = root.unwrap_or_else(|| saved.header.workspace.clone());
        let state = state_directory()?;
        let project = state.project(Path::new(&root));
        if self.directory.parent() != Some(project.runs().as_path()) {
            let id = self.run_id();
            return Err(CliError::Store(StoreError::LegacyRun { id }));
        }
        let suffix: String = std::iter::repeat_with(fastrand::alphanumeric).take(4).collect();
        let name = format!(
            "fork-{}-{}-{}",
            self.run_id(),
            self.name.iteration,
            suffix.to_ascii_lowercase()
        );
        let place = ForkWorkspaceRequest {
            project: &project,
            workspace: Path::new(&saved.header.workspace),
            name: &name,
            into,
            at: self.point.at,
        };
        let place = place
            .create(host.supervisors())
            .map_err(|why| UndoError::NoForkWorkspace { why })?;
        let request = ForkRequest {
            source: &self.directory,
            iteration: self.name.iteration,
            point: self.point,
            project: &state.project(&place.root),
            workspace: &place.workspace,
            flags,
            saved,
        };
        let run = request.create(host, Timestamp::now()).map_err(UndoError::Fork)?;
        Ok(CreatedFork { run, place })
    }
}
