//! What a child of a bench printed: in a file, as far as it is kept, and the last of it as a reason.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Of what a command prints, so much is kept.
const LOG_BYTES: usize = 1 << 20;
/// Of the reason why something failed, so much is told.
const WHY_COLUMNS: usize = 160;

/// Shared by those who write and those who ask.
#[derive(Clone)]
pub(super) struct Log(Arc<Mutex<Kept>>);

struct Kept {
    file: File,
    left: usize,
    /// The last line with words in it.
    last: String,
    line: Vec<u8>,
}

impl Log {
    pub(super) fn append(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path)?;
        Ok(Self(Arc::new(Mutex::new(Kept {
            file,
            left: LOG_BYTES,
            last: String::new(),
            line: Vec::new(),
        }))))
    }

    pub(super) fn take(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let part = &bytes[..bytes.len().min(kept.left)];
        kept.left -= part.len();
        // A log that cannot be written is no reason to judge otherwise.
        let _ = kept.file.write_all(part);
        for byte in bytes {
            match byte {
                b'\n' => kept.end_line(),
                byte if kept.line.len() < WHY_COLUMNS * 4 => kept.line.push(*byte),
                _ => {}
            }
        }
    }

    /// How it ended, and the last thing that was said.
    pub(super) fn why(&self, end: &str) -> String {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.end_line();
        let last: String = kept.last.chars().take(WHY_COLUMNS).collect();
        let colon = if last.is_empty() { "" } else { ": " };
        format!("{end}{colon}{last}")
    }
}

impl Kept {
    fn end_line(&mut self) {
        let line = String::from_utf8_lossy(&self.line).trim().to_owned();
        self.line.clear();
        if !line.is_empty() {
            self.last = line;
        }
    }
}
