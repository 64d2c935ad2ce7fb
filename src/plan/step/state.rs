//! The state of one task of a plan.

use serde::{Deserialize, Serialize};

use super::{ParkReason, PlanCommand, ReadTask, Rejection};
use crate::plan::task::Task;

/// A task and what has happened to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedTask {
    pub task: Task,
    pub state: TaskState,
    /// The current attempt. Each attempt starts from the integration branch as it is then; a run that is stopped or fails
    /// is repeated within its attempt.
    pub attempts: u64,
    /// The next run is a new attempt.
    pub starts_over: bool,
    /// Attempts that were verified, but could not be merged.
    pub rejections: u64,
    /// Why the last attempt could not be merged.
    pub rejection: Option<Rejection>,
    pub cost_usd: f64,
    /// The request that stops the current run.
    pub stop: Option<PlanCommand>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum TaskState {
    Waiting,
    Running,
    /// Its gates passed, and it will be merged.
    Verified,
    Merging,
    Done,
    Parked {
        #[serde(flatten)]
        why: ParkReason,
    },
    Skipped,
    /// The source does not contain it any more.
    Removed,
}

impl TaskState {
    /// Whether the plan is complete as far as this task is concerned.
    pub(super) fn is_settled(&self) -> bool {
        matches!(self, Self::Done | Self::Skipped | Self::Removed)
    }
}

impl PlannedTask {
    pub(super) fn new(read: ReadTask) -> Self {
        Self {
            state: if read.done {
                TaskState::Done
            } else {
                TaskState::Waiting
            },
            task: read.task,
            attempts: 0,
            starts_over: false,
            rejections: 0,
            rejection: None,
            cost_usd: 0.0,
            stop: None,
        }
    }

    /// Takes over what may change while a plan runs: everything except the gates, which decide what is done. A mark in
    /// the source is ignored, because an agent can set it.
    pub(super) fn updated(mut self, task: Task) -> Self {
        let gates = std::mem::take(&mut self.task.gates);
        if self.state == TaskState::Removed {
            self.state = TaskState::Waiting;
        }
        self.task = Task { gates, ..task };
        self
    }

    pub fn is_running(&self) -> bool {
        self.state == TaskState::Running
    }

    /// The agent of the task; empty for the default agent.
    pub(super) fn agent(&self) -> &str {
        self.task.agent.as_deref().unwrap_or_default()
    }

    /// Whether its changes are not in the integration branch yet.
    pub(super) fn is_in_progress(&self) -> bool {
        matches!(
            self.state,
            TaskState::Running | TaskState::Verified | TaskState::Merging
        )
    }
}
