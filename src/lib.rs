//! `ralph` runs a headless coding agent in a loop until the work is verifiably done.
//!
//! The rooms, in the order in which they may know each other (each knows only those above it):

/// MISHAPS: mistakes of ralph's own; told in one line, and never the end of more than they must be.
pub mod panic_hook;

/// WORDS: what can happen, as plain data.
#[deny(clippy::disallowed_methods)]
pub mod event;

/// WISHES: `ralph.yml`, environment and flags become one `Settings`; explains mistakes.
pub mod config;

/// CHILDREN: spawn on pipes or a PTY, read, feed stdin, stop the whole tree; knows no agent.
pub mod process;

/// READING: an agent's lines become transcript events; pure.
#[deny(clippy::disallowed_methods)]
pub mod transcript;

/// WHO: the table of agents, the user's own, detection, prompt delivery.
pub mod agent;

/// JUDGEMENT: limits, hats, markers, gates, retries, waiting; a pure state machine.
#[deny(clippy::disallowed_methods)]
pub mod engine;

/// MEMORY: journal, raw bytes and lock of each run.
pub mod store;

/// FACES: sinks of what happens; the only room that prints.
pub mod ui;

/// HANDS: the meeting room; inbox, engine, and what it asks for.
pub mod run;

/// CHECKS: is everything in place, and if not, what helps.
pub mod doctor;

/// DOOR: arguments in, exit code out.
pub mod cli;
