//! Works through a list of tasks: reads the list, runs each task as a run of its own, in place or in a worktree, merges the
//! results, and marks what the gates prove.

mod check;
mod children;
mod driver;
mod error;
mod fork_workspace;
mod git;
mod integration;
mod job;
mod merge;
mod plan_file;
mod prompt;
mod race;
mod read;
mod request;
mod screen;
mod source;
mod status;
#[deny(clippy::disallowed_methods)]
mod step;
mod task;
mod task_front_end;
mod worktree;

pub(crate) use children::{ChildOutcome, ChildProcesses};
pub use error::PlanError;
pub(crate) use fork_workspace::{ForkWorkspace, ForkWorkspaceRequest};
pub use job::{RunTask, StartError, TaskJob};
pub use plan_file::NewGates;
#[cfg(feature = "fleet")]
pub use prompt::task_prompt;
pub(crate) use race::{Contender, RaceEnd, RaceNews, RaceResult, race};
pub use read::{PlanText, TaskMark, read_plan};
pub use request::{PlanEnd, PlanRequest, PlanStart};
pub use screen::PlanScreen;
pub use source::Source;
pub use status::{PlanStatus, StoredPlan};
#[cfg(feature = "fleet")]
pub use step::{
    Action, Input, Integration, ListedTask, ParkReason, Plan, PlanCommand, PlanEvent, PlanOptions,
    PlanOutcome, PlannedTask, ReadTask, Rejection, TaskEnd, TaskStart, TaskState,
};
pub use step::{Budget, Grant};
pub use task::Task;
