//! Tests of runs with several agents: roles, fallback, questions, quotas and reviews, with the real program and the fake
//! agent.

mod fallback;
mod questions;
mod review;
mod review_command;
mod roles;

use crate::sandbox::Sandbox;

/// Writes the whole `ralph.yml` of the workspace.
fn write_config(sandbox: &Sandbox, text: &str) {
    std::fs::write(sandbox.work().join("ralph.yml"), text).expect("a configuration");
}
