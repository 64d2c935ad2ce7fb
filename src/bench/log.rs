//! Logs the output of a bench's child process to a file, and keeps the last line as the reason of a failure.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum size of a log file.
const MAX_LOG_BYTES: usize = 1 << 20;
/// Maximum length of the reason.
const MAX_REASON_CHARS: usize = 160;

/// A handle to a log; clones share the file.
#[derive(Clone)]
pub(super) struct ChildLog(Arc<Mutex<LogState>>);

struct LogState {
    file: File,
    left: usize,
    /// The last non-empty line.
    last: String,
    line: Vec<u8>,
}

impl ChildLog {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path)?;
        Ok(Self(Arc::new(Mutex::new(LogState {
            file,
            left: MAX_LOG_BYTES,
            last: String::new(),
            line: Vec::new(),
        }))))
    }

    pub(super) fn write(&self, bytes: &[u8]) {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let part = &bytes[..bytes.len().min(log.left)];
        log.left -= part.len();
        // A write error must not change the verdict.
        crate::ok_or_log!(log.file.write_all(part), "cannot write the log of a cell");
        for byte in bytes {
            match byte {
                b'\n' => log.end_line(),
                byte if log.line.len() < MAX_REASON_CHARS * 4 => log.line.push(*byte),
                _ => {}
            }
        }
    }

    /// Returns how the process ended, with its last line of output.
    pub(super) fn reason(&self, end: &str) -> String {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        log.end_line();
        let last: String = log.last.chars().take(MAX_REASON_CHARS).collect();
        let colon = if last.is_empty() { "" } else { ": " };
        format!("{end}{colon}{last}")
    }
}

impl LogState {
    fn end_line(&mut self) {
        let line = String::from_utf8_lossy(&self.line).trim().to_owned();
        self.line.clear();
        if !line.is_empty() {
            self.last = line;
        }
    }
}
