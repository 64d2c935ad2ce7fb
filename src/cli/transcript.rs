//! `ralph transcript`: parses an agent's raw output and prints its events.

use std::io::{self, Write};

use crate::event::TranscriptEvent;
use crate::run::Listener;
use crate::ui::{JsonLines, Terminal, Verbosity};

use super::args::TranscriptArguments;
use super::capture::{Capture, FrontEndListener};
use super::error::CliError;
use super::exit::Exit;

pub(super) fn transcript(arguments: &TranscriptArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let capture = Capture::open(&arguments.file, &arguments.transcript)?;
    if arguments.json {
        return capture.read(&mut JsonListener(terminal.json_lines()), terminal);
    }
    let mut front_end = terminal.plain_front_end(Verbosity::Normal);
    capture.read(&mut FrontEndListener::new(front_end.as_mut()), terminal)
}

/// Prints events as JSON lines.
struct JsonListener<W: Write>(JsonLines<W>);

impl<W: Write> Listener for JsonListener<W> {
    fn on_event(&mut self, event: TranscriptEvent) -> io::Result<()> {
        self.0.write(&event)
    }

    fn pause(&mut self) -> io::Result<()> {
        crate::event::Sink::flush(&mut self.0)
    }
}
