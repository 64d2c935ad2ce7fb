//! Tests of runs with several agents: roles, fallback, questions, quotas and reviews, with the real program and the fake
//! agent.

mod budgets;
mod fallback;
mod notifications;
mod questions;
mod quota;
mod review;
mod review_command;
mod roles;
mod server;

use crate::sandbox::Sandbox;

/// Writes the whole `ralph.yml` of the workspace.
fn write_config(sandbox: &Sandbox, text: &str) {
    std::fs::write(sandbox.work().join("ralph.yml"), text).expect("a configuration");
}
