//! `ralph transcript`: the events of an agent's raw output, for a person or for a program.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use jiff::Timestamp;

use crate::config::Settings;
use crate::event::{Record, RunEvent, TranscriptEvent};
use crate::run::{CaptureError, CaptureReading, Listener, read_capture};
use crate::store::context_of_capture;
use crate::transcript::{self, Format};
use crate::ui::{FrontEnd, JsonLines, Terminal, Verbosity};

use super::args::TranscriptArguments;
use super::error::CliError;
use super::exit::Exit;

pub(super) fn transcript(arguments: &TranscriptArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let capture = Capture::open(&arguments.file, &arguments.transcript)?;
    if arguments.json {
        return capture.read(&mut JsonListener(terminal.json_lines()), terminal);
    }
    let mut front_end = terminal.plain_face(Verbosity::Normal);
    capture.read(&mut FrontEndListener::new(front_end.as_mut()), terminal)
}

/// Raw output, and how to read it.
pub(super) struct Capture<'a> {
    path: &'a Path,
    input: Box<dyn Read>,
    format: &'static Format,
    prompt: String,
}

/// The format of a file by itself, and what stands for stdin.
const PLAIN: &str = "plain";
const AUTO: &str = "auto";
const STDIN: &str = "-";

impl<'a> Capture<'a> {
    pub(super) fn open(path: &'a Path, format: &str) -> Result<Self, CliError> {
        let named = Some(format).filter(|name| *name != AUTO);
        if let Some(name) = named.filter(|name| transcript::find(name).is_none()) {
            return Err(CliError::UnknownTranscript {
                name: name.to_owned(),
            });
        }
        let (input, context): (Box<dyn Read>, _) = if path == Path::new(STDIN) {
            (Box::new(io::stdin()), None)
        } else {
            let file = File::open(path).map_err(|source| CliError::InputUnreadable {
                path: path.to_owned(),
                source,
            })?;
            (Box::new(file), context_of_capture(path))
        };
        let recorded = context.as_ref().map(|context| context.transcript.as_str());
        let name = named.or(recorded).unwrap_or(PLAIN);
        let unknown = || CliError::UnknownTranscript {
            name: name.to_owned(),
        };
        let format = transcript::find(name).ok_or_else(unknown)?;
        let prompt = context.map(|context| context.prompt).unwrap_or_default();
        Ok(Self {
            path,
            input,
            format,
            prompt,
        })
    }

    pub(super) fn read(mut self, listener: &mut dyn Listener, terminal: &Terminal) -> Result<Exit, CliError> {
        let reading = CaptureReading {
            format: self.format,
            prompt: &self.prompt,
            max_line_bytes: usize::try_from(Settings::default().event_loop.max_line_bytes)
                .unwrap_or(usize::MAX),
        };
        match read_capture(self.input.as_mut(), reading, listener) {
            Ok(0) => {
                let text = if self.path == Path::new(STDIN) {
                    "there is nothing on stdin".to_owned()
                } else {
                    format!("{} is empty", self.path.display())
                };
                terminal.warn(&text).map_err(CliError::Output)?;
                Ok(Exit::Success)
            }
            Ok(_) => Ok(Exit::Success),
            Err(CaptureError::Input(source)) => Err(CliError::InputUnreadable {
                path: self.path.to_owned(),
                source,
            }),
            Err(CaptureError::Output(error)) => ignore_broken_pipe(error),
        }
    }
}

/// Whoever closed the pipe has seen enough.
pub(super) fn ignore_broken_pipe(error: io::Error) -> Result<Exit, CliError> {
    if error.kind() == io::ErrorKind::BrokenPipe {
        Ok(Exit::Success)
    } else {
        Err(CliError::Output(error))
    }
}

/// Events as they are, for a program.
struct JsonListener<W: Write>(JsonLines<W>);

impl<W: Write> Listener for JsonListener<W> {
    fn on_event(&mut self, event: TranscriptEvent) -> io::Result<()> {
        self.0.write(&event)
    }

    fn pause(&mut self) -> io::Result<()> {
        crate::event::Sink::flush(&mut self.0)
    }
}

/// Events as a face shows them.
pub(super) struct FrontEndListener<'a> {
    front_end: &'a mut dyn FrontEnd,
    seq: u64,
}

impl<'a> FrontEndListener<'a> {
    pub(super) fn new(front_end: &'a mut dyn FrontEnd) -> Self {
        Self { front_end, seq: 0 }
    }
}

impl Listener for FrontEndListener<'_> {
    fn on_event(&mut self, event: TranscriptEvent) -> io::Result<()> {
        self.seq += 1;
        self.front_end.accept(&Record {
            seq: self.seq,
            // Nobody wrote down when it was printed.
            at: Timestamp::UNIX_EPOCH,
            event: RunEvent::Transcript { iteration: 1, event },
        })
    }

    fn pause(&mut self) -> io::Result<()> {
        self.front_end.flush()
    }
}
