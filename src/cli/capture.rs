//! A file of raw output, read into events for a front end.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use jiff::Timestamp;

use crate::config::Settings;
use crate::event::{Record, RunEvent, TranscriptEvent};
use crate::run::{CaptureError, CaptureReading, Listener, read_capture};
use crate::store::capture_context;
use crate::transcript::{self, Format};
use crate::ui::{FrontEnd, Terminal};

use super::common::ignore_broken_pipe;
use super::error::CliError;
use super::exit::Exit;

/// A file of raw output, with its format and prompt.
pub(super) struct Capture<'a> {
    path: &'a Path,
    input: Box<dyn Read>,
    format: &'static Format,
    prompt: String,
}

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
            (Box::new(file), capture_context(path))
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
                    "stdin is empty".to_owned()
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

/// Passes events to a front end.
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
            chain: None,
            seq: self.seq,
            // Raw output has no timestamps.
            at: Timestamp::UNIX_EPOCH,
            event: RunEvent::Transcript { iteration: 1, event },
        })
    }

    fn pause(&mut self) -> io::Result<()> {
        self.front_end.flush()
    }
}
