//! Activities: what a worker does. They start ralph and git; every decision is made in the workflows.

mod drive;
mod merge;
mod process;
mod trust;

pub(crate) use drive::checkpoint;
pub(crate) use trust::{NAMESPACE, Trust};

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ralph::fleet::Input;
use temporalio_macros::activities;
use temporalio_sdk::activities::{ActivityContext, ActivityError};

use crate::types::{Delivery, DriveReport, DriveSpec, MergeSpec};

/// The activities of one worker; clones share everything.
#[derive(Clone)]
pub(crate) struct Worker(pub(crate) Arc<Shared>);

/// What the activities of one worker share.
pub(crate) struct Shared {
    pub(crate) root: PathBuf,
    pub(crate) host: String,
    /// The queue that only this worker serves.
    pub(crate) queue: String,
    pub(crate) ralph: PathBuf,
    /// This program, for the checkpoint command.
    pub(crate) own: PathBuf,
    pub(crate) trust: Trust,
    /// The worker is to end: runs stop after their iteration, and at this time in any case.
    pub(crate) drain: tokio::sync::watch::Receiver<Option<Instant>>,
    /// When the engine answered last.
    pub(crate) answered: Mutex<Instant>,
    /// The running copies, by run id: workspace and state directory.
    pub(crate) running: Mutex<BTreeMap<String, (PathBuf, PathBuf)>>,
}

#[activities]
impl Worker {
    /// Works on a task until it is done, or has to be decided about elsewhere.
    #[activity]
    pub(crate) async fn drive(
        self: Arc<Self>,
        ctx: ActivityContext,
        spec: DriveSpec,
    ) -> Result<DriveReport, ActivityError> {
        drive::drive(Arc::clone(&self.0), ctx, spec)
            .await
            .map_err(failure)
    }

    /// Puts a command into the inbox of a run on this worker.
    #[activity]
    pub(crate) async fn deliver(
        self: Arc<Self>,
        _ctx: ActivityContext,
        delivery: Delivery,
    ) -> Result<bool, ActivityError> {
        Ok(process::deliver(&self.0, &delivery).await)
    }

    /// Merges the branches of tasks into the integration branch.
    #[activity]
    pub(crate) async fn merge(
        self: Arc<Self>,
        ctx: ActivityContext,
        spec: MergeSpec,
    ) -> Result<Input, ActivityError> {
        merge::merge(Arc::clone(&self.0), ctx, spec)
            .await
            .map_err(failure)
    }
}

impl Shared {
    /// Whether the engine has answered within this time.
    pub(crate) fn is_connected(&self, within: Duration) -> bool {
        let answered = *self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        answered.elapsed() <= within
    }

    pub(crate) fn engine_answered(&self) {
        *self.answered.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

/// Why an activity failed, for the engine and its user interface.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) String);

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

fn failure(text: String) -> ActivityError {
    Failure(text).into()
}
