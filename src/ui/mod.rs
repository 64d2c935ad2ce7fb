//! The faces: sinks that show a run to a person (`Plain`) or to a program (`JsonLines`), and the small pieces
//! with which they and the listings write. The only room that prints, and always into a writer that it was
//! given. It decides nothing, keeps nothing on disk, and reads no clock: time comes with the records and ticks.

mod account;
pub mod clean;
pub mod export;
mod json;
mod plain;
mod sentences;
mod table;
mod terminal;
mod tone;
pub mod words;

pub use account::{Account, GateRun, Turn};
pub use json::JsonLines;
pub use plain::{Plain, PlainOptions, Verbosity};
pub use sentences::{
    Verdict, blind_budget, gate_words, iteration_verdict, iteration_word, run_advice, run_verdict,
};
pub use table::{Cell, Table};
pub use terminal::{ColourChoice, Confirmed, Terminal};
pub use tone::Tone;

use std::io;
use std::time::Duration;

use jiff::Timestamp;

use crate::event::Sink;

/// A sink that somebody looks at.
pub trait Face: Sink {
    /// Time has passed; whatever shows time is drawn again.
    fn tick(&mut self, _now: Timestamp) -> io::Result<()> {
        Ok(())
    }

    /// How long until it wants the next tick; `None` when it shows no time.
    fn wants_tick(&self) -> Option<Duration> {
        None
    }
}
