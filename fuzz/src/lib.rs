//! What must hold for any bytes whatever. Each target in `fuzz_targets` is one line that calls one of these.

mod claims;
mod transcript;

pub use claims::claims;
pub use transcript::transcript;
