//! Tests of resuming, commands to a running loop, progress detection, allowed paths, hooks, and the user's repository.

mod bounds;
mod hooks;
mod killed;
mod steering;
