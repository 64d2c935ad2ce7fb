//! The faces: sinks that show a run to a person (`Plain`) or to a program (`JsonLines`), and the small pieces
//! with which they and the listings write. The only room that prints, and always into a writer that it was
//! given. It decides nothing, keeps nothing on disk, and reads no clock: time comes with the records and ticks.

pub mod clean;
mod json;
mod plain;
mod sentences;
mod table;
mod tone;
pub mod words;

pub use json::JsonLines;
pub use plain::{Plain, PlainOptions, Verbosity};
pub use sentences::{Verdict, iteration_verdict, run_verdict};
pub use table::{Cell, Table};
pub use tone::Tone;
