//! The faces: sinks that show a run to a person (`Plain`, `Tui`) or to a program (`JsonLines`), and the small
//! pieces with which they and the listings write. The only room that prints, and always into a writer that it was
//! given. It decides nothing, keeps nothing on disk, and reads no clock: time comes with the records and ticks.
//! (One exception: the thread that draws the TUI, in `tui/render_loop.rs`, is its own hands; it knows what time it is.)

pub mod clean;
mod dedup;
mod describe;
mod escapes;
pub mod export;
mod json;
mod live_lines;
mod modes;
mod passthrough;
mod plain;
mod raw_mode;
mod run_summary;
mod stdout;
mod table;
mod terminal;
mod tone;
pub mod tui;
pub mod units;

pub use describe::{
    PassedGates, Verdict, blind_budget, gate_words, iteration_verdict, iteration_word, run_advice,
    run_verdict,
};
pub use escapes::{Escapes, Seen};
pub use json::JsonLines;
pub use live_lines::{LiveLines, LiveLinesOptions};
pub use passthrough::{Passthrough, PassthroughEnd};
pub use plain::{Plain, PlainOptions, Verbosity};
pub use raw_mode::RawMode;
pub use run_summary::{AttemptSummary, GateRun, RunSummary};
pub use stdout::begin_shutdown;
pub use table::{Cell, Table};
pub use terminal::{ColourChoice, Confirmed, Terminal};
pub use tone::Tone;

use std::io;
use std::time::Duration;

use jiff::Timestamp;

use crate::event::{Record, Sink};

/// Whether a face reads the keyboard itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Keyboard {
    Free,
    Taken,
}

/// A sink that somebody looks at.
pub trait FrontEnd: Sink {
    /// Time has passed; whatever shows time is drawn again.
    fn tick(&mut self, _now: Timestamp) -> io::Result<()> {
        Ok(())
    }

    /// Something that happened before, in another process: for whoever looks back.
    fn recall(&mut self, _record: &Record) {}

    /// Where what the watcher wants can be said from now on. A face without a keyboard has nothing to say.
    fn set_commands(&mut self, _door: Box<dyn tui::CommandSender>) -> Keyboard {
        Keyboard::Free
    }

    /// The run is over, in whatever way it ended well enough to say so. A face that can be read stays for its reader.
    fn finish(&mut self) {}

    /// How long until it wants the next tick; `None` when it shows no time.
    fn wants_tick(&self) -> Option<Duration> {
        None
    }

    /// Somebody else draws from now on: what is only there for the moment goes.
    fn suspend(&mut self) -> io::Result<()> {
        self.flush()
    }
}
