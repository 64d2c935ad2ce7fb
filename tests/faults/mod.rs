//! Faults: agents, disks and input that misbehave, and what must hold all the same. docs/reliability.md has the table.

mod agents;
mod input;
mod loops;
#[cfg(debug_assertions)]
mod panics;
mod secrets;
mod storage;
