//! A loop that can be trusted for a night, shown through the program itself: limits that are waited for, budgets,
//! gates, hats, and a map of the code. In all of it the user's git stays as it was.

mod budgets;
mod dry_run;
mod gates;
mod limits;
mod understand;

use crate::sandbox::{Sandbox, Told};

/// Calls `ralph` in a repository that somebody lives in, which must be as it was afterwards.
#[track_caller]
fn in_a_repository(sandbox: &Sandbox, arguments: &[&str]) -> Told {
    sandbox.live_in();
    let before = sandbox.git_state();
    let told = sandbox.ralph(arguments);
    assert!(
        sandbox.git_state() == before,
        "the user's git has changed: {told:?}"
    );
    told
}
