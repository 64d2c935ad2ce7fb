//! Plain output after the render thread has panicked.
//!
//! A drawing bug must not end the run, so its records are printed as lines on the restored terminal.

use std::io;
use std::time::Duration;

use jiff::Timestamp;

use crate::event::{Record, RunEvent, Sink};
use crate::ui::stdout::{StdoutShutdown, StdoutWriter};
use crate::ui::{FrontEnd, Plain, PlainOptions};

pub(super) struct Fallback {
    options: PlainOptions,
    shutdown: StdoutShutdown,
    /// The latest run and iteration start, printed first to give context.
    opening: [Option<Record>; 2],
    plain: Option<Plain<StdoutWriter>>,
}

impl Fallback {
    pub(super) fn new(options: PlainOptions, shutdown: StdoutShutdown) -> Self {
        Self {
            options,
            shutdown,
            opening: [None, None],
            plain: None,
        }
    }

    pub(super) fn remember(&mut self, record: &Record) {
        let index = match &record.event {
            RunEvent::RunStarted(_) | RunEvent::RunResumed(_) => 0,
            RunEvent::IterationStarted { .. } => 1,
            _ => return,
        };
        self.opening[index] = Some(record.clone());
    }

    pub(super) fn accept(&mut self, record: &Record) -> io::Result<()> {
        if let Some(plain) = &mut self.plain {
            return plain.accept(record);
        }
        let mut plain = Plain::new(StdoutWriter::new(self.shutdown.clone()), self.options);
        let before = self.opening.iter().flatten();
        before
            .filter(|opening| opening.seq < record.seq)
            .try_for_each(|opening| plain.accept(opening))?;
        self.plain.insert(plain).accept(record)
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.plain.as_mut().map_or(Ok(()), Sink::flush)
    }

    pub(super) fn tick(&mut self, now: Timestamp) -> io::Result<()> {
        self.plain.as_mut().map_or(Ok(()), |plain| plain.tick(now))
    }

    pub(super) fn next_tick(&self) -> Option<Duration> {
        self.plain.as_ref().and_then(FrontEnd::next_tick)
    }
}
