//! The raw output of agents, byte for byte.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{StoreError, create_new};

/// An append-only file for the output of a child process.
#[derive(Debug)]
pub struct RawOutput {
    file: File,
}

impl RawOutput {
    pub(super) fn create(path: &Path) -> Result<Self, StoreError> {
        Ok(Self {
            file: create_new(path)?,
        })
    }

    pub fn append(&self, bytes: &[u8]) -> io::Result<()> {
        (&self.file).write_all(bytes)
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
