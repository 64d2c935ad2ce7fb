//! The plain face: a run as lines of text under a gutter, for a terminal, a pipe or a log.
//! `Plain` owns the writer; `PlainRenderer` folds records onto a `Page`; neither decides anything about the run.

mod argument;
mod callouts;
mod flow;
mod meta;
mod one_line;
mod page;
mod renderer;
mod report;
mod status;
mod steering;
#[cfg(test)]
mod tests;
mod tools;
mod transcript;

pub(super) use argument::{fields, first_argument};
pub(super) use one_line::{head, one_line};

use std::io::{self, Write};
use std::time::Duration;

use jiff::{Timestamp, tz::TimeZone};

use self::renderer::PlainRenderer;
use crate::event::{Record, Sink, Usage};

/// How much the plain face tells.
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
    pub colour: bool,
    /// The writer is a terminal: a status line is allowed, and lines are wrapped.
    pub live: bool,
    /// Columns of the terminal, or of the page that rules and one-line summaries are cut to.
    pub width: u16,
    pub verbosity: Verbosity,
}

/// A sink that tells the run to a person.
pub struct Plain<W: Write> {
    writer: W,
    face: PlainRenderer,
    /// The latest moment that was heard of.
    now: Timestamp,
    /// A status line was on the screen and was taken away for what came since.
    owes_status: bool,
}

/// More than this is not kept back until the next flush.
const MOST_BUFFERED: usize = 32 * 1024;

impl<W: Write> Plain<W> {
    /// Times of day are those of the system's time zone.
    pub fn new(writer: W, options: PlainOptions) -> Self {
        Self {
            writer,
            face: PlainRenderer::new(options, TimeZone::system()),
            now: Timestamp::UNIX_EPOCH,
            owes_status: false,
        }
    }

    /// Gives times of day in another zone.
    #[must_use]
    pub fn in_zone(mut self, zone: TimeZone) -> Self {
        self.face.zone = zone;
        self
    }

    /// What a resumed run had used before, so that running totals go on from there.
    #[must_use]
    pub fn having_used(mut self, earlier: &Usage) -> Self {
        self.face.used.add(earlier);
        self
    }

    /// The terminal has another width from now on.
    pub fn resize(&mut self, width: u16) {
        self.face.page.resize(width);
    }

    fn draw_status(&mut self) -> bool {
        self.owes_status = false;
        if self.face.wants_tick().is_none() {
            return false;
        }
        let status = self.face.status_line(self.now);
        if let Some(text) = &status {
            self.face.page.draw_status(text);
        }
        status.is_some()
    }

    fn write_all(&mut self) -> io::Result<()> {
        self.write_first(self.face.page.out.len())?;
        self.writer.flush()
    }

    fn write_first(&mut self, count: usize) -> io::Result<()> {
        let written = self.writer.write_all(&self.face.page.out[..count]);
        // Also after an error: what could not be written once is not tried again at the end.
        self.face.page.forget_written(count);
        written
    }
}

impl<W: Write> super::FrontEnd for Plain<W> {
    /// Redraws the status line. Does nothing on a face that is not live, or while nothing is going on.
    fn tick(&mut self, now: Timestamp) -> io::Result<()> {
        self.now = now;
        if self.draw_status() {
            self.write_all()?;
        }
        Ok(())
    }

    /// How soon the next tick is wanted; `None` while there is nothing to redraw.
    fn wants_tick(&self) -> Option<Duration> {
        self.face.wants_tick()
    }

    fn suspend(&mut self) -> io::Result<()> {
        self.face.page.close();
        self.owes_status = false;
        self.write_all()
    }
}

impl<W: Write> Sink for Plain<W> {
    fn accept(&mut self, record: &Record) -> io::Result<()> {
        self.now = self.now.max(record.at);
        let had_status = self.face.page.has_status();
        self.face.apply(record);
        self.owes_status |= had_status && !self.face.page.has_status();
        if self.face.page.out.len() > MOST_BUFFERED {
            self.write_first(self.face.page.out.len())?;
        }
        Ok(())
    }

    /// On a terminal everything becomes visible, half a line too; elsewhere only whole lines do, so that what
    /// follows a pipe never sees half a line.
    fn flush(&mut self) -> io::Result<()> {
        if self.face.page.live {
            if self.owes_status {
                self.draw_status();
            }
            return self.write_all();
        }
        let whole = memchr::memrchr(b'\n', &self.face.page.out).map_or(0, |at| at + 1);
        self.write_first(whole)?;
        self.writer.flush()
    }
}

impl<W: Write> Drop for Plain<W> {
    /// However the run ends, nothing stays in the buffer and no status line on the screen.
    fn drop(&mut self) {
        self.face.page.close();
        // Nobody is left to hear of an error.
        let _ = self.write_all();
    }
}
