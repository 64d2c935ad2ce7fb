//! What the kernel reports about a file, to recognize files that have not changed since they were read.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// A file that changed within this time before it was read may change again at the same time.
pub const TIME_GRANULARITY_SECONDS: i64 = 2;

/// What the kernel reports about a file. Any change of its content changes `changed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStat {
    pub mode: u32,
    pub size: u64,
    pub device: u64,
    pub inode: u64,
    pub modified: (i64, i64),
    pub changed: (i64, i64),
}

impl FileStat {
    pub fn of(metadata: &Metadata) -> Self {
        Self {
            mode: metadata.mode(),
            size: metadata.len(),
            device: metadata.dev(),
            inode: metadata.ino(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Whether a file that was read at this time, in seconds since 1970, has the content that was read as long as its
    /// stat is the same.
    pub fn is_reliable(&self, read_at: i64) -> bool {
        self.changed.0 + TIME_GRANULARITY_SECONDS < read_at
    }
}
