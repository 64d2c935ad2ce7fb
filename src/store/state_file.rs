//! A small text file in the state directory that only the user can read.

use std::io;
use std::path::{Path, PathBuf};

use super::{StateDirectory, StoreError, private_files, replace_file};

/// Maximum size of the file.
const MAX_BYTES: u64 = 1 << 16;

/// A file of the state directory that consists of one piece of text.
#[derive(Debug, Clone)]
pub struct StateFile {
    state: StateDirectory,
    path: PathBuf,
}

impl StateDirectory {
    /// The file at this path, relative to the state directory.
    pub fn file(&self, path: &str) -> StateFile {
        StateFile {
            state: self.clone(),
            path: self.path().join(path),
        }
    }
}

impl StateFile {
    /// Returns the text, or `None` if there is no such file.
    pub fn read(&self) -> Result<Option<String>, StoreError> {
        match private_files::read(&self.path, MAX_BYTES) {
            Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
            Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces the text. The file has mode 0600.
    pub fn write(&self, text: &str) -> Result<(), StoreError> {
        self.state.create()?;
        private_files::create_directory(self.path.parent().unwrap_or(Path::new("/")))?;
        replace_file(&self.path, format!("{text}\n").as_bytes())
    }
}
