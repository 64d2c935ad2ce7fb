//! Workflows: adapters between the engine and pure decisions. They contain no decision of their own about tasks, costs or accounts.

mod account;
mod plan;
mod task;

pub(crate) use account::{Account, AccountMessage, AccountSpec};
pub(crate) use plan::PlanRun;
pub(crate) use task::TaskRun;
