//! Faults: agents, disks and input that misbehave, and what must hold all the same. docs/reliability.md has the table.

mod agents;
mod input;
mod loops;
mod secrets;
mod storage;
