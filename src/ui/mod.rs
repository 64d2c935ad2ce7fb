//! Front ends that show a run to a person (`Plain`, `Tui`) or to a program (`JsonLines`), exports, and the helpers that
//! format text for listings.
//!
//! Only this module prints. It stores nothing on disk and does not read the clock: records and ticks carry the time.
//! The one exception is the thread that draws the TUI (`tui/render_loop.rs`), which reads the clock itself.

pub mod clean;
pub mod export;
mod json;
mod live_lines;
mod passthrough;
mod plain;
mod raw_mode;
mod run_summary;
mod stdout;
mod table;
mod terminal;
mod terminal_modes;
mod time_zone;
mod tone;
pub mod tui;
mod usage_by_role;

pub use crate::event::{
    PassedGates, Tone, Verdict, gate_failure, iteration_label, iteration_verdict, next_step, run_verdict,
    units, unknown_cost,
};
pub use json::{JsonLines, pretty_json};
pub use live_lines::{LiveLines, LiveLinesOptions};
pub use passthrough::{Passthrough, PassthroughEnd};
pub use plain::{Plain, PlainOptions, Verbosity};
pub use raw_mode::RawMode;
pub use run_summary::{AttemptSummary, RunSummary};
pub use stdout::StdoutShutdown;
pub use table::{Cell, Table};
pub use terminal::{ColorChoice, Confirmed, Terminal};
pub use time_zone::local_time_zone;
pub use usage_by_role::UsageByRole;

use std::io;
use std::time::Duration;

use jiff::Timestamp;

use crate::event::{CommandSender, Record, RunEvent, Sink};
use crate::panic_hook::PanicScope;
use crate::signals::Signals;

/// The resources of the process that front ends use.
#[derive(Clone)]
pub struct UiHost {
    pub panics: PanicScope,
    pub signals: Signals,
    pub stdout: StdoutShutdown,
}

/// How long a stopped run waits for a reader that does not read.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(1);

/// Whether a front end reads the keyboard itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum KeyboardUse {
    Free,
    Taken,
}

/// Why a front end closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    /// The user closed it; the run does not depend on it.
    ByUser,
    /// The terminal was closed or cannot be used any more.
    TerminalLost,
}

/// A function that is called once when a front end closes.
pub type OnClose = Box<dyn FnOnce(CloseReason) + Send>;

/// The records that a front end needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    Everything,
    /// Everything except the agent's output.
    ExceptOutput,
}

impl Interest {
    pub fn includes(self, event: &RunEvent) -> bool {
        match self {
            Self::Everything => true,
            Self::ExceptOutput => !matches!(event, RunEvent::Transcript { .. } | RunEvent::Stderr { .. }),
        }
    }
}

/// A sink that presents a run while it is running. A run calls it on a thread of its own, so it may block.
pub trait FrontEnd: Sink + Send {
    /// The records that `accept` needs.
    fn interest(&self) -> Interest {
        Interest::Everything
    }

    /// How long a stopped run waits for a front end that accepts nothing.
    fn shutdown_grace(&self) -> Duration {
        SHUTDOWN_GRACE
    }

    /// Redraws everything that shows the time.
    fn tick(&mut self, _now: Timestamp) -> io::Result<()> {
        Ok(())
    }

    /// Adds a record of an earlier process of the same run to the history.
    fn backfill(&mut self, _record: &Record) {}

    /// Sets the sender for the user's commands. Front ends that do not read the keyboard ignore it.
    fn set_commands(&mut self, _commands: CommandSender) -> KeyboardUse {
        KeyboardUse::Free
    }

    /// Sets the function that is called when the front end closes before the records end. Front ends that close only by a
    /// write error ignore it.
    fn on_close(&mut self, _on_close: OnClose) {}

    /// Called after the run has ended and its end was recorded. The TUI stays open until the user closes it.
    fn finish(&mut self) {}

    /// The time until the next `tick` is due; `None` if nothing on screen depends on the time.
    fn next_tick(&self) -> Option<Duration> {
        None
    }

    /// Removes temporary output, such as the status line, before another program uses the terminal.
    fn suspend(&mut self) -> io::Result<()> {
        self.flush()
    }
}
