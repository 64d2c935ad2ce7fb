//! Tests of the decisions of the loop with the real program: usage limits, budgets, gates, `ralph understand`.
//! None of them changes the user's repository.

mod budgets;
mod dry_run;
mod gates;
mod limits;
mod understand;

use crate::sandbox::{CommandOutput, Sandbox};

/// Runs ralph in a repository with local changes and asserts that the repository is unchanged.
#[track_caller]
fn in_a_repository(sandbox: &Sandbox, arguments: &[&str]) -> CommandOutput {
    sandbox.init_git_repository();
    let before = sandbox.git_state();
    let output = sandbox.ralph(arguments);
    assert!(
        sandbox.git_state() == before,
        "the user's repository has changed: {output:?}"
    );
    output
}
