//! Tests of the TUI on a PTY with a terminal emulator: output, keys, and the state of the terminal after every kind of exit.

mod agent_screens;
mod attach;
mod drawing_cost;
mod exit;
mod keys;
pub(crate) mod terminal;

use crate::sandbox::{Sandbox, claude};

/// A sandbox whose agent prints a message and then hangs.
fn hanging_agent() -> Sandbox {
    let script = format!(
        "{}{}hang\n",
        claude::init(),
        claude::message("m1", "agent is running")
    );
    Sandbox::new()
        .with_agent("claude")
        .with_script("default", &script)
}
