//! The plain front end: prints a run as labeled lines of text, for a terminal, a pipe or a log.
//!
//! `PlainRenderer` formats records into the buffer of a `Page`; `Plain` writes the buffer.

mod argument;
mod callouts;
mod changes;
mod commands;
mod meta;
mod one_line;
mod output_buffer;
mod renderer;
mod report;
mod status;
#[cfg(test)]
mod tests;
mod tools;
mod transcript;
mod wrap;

pub(super) use argument::{fields, main_argument};
pub(super) use one_line::{head, one_line};

use std::io::{self, Write};
use std::time::Duration;

use jiff::Timestamp;

use self::renderer::PlainRenderer;
use super::Interest;
use crate::event::{Record, RunEvent, Sink};

/// How much the plain front end prints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Verbosity {
    /// Only the final report.
    Quiet,
    #[default]
    Normal,
    /// Tool input, tool output and thinking in full.
    Verbose,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlainOptions {
    pub color: bool,
    /// The writer is a terminal: show a status line and wrap lines.
    pub live: bool,
    /// Columns of the terminal. Without a terminal, the width of rules and one-line summaries.
    pub width: u16,
    pub verbosity: Verbosity,
}

/// A front end that prints a run as text.
pub struct Plain<W: Write> {
    writer: W,
    renderer: PlainRenderer,
    /// The latest time of a record or tick.
    now: Timestamp,
    /// The status line was removed for new output and must be redrawn.
    status_pending: bool,
}

/// The buffer is written before the next flush once it is larger than this.
const MAX_BUFFERED_BYTES: usize = 32 * 1024;

impl<W: Write> Plain<W> {
    /// Prints times of day in the system's time zone.
    pub fn new(writer: W, options: PlainOptions) -> Self {
        Self {
            writer,
            renderer: PlainRenderer::new(options, crate::ui::local_time_zone()),
            now: Timestamp::UNIX_EPOCH,
            status_pending: false,
        }
    }

    /// Prints times of day in the given time zone.
    #[cfg(test)]
    fn in_zone(mut self, zone: jiff::tz::TimeZone) -> Self {
        self.renderer.zone = zone;
        self
    }

    fn draw_status(&mut self) -> bool {
        self.status_pending = false;
        if self.renderer.next_tick().is_none() {
            return false;
        }
        let status = self.renderer.status_line(self.now);
        if let Some(text) = &status {
            self.renderer.page.draw_status(text);
        }
        status.is_some()
    }

    fn write_all(&mut self) -> io::Result<()> {
        self.write_first(self.renderer.page.out.len())?;
        self.writer.flush()
    }

    fn write_first(&mut self, count: usize) -> io::Result<()> {
        let written = self.writer.write_all(&self.renderer.page.out[..count]);
        // Discards the bytes after an error too, so that `drop` does not try to write them again.
        self.renderer.page.discard_written(count);
        written
    }
}

impl<W: Write + Send> super::FrontEnd for Plain<W> {
    fn interest(&self) -> Interest {
        match self.renderer.page.silent {
            true => Interest::ExceptOutput,
            false => Interest::Everything,
        }
    }

    /// The report of a resumed run covers the whole run: the usage of the roles and the changes.
    fn backfill(&mut self, record: &Record) {
        self.renderer.roles.apply(&record.event);
        if let RunEvent::Snapshot(snapshot) = &record.event {
            self.renderer.changes.apply(snapshot);
        }
    }

    /// Redraws the status line. Does nothing without a terminal or while the run is idle.
    fn tick(&mut self, now: Timestamp) -> io::Result<()> {
        self.now = now;
        if self.draw_status() {
            self.write_all()?;
        }
        Ok(())
    }

    fn next_tick(&self) -> Option<Duration> {
        self.renderer.next_tick()
    }

    fn suspend(&mut self) -> io::Result<()> {
        self.renderer.page.close();
        self.status_pending = false;
        self.write_all()
    }
}

impl<W: Write> Sink for Plain<W> {
    fn accept(&mut self, record: &Record) -> io::Result<()> {
        self.now = self.now.max(record.at);
        let had_status = self.renderer.page.has_status();
        self.renderer.apply(record);
        self.status_pending |= had_status && !self.renderer.page.has_status();
        if self.renderer.page.out.len() > MAX_BUFFERED_BYTES {
            self.write_first(self.renderer.page.out.len())?;
        }
        Ok(())
    }

    /// Writes everything on a terminal, but only complete lines otherwise, so that a reader of a pipe never sees a partial
    /// line.
    fn flush(&mut self) -> io::Result<()> {
        if self.renderer.page.live {
            if self.status_pending {
                self.draw_status();
            }
            return self.write_all();
        }
        let complete = memchr::memrchr(b'\n', &self.renderer.page.out).map_or(0, |at| at + 1);
        self.write_first(complete)?;
        self.writer.flush()
    }
}

impl<W: Write> Drop for Plain<W> {
    /// Writes the rest of the buffer and removes the status line.
    fn drop(&mut self) {
        self.renderer.page.close();
        // `drop` cannot report an error.
        let _ = self.write_all();
    }
}
