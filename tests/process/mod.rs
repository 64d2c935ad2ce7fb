//! Children, with the real keeper and the fake agent: streams, endings, trees, errors.

mod capture;
mod errors;
#[cfg(target_os = "linux")]
mod keepers;
pub(crate) mod stage;
mod streams;
#[cfg(target_os = "linux")]
mod tree;
