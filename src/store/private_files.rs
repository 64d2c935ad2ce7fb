//! Opening files of the state directory. A file that is a symbolic link, is not a regular file, or belongs to another
//! user is refused, because its content decides what runs.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use super::{StoreError, io_error};

/// Open flags for files that may already exist. A FIFO is opened without waiting for its other end.
const FLAGS: i32 = OFlags::NOFOLLOW
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .bits()
    .cast_signed();

/// Opens a file for reading.
pub(super) fn open(path: &Path) -> Result<File, StoreError> {
    open_with(OpenOptions::new().read(true), path)
}

/// Opens a file with these options. A new file has mode 0600.
pub(super) fn open_with(options: &OpenOptions, path: &Path) -> Result<File, StoreError> {
    let mut options = options.clone();
    let file = options
        .custom_flags(FLAGS)
        .mode(0o600)
        .open(path)
        .map_err(symlink_or_io_error("open", path))?;
    let metadata = file.metadata().map_err(io_error("open", path))?;
    let refused = |why| StoreError::Refused {
        path: path.to_owned(),
        why,
    };
    if !metadata.is_file() {
        return Err(refused("it is not a regular file"));
    }
    if !is_owned_by_user(metadata.uid()) {
        return Err(refused("it belongs to another user"));
    }
    Ok(file)
}

/// Reads a whole file of at most `max` bytes.
pub(super) fn read(path: &Path, max: u64) -> Result<Vec<u8>, StoreError> {
    let mut bytes = Vec::new();
    open(path)?
        .take(max + 1)
        .read_to_end(&mut bytes)
        .map_err(io_error("read", path))?;
    match bytes.len() as u64 > max {
        true => Err(StoreError::Refused {
            path: path.to_owned(),
            why: "it is larger than any file that ralph writes there",
        }),
        false => Ok(bytes),
    }
}

/// Creates a directory and its parents with mode 0700. An existing one must be the user's own and no symbolic link.
pub(super) fn create_directory(path: &Path) -> Result<(), StoreError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(io_error("create", path))?;
    check_directory(path)
}

/// Refuses a directory that is a symbolic link or belongs to another user.
pub(super) fn check_directory(path: &Path) -> Result<(), StoreError> {
    let metadata = fs::symlink_metadata(path).map_err(io_error("read", path))?;
    if metadata.is_symlink() {
        let path = path.to_owned();
        return Err(StoreError::Symlink { path });
    }
    let why = match metadata.is_dir() {
        false => "it is not a directory",
        true if !is_owned_by_user(metadata.uid()) => "it belongs to another user",
        true => return Ok(()),
    };
    Err(StoreError::Refused {
        path: path.to_owned(),
        why,
    })
}

pub(super) fn is_owned_by_user(uid: u32) -> bool {
    uid == rustix::process::geteuid().as_raw()
}

/// Converts the error of opening a file that may be a symbolic link.
fn symlink_or_io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| {
        if path.is_symlink() {
            StoreError::Symlink { path }
        } else {
            StoreError::Io { action, path, source }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn symbolic_links_fifos_and_large_files_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("file"), "12345").unwrap();
        symlink(path("file"), path("link")).unwrap();
        let fifo = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, path("fifo"), rustix::fs::FileType::Fifo, fifo, 0).unwrap();
        assert_eq!(read(&path("file"), 5).unwrap(), b"12345");
        assert!(matches!(read(&path("file"), 4), Err(StoreError::Refused { .. })));
        assert!(matches!(open(&path("link")), Err(StoreError::Symlink { .. })));
        assert!(matches!(open(&path("fifo")), Err(StoreError::Refused { .. })));
        assert!(matches!(
            check_directory(&path("link")),
            Err(StoreError::Symlink { .. })
        ));
        assert!(check_directory(&path("file")).is_err());
    }
}
