//! What a child printed, byte for byte.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use super::{StoreError, create_new};

/// A file that takes a child's bytes as they come.
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

    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }
}
