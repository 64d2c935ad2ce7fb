//! Works through a list of tasks: reads the list, runs each task as a run of its own, and marks what its gates prove.
#![expect(dead_code, reason = "`ralph plan run` will use the rest")]
#![cfg_attr(
    not(test),
    expect(unused_imports, reason = "`ralph plan run` will use the rest")
)]

mod check;
mod error;
mod read;
mod source;
#[deny(clippy::disallowed_methods)]
mod step;
mod task;

pub use error::PlanError;
pub use read::{TaskMark, read_plan};
pub use source::Source;
pub use step::{Budget, Grant};
pub use task::Task;
