//! Reads the output of a short program while it runs, in bounded memory.

use std::io::{self, Read};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Child, ChildEvent, Chunk, ProcessError, ProcessSpec, Supervisors};
use crate::event::{ProcessEnd, StreamName};

/// The first bytes of stderr are kept for error messages.
const MAX_STDERR: usize = 16 << 10;

/// A running program whose stdout is read. Dropping it kills the program.
#[derive(Debug)]
pub struct OutputReader {
    chunks: Receiver<Chunk>,
    current: Option<(Chunk, usize)>,
    stderr: Arc<Mutex<Vec<u8>>>,
    end: Receiver<ProcessEnd>,
    _child: Child,
}

impl OutputReader {
    pub(super) fn start(supervisors: &Supervisors, spec: &ProcessSpec) -> Result<Self, ProcessError> {
        let (chunk_sender, chunks) = mpsc::channel();
        let (end_sender, end) = mpsc::channel();
        // Dropped at the end of the program, which ends the stream.
        let chunk_sender = Mutex::new(Some(chunk_sender));
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&stderr);
        let child = Child::spawn(supervisors, spec, move |event| match event {
            ChildEvent::Output {
                stream: StreamName::Stdout,
                chunk,
            } => {
                let sender = chunk_sender.lock().unwrap_or_else(PoisonError::into_inner);
                // Sending fails if the reader was dropped.
                let _ = sender.as_ref().map(|sender| sender.send(chunk));
            }
            ChildEvent::Output {
                stream: StreamName::Stderr,
                chunk,
            } => {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                let room = MAX_STDERR.saturating_sub(kept.len());
                kept.extend_from_slice(&chunk[..chunk.len().min(room)]);
            }
            ChildEvent::Ended(ended) => {
                let _ = end_sender.send(ended.end);
                *chunk_sender.lock().unwrap_or_else(PoisonError::into_inner) = None;
            }
        })?;
        Ok(Self {
            chunks,
            current: None,
            stderr,
            end,
            _child: child,
        })
    }

    /// Reads the rest of the output and waits for the end. An unsuccessful end is an error with the text of stderr.
    pub fn finish(mut self) -> io::Result<Vec<u8>> {
        let mut rest = Vec::new();
        self.read_to_end(&mut rest)?;
        let end = self.end.recv().map_err(io::Error::other)?;
        if end.success() {
            return Ok(rest);
        }
        let stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&stderr);
        let text = text.lines().next().unwrap_or_default().trim().to_owned();
        Err(io::Error::other(match text.is_empty() {
            true => end.to_string(),
            false => format!("{end}: {text}"),
        }))
    }
}

impl Read for OutputReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some((chunk, position)) = &mut self.current {
                let available = &chunk[*position..];
                if !available.is_empty() {
                    let count = available.len().min(buffer.len());
                    buffer[..count].copy_from_slice(&available[..count]);
                    *position += count;
                    return Ok(count);
                }
            }
            self.current = None;
            match self.chunks.recv() {
                Ok(chunk) => self.current = Some((chunk, 0)),
                Err(_) => return Ok(0),
            }
        }
    }
}
