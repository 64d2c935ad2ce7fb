//! `ralph` runs a headless coding agent in a loop until the work is verifiably done.
//!
//! The rooms, in the order in which they may know each other (each knows only those above it):

/// WORDS: what can happen, as plain data.
#[deny(clippy::disallowed_methods)]
pub mod event;

/// CHILDREN: spawn on pipes or a PTY, read, feed stdin, stop the whole tree; knows no agent.
pub mod process;

/// READING: an agent's lines become transcript events; pure.
#[deny(clippy::disallowed_methods)]
pub mod transcript;
