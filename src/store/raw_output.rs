//! The raw output of agents, byte for byte.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::{StoreError, create_new};

/// An append-only file for the output of a child process.
#[derive(Debug)]
pub struct RawOutput {
    path: PathBuf,
    /// `None` until the first byte.
    file: Mutex<Option<File>>,
}

impl RawOutput {
    pub(super) fn create(path: PathBuf) -> Result<Self, StoreError> {
        let file = Mutex::new(Some(create_new(&path)?));
        Ok(Self { path, file })
    }

    /// The file is created when the first byte is written. Most agents write nothing to stderr.
    pub(super) fn on_first_byte(path: PathBuf) -> Self {
        let file = Mutex::default();
        Self { path, file }
    }

    pub fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match &mut *file {
            Some(file) => file,
            none => none.insert(create_new(&self.path).map_err(io::Error::other)?),
        };
        file.write_all(bytes)
    }
}

/// The agent's output in one attempt at an iteration.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RawFile {
    pub iteration: u64,
    pub attempt: u64,
    pub path: PathBuf,
}

/// The raw output files of a run, in order.
pub fn raw_outputs(run: &Path) -> Vec<RawFile> {
    let entries = fs::read_dir(run.join("iterations"))
        .into_iter()
        .flatten()
        .flatten();
    let mut files: Vec<RawFile> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let (iteration, attempt) = name.split_once('-').unwrap_or((&name, "1"));
            Some(RawFile {
                iteration: iteration.parse().ok()?,
                attempt: attempt.parse().ok()?,
                path: entry.path().join("stdout.raw"),
            })
        })
        .filter(|file| file.path.is_file())
        .collect();
    files.sort_unstable();
    files
}
