//! The supervisor: a small process between ralph and an agent that stops the agent's whole process tree.

pub(super) mod main;
pub(super) mod pool;
pub(super) mod watch;
