//! Tests that inject faults: misbehaving agents, full disks, hostile output, killed processes. docs/reliability.md lists them.

mod agents;
mod common;
mod environment;
mod input;
mod leftovers;
#[cfg(debug_assertions)]
mod panics;
mod responsiveness;
mod secrets;
mod storage;
mod streams;
