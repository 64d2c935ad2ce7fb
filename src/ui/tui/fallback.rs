//! Where a run is told when drawing it has failed: line by line, on the terminal that was given back. A mistake in a
//! picture must not cost a night's work.

use std::io;
use std::time::Duration;

use jiff::Timestamp;

use crate::event::{Record, RunEvent, Sink};
use crate::ui::stdout::StdoutWriter;
use crate::ui::{FrontEnd, Plain, PlainOptions};

pub(super) struct Fallback {
    options: PlainOptions,
    /// What one must know to understand the rest: the run, and its iteration.
    opening: [Option<Record>; 2],
    plain: Option<Plain<StdoutWriter>>,
}

impl Fallback {
    pub(super) fn new(options: PlainOptions) -> Self {
        Self {
            options,
            opening: [None, None],
            plain: None,
        }
    }

    pub(super) fn note(&mut self, record: &Record) {
        let place = match &record.event {
            RunEvent::RunStarted(_) | RunEvent::RunResumed(_) => 0,
            RunEvent::IterationStarted { .. } => 1,
            _ => return,
        };
        self.opening[place] = Some(record.clone());
    }

    pub(super) fn accept(&mut self, record: &Record) -> io::Result<()> {
        if let Some(plain) = &mut self.plain {
            return plain.accept(record);
        }
        let mut plain = Plain::new(StdoutWriter::stdout(), self.options);
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

    pub(super) fn wants_tick(&self) -> Option<Duration> {
        self.plain.as_ref().and_then(FrontEnd::wants_tick)
    }
}
