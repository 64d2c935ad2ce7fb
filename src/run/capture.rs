//! Parses a raw capture as a run would: bytes become lines, lines become transcript events. Only one chunk of the capture
//! is in memory at a time.

use std::io::{self, ErrorKind, Read};

use crate::event::TranscriptEvent;
use crate::process::LineSplitter;
use crate::transcript::{AdapterContext, Format};

use super::agent_output::read_line;

const CHUNK: usize = 64 * 1024;

/// Receives the events of a capture.
pub trait Listener {
    fn on_event(&mut self, event: TranscriptEvent) -> io::Result<()>;

    /// Called when no more input is available at the moment.
    fn pause(&mut self) -> io::Result<()>;
}

/// The error that ended the reading of a capture early.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    #[error("cannot be read")]
    Input(#[source] io::Error),
    #[error("cannot be shown")]
    Output(#[source] io::Error),
}

/// The options for reading a capture.
#[derive(Debug, Clone, Copy)]
pub struct CaptureReading<'a> {
    pub format: &'static Format,
    /// The prompt as it was sent, if known.
    pub prompt: &'a str,
    pub max_line_bytes: usize,
}

/// Reads a capture to its end; returns its length in bytes.
pub fn read_capture(
    input: &mut dyn Read,
    reading: CaptureReading<'_>,
    listener: &mut dyn Listener,
) -> Result<u64, CaptureError> {
    let mut adapter = (reading.format.open)(&AdapterContext::new(reading.prompt));
    let mut lines = LineSplitter::new(reading.max_line_bytes);
    let mut events = Vec::new();
    let mut chunk = vec![0; CHUNK];
    let mut bytes = 0;
    loop {
        let length = match input.read(&mut chunk) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(CaptureError::Input(error)),
        };
        bytes += length as u64;
        lines.feed(&chunk[..length], |line| {
            read_line(adapter.as_mut(), line.bytes, line.cut, &mut events);
        });
        tell(&mut events, listener).map_err(CaptureError::Output)?;
    }
    lines.finish(|line| read_line(adapter.as_mut(), line.bytes, line.cut, &mut events));
    adapter.flush(&mut events);
    tell(&mut events, listener).map_err(CaptureError::Output)?;
    Ok(bytes)
}

fn tell(events: &mut Vec<TranscriptEvent>, listener: &mut dyn Listener) -> io::Result<()> {
    events.drain(..).try_for_each(|event| listener.on_event(event))?;
    listener.pause()
}
