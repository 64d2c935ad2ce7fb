//! Adds a snapshot to the store with one `git fast-import`. The stream is collected in a file first, so that the content
//! that is stored is the content that was hashed.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use tempfile::NamedTempFile;

use super::scan::ContentSink;
use super::tree::{SnapshotId, TreeEntry, quoted};

/// The directory of a snapshot's tree that contains the files.
pub(super) const FILES: &str = "files";
/// The file of a snapshot's tree that contains what git does not store.
pub(super) const METADATA: &str = "metadata";

/// The reference to which a snapshot is added.
pub(super) struct ImportTarget<'a> {
    pub(super) reference: &'a str,
    /// The earlier snapshot of this reference.
    pub(super) parent: Option<String>,
    /// The snapshot whose files are changed.
    pub(super) base: Option<SnapshotId>,
}

/// The stream of commands for git.
pub(super) struct ImportStream {
    spool: BufWriter<NamedTempFile>,
    /// Bytes of content.
    pub(super) bytes: u64,
    /// The position and `bytes` before the file that was begun last.
    before_last: (u64, u64),
    position: u64,
}

impl ImportStream {
    /// The file is created in `directory` and removed when the stream is dropped.
    pub(super) fn create(directory: &Path, target: &ImportTarget<'_>, seconds: i64) -> io::Result<Self> {
        let spool = tempfile::Builder::new()
            .prefix("import-")
            .tempfile_in(directory)?;
        let mut stream = Self {
            spool: BufWriter::with_capacity(1 << 18, spool),
            bytes: 0,
            before_last: (0, 0),
            position: 0,
        };
        stream.write(format!("commit {}\n", target.reference).as_bytes())?;
        stream.write(format!("committer ralph <ralph> {seconds} +0000\ndata 0\n\n").as_bytes())?;
        if let Some(parent) = &target.parent {
            stream.write(format!("from {parent}\n").as_bytes())?;
        }
        match &target.base {
            Some(base) => stream.write(format!("M 040000 {base} \"\"\n").as_bytes())?,
            None => stream.write(b"deleteall\n")?,
        }
        Ok(stream)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.position += bytes.len() as u64;
        self.spool.write_all(bytes)
    }

    fn content(&mut self, mode: &str, path: &str, content: &[u8]) -> io::Result<()> {
        self.write(format!("M {mode} inline {path}\ndata {}\n", content.len()).as_bytes())?;
        self.write(content)?;
        self.write(b"\n")
    }

    pub(super) fn remove(&mut self, path: &[u8]) -> io::Result<()> {
        self.write(format!("D {}\n", stored_path(path)).as_bytes())
    }

    /// Ends the stream, so that git prints the tree. Returns the file.
    pub(super) fn finish(mut self, metadata: &[u8]) -> io::Result<NamedTempFile> {
        self.content("100644", METADATA, metadata)?;
        self.write(b"ls \"\"\n\ndone\n")?;
        self.spool.into_inner().map_err(io::IntoInnerError::into_error)
    }
}

impl ContentSink for ImportStream {
    fn announce(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn whole(&mut self, path: &[u8], entry: &TreeEntry, content: &[u8]) -> io::Result<()> {
        self.bytes += content.len() as u64;
        self.content(entry.git_mode(), &stored_path(path), content)
    }

    fn begin(&mut self, path: &[u8], git_mode: &str, size: u64) -> io::Result<()> {
        self.before_last = (self.position, self.bytes);
        self.write(format!("M {git_mode} inline {}\ndata {size}\n", stored_path(path)).as_bytes())
    }

    fn piece(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        self.write(bytes)
    }

    fn undo(&mut self) -> io::Result<()> {
        (self.position, self.bytes) = self.before_last;
        self.spool.flush()?;
        let file: &mut File = self.spool.get_mut().as_file_mut();
        file.set_len(self.position)?;
        file.seek(SeekFrom::Start(self.position)).map(drop)
    }

    fn mode(&mut self, path: &[u8], entry: &TreeEntry) -> io::Result<()> {
        let (mode, id) = (entry.git_mode(), entry.id);
        self.write(format!("M {mode} {id} {}\n", stored_path(path)).as_bytes())
    }
}

fn stored_path(path: &[u8]) -> String {
    quoted(&[FILES.as_bytes(), b"/", path].concat())
}
