//! The screen, on a real terminal: a PTY with an emulator behind it. What is shown, what keys do, and what is left of
//! the terminal on every way out.

mod agent_screens;
mod attach;
mod drawing_cost;
mod exit;
mod keys;
pub(crate) mod terminal;

use crate::sandbox::{Sandbox, claude};

/// An agent that says something and then works for ever.
fn hanging() -> Sandbox {
    let script = format!("{}{}hang\n", claude::init(), claude::message("m1", "at work"));
    Sandbox::new().with_agent("claude").playing("default", &script)
}
