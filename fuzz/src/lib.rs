//! Properties that hold for arbitrary input. Each target in `fuzz_targets` calls one of these functions.

mod claims;
mod files;
mod filter;
mod transcript;

pub use claims::claims;
pub use files::{config, imported_config, journal};
pub use filter::jq_filter;
pub use transcript::transcript;
