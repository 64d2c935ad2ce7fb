//! How much space is free on a disk.

use std::io;
use std::path::Path;

/// The bytes that the user can still write on the disk with this path.
pub fn free_space(path: &Path) -> io::Result<u64> {
    let disk = rustix::fs::statvfs(path)?;
    // Some virtual file systems report no sizes.
    match disk.f_blocks {
        0 => Ok(u64::MAX),
        _ => Ok(disk.f_bavail.saturating_mul(disk.f_frsize)),
    }
}
