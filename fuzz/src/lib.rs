//! What must hold for any bytes whatever. Each target in `fuzz_targets` is one line that calls one of these.

mod claims;
mod files;
mod filter;
mod transcript;

pub use claims::claims;
pub use files::{config, foreign, journal};
pub use filter::filter;
pub use transcript::transcript;
