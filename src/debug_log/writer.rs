//! Writes the lines of a log: in memory, to stderr or to a file.

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Limit for the log of one run.
pub(super) const MAX_FILE_BYTES: u64 = 100 << 20;
/// Limit for lines that are kept in memory until a run starts.
const MAX_KEPT_BYTES: usize = 1 << 20;
pub(super) const LIMIT_NOTICE: &[u8] = b"the log has reached its maximum size\n";

pub(super) enum LogOutput {
    Off,
    Memory(Vec<u8>),
    Stderr,
    File(LogFile),
}

pub(super) struct LogFile {
    pub(super) file: File,
    pub(super) written: u64,
}

impl LogFile {
    /// Errors are ignored, because there is no other place to report them.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        let length = bytes.len() as u64;
        let was_below = self.written <= MAX_FILE_BYTES;
        self.written += length;
        if self.written <= MAX_FILE_BYTES {
            drop(self.file.write_all(bytes));
        } else if was_below {
            drop(self.file.write_all(LIMIT_NOTICE));
        }
    }
}

pub(super) fn print(bytes: &[u8]) {
    drop(io::stderr().write_all(bytes));
}

pub(super) struct LogState {
    pub(super) output: LogOutput,
    pub(super) redact: Box<dyn Fn(String) -> String + Send + Sync>,
}

/// Writes one line per call, without secrets and control characters.
#[derive(Clone)]
pub(super) struct LogWriter(Arc<Mutex<LogState>>);

impl LogWriter {
    pub(super) fn new(output: LogOutput) -> Self {
        let redact = Box::new(|line| line);
        Self(Arc::new(Mutex::new(LogState { output, redact })))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, LogState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let line = String::from_utf8_lossy(bytes);
        let mut state = self.lock();
        let mut line = escaped(&(state.redact)(line.trim_end_matches('\n').to_owned()));
        line.push('\n');
        match &mut state.output {
            LogOutput::Off => {}
            LogOutput::Memory(kept) if kept.len() + line.len() > MAX_KEPT_BYTES => {}
            LogOutput::Memory(kept) => kept.extend_from_slice(line.as_bytes()),
            LogOutput::Stderr => print(line.as_bytes()),
            LogOutput::File(file) => file.write(line.as_bytes()),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Control characters and characters that change the direction of text become escapes.
fn escaped(line: &str) -> String {
    let is_unsafe = |letter: char| {
        letter.is_control() || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut clean = String::with_capacity(line.len());
    for letter in line.chars() {
        match is_unsafe(letter) {
            true => clean.extend(letter.escape_default()),
            false => clean.push(letter),
        }
    }
    clean
}
