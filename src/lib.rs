//! `ralph` runs a headless coding agent in a loop until the work is verifiably done.
//!
//! The rooms, in the order in which they may know each other (each knows only those above it):

/// WORDS: what can happen, as plain data.
#[deny(clippy::disallowed_methods)]
pub mod event;

/// WISHES: `ralph.yml`, environment and flags become one `Settings`; explains mistakes.
pub mod config;

/// READING: an agent's lines become transcript events; pure.
#[deny(clippy::disallowed_methods)]
pub mod transcript;

/// JUDGEMENT: limits, markers, gates, retries, waiting; a pure state machine.
#[deny(clippy::disallowed_methods)]
pub mod engine;

/// MEMORY: journal, raw bytes and lock of each run.
pub mod store;
