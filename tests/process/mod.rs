//! Tests of child processes with the real supervisor and the fake agent: streams, exits, process trees, errors.

mod capture;
mod errors;
pub(crate) mod helpers;
mod streams;
#[cfg(target_os = "linux")]
mod supervisors;
#[cfg(target_os = "linux")]
mod tree;
