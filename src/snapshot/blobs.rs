//! Reads objects of the store with one `git cat-file --batch`.

use std::ffi::OsStr;
use std::io::{self, BufReader, Read, Write};

use crate::process::{OutputReader, Stdin};

use super::error::SnapshotError;
use super::store::SnapshotStore;
use super::tree::ObjectId;

/// Reads blobs in the order in which they were requested.
pub(super) struct BlobReader<'a> {
    store: &'a SnapshotStore,
    output: BufReader<OutputReader>,
}

impl<'a> BlobReader<'a> {
    pub(super) fn start(store: &'a SnapshotStore, ids: &[ObjectId]) -> Result<Self, SnapshotError> {
        let mut request = Vec::with_capacity(ids.len() * 65);
        for id in ids {
            request.extend(format!("{id}\n").into_bytes());
        }
        let args = ["cat-file", "--batch", "--buffer"].map(OsStr::new);
        let output = store.start(&args, Stdin::Bytes(request))?;
        Ok(Self {
            store,
            output: BufReader::new(output),
        })
    }

    /// Copies the next blob to `to`.
    pub(super) fn copy_next(&mut self, to: &mut impl Write) -> Result<(), SnapshotError> {
        self.next(to)
            .map_err(|source| self.store.git_error("cat-file", source))
    }

    /// Reads the only blob.
    pub(super) fn read_whole(mut self) -> Result<Vec<u8>, SnapshotError> {
        let mut content = Vec::new();
        self.copy_next(&mut content)?;
        Ok(content)
    }

    fn next(&mut self, to: &mut impl Write) -> io::Result<()> {
        let mut header = Vec::new();
        loop {
            let mut byte = [0];
            self.output.read_exact(&mut byte)?;
            match byte[0] {
                b'\n' => break,
                other => header.push(other),
            }
        }
        let header = String::from_utf8_lossy(&header).into_owned();
        let size = header
            .split_once(" blob ")
            .and_then(|(_, size)| size.parse::<u64>().ok());
        let size = size.ok_or_else(|| io::Error::other(format!("object {header}")))?;
        let copied = io::copy(&mut self.output.by_ref().take(size), to)?;
        let mut newline = [0];
        self.output.read_exact(&mut newline)?;
        match copied == size {
            true => Ok(()),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}
