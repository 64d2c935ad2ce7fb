//! `ralph` runs a headless coding agent in a loop until the work is verifiably done.
//!
//! The rooms, in the order in which they may know each other (each knows only those above it):

/// WORDS: what can happen, as plain data.
#[deny(clippy::disallowed_methods)]
pub mod event;

/// READING: an agent's lines become transcript events; pure.
#[deny(clippy::disallowed_methods)]
pub mod transcript;

/// FACES: sinks that show a run to a person or a program; the only room that prints.
pub mod ui;
