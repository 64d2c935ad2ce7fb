//! What a plan receives, what it requests, and what its journal records. All of it can be serialized, because a plan can
//! also be run by other programs.

use std::time::Duration;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::Interrupt;
use crate::plan::task::Task;

/// An input of `Plan::step`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "input", rename_all = "snake_case")]
pub enum Input {
    /// The source was read, for the first time or again.
    TasksRead {
        tasks: Vec<ReadTask>,
    },
    /// The run of a task started.
    RunStarted {
        task: String,
        run: String,
    },
    /// The run of a task waits for a usage limit.
    Limited {
        task: String,
        wait: Duration,
    },
    /// The run of a task ended, and its work is committed if it is verified.
    RunEnded {
        task: String,
        end: TaskEnd,
        cost_usd: f64,
    },
    /// The integration branch contains these tasks.
    Merged {
        tasks: Vec<String>,
        commit: String,
        gates: Duration,
    },
    MergeRejected {
        tasks: Vec<String>,
        why: Rejection,
        gates: Duration,
    },
    /// Commands of the user, in order.
    Commands {
        commands: Vec<PlanCommand>,
    },
    Interrupted {
        by: Interrupt,
    },
    /// A deadline was reached.
    Tick,
}

/// A task as the source has it now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReadTask {
    pub task: Task,
    /// Whether the source marks it as done.
    pub done: bool,
}

/// How the run of a task ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum TaskEnd {
    /// All gates passed.
    Verified,
    Failed {
        reason: String,
    },
    /// The run reached the cost that the plan granted.
    OutOfBudget,
    /// The agent cannot be used at all.
    AgentUnusable {
        reason: String,
    },
    /// The run was stopped.
    Stopped,
}

/// Why tasks were not merged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Rejection {
    /// The changes of this task conflict with the integration branch.
    Conflict { task: String, files: Vec<String> },
    /// A gate failed on the merged tree.
    GateFailed { gate: String, output: String },
    /// The integration branch moved in the meantime.
    Moved,
    /// The merge was stopped.
    Stopped,
    /// The merge was impossible.
    Failed { reason: String },
}

/// A request of the user to a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PlanCommand {
    /// Run a parked or skipped task again.
    Retry { task: String },
    /// Do not run a task. Tasks that need it run without it.
    Skip { task: String },
    /// Stop the run of a task and park it; without a task, stop the plan.
    Stop { task: Option<String> },
}

/// What the caller of `Plan::step` must do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Action {
    /// Run a task.
    Start(Box<TaskStart>),
    /// Stop the run of a task.
    Stop {
        task: String,
    },
    /// Merge verified tasks into the integration branch, with one commit.
    Merge {
        tasks: Vec<String>,
    },
    /// Stop the merge.
    StopMerge,
    /// Mark a task as done in its source.
    Mark {
        task: String,
    },
    /// Record an event.
    Emit(PlanEvent),
    End {
        outcome: PlanOutcome,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskStart {
    pub task: Task,
    /// The number of the attempt, starting at 1.
    pub attempt: u64,
    /// Why the task runs again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejection: Option<Rejection>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<f64>,
}

/// Why a task is not run any more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum ParkReason {
    Failed {
        reason: String,
    },
    /// A task that it needs is parked, or is not part of the plan any more.
    Need {
        need: String,
    },
    /// It was rejected too often.
    Rejected {
        rejection: Rejection,
    },
    /// The user stopped it.
    Stopped,
}

/// An event of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PlanEvent {
    PlanStarted(Box<PlanHeader>),
    /// Another process runs the plan again.
    PlanResumed,
    /// The source was read, with these tasks in this order.
    TasksRead {
        tasks: Vec<ListedTask>,
    },
    TaskChosen {
        task: String,
        title: String,
        attempt: u64,
    },
    TaskRun {
        task: String,
        attempt: u64,
        run: String,
    },
    /// The run ended with all gates passed.
    TaskVerified {
        task: String,
        cost_usd: f64,
    },
    /// The work of an attempt is committed.
    TaskCommitted {
        task: String,
        attempt: u64,
        branch: String,
        commit: String,
    },
    /// The run ended without a result; the task stays open.
    TaskStopped {
        task: String,
        cost_usd: f64,
    },
    /// This commit will become the head of the integration branch, if it is still `base`.
    MergePrepared {
        tasks: Vec<String>,
        base: String,
        commit: String,
    },
    TaskMerged {
        task: String,
        commit: String,
    },
    /// The task runs again, on the new head of the integration branch.
    TaskRejected {
        task: String,
        rejections: u64,
        rejection: Rejection,
    },
    TaskDone {
        task: String,
    },
    TaskParked {
        task: String,
        #[serde(flatten)]
        why: ParkReason,
        #[serde(default)]
        cost_usd: f64,
    },
    /// The task is open again.
    TaskReopened {
        task: String,
    },
    TaskSkipped {
        task: String,
    },
    /// The source does not contain the task any more.
    TaskRemoved {
        task: String,
    },
    CommandReceived {
        id: String,
        #[serde(flatten)]
        command: PlanCommand,
    },
    Warning {
        text: String,
    },
    PlanEnded {
        #[serde(flatten)]
        outcome: PlanOutcome,
    },
}

/// A task in the list of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ListedTask {
    pub id: String,
    pub title: String,
}

/// What does not change while a plan is run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanHeader {
    pub version: u32,
    pub ralph: String,
    pub plan: String,
    /// As given on the command line; a file as an absolute path.
    pub source: String,
    pub root: String,
    pub jobs: usize,
    /// The integration branch; `None` if tasks run in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The commit from which the integration branch started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Tasks that the source marked as done at the start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub done_before: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<f64>,
    /// The only tasks to run; all if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<String>,
}

/// How a plan ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum PlanOutcome {
    /// Every selected task is done or skipped.
    Complete,
    /// Some tasks are parked.
    Incomplete,
    OutOfBudget,
    Interrupted {
        by: Interrupt,
    },
}

/// One line of a plan's journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanRecord {
    pub seq: u64,
    pub at: Timestamp,
    #[serde(flatten)]
    pub event: PlanEvent,
}
