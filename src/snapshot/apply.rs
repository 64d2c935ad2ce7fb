//! Writes entries of a snapshot to a directory: only paths that differ, each file under a temporary name first.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::blobs::BlobReader;
use super::error::{SnapshotError, io_error};
use super::store::SnapshotStore;
use super::tree::{EntryKind, ObjectId, TreeEntry, parent};

/// The changes that turn a directory into what a snapshot contains.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ApplyPlan {
    /// Paths to create or replace, parents before their contents.
    pub(super) write: Vec<(Vec<u8>, TreeEntry)>,
    /// Paths to remove, contents before their directories.
    pub(super) remove: Vec<(Vec<u8>, EntryKind)>,
}

impl ApplyPlan {
    /// Carries out the plan below `root`. `temporary` is the name of files that are being written.
    pub(super) fn apply(
        &self,
        store: &SnapshotStore,
        root: &Path,
        temporary: &str,
    ) -> Result<(), SnapshotError> {
        let mut writer = TreeWriter {
            root,
            temporary,
            modes: BTreeMap::new(),
            real_directories: BTreeSet::new(),
        };
        for (path, kind) in &self.remove {
            writer.remove(path, *kind)?;
        }
        let needs_content = |entry: &TreeEntry| entry.kind != EntryKind::Directory;
        let ids: Vec<ObjectId> = self
            .write
            .iter()
            .filter(|(_, entry)| needs_content(entry))
            .map(|(_, entry)| entry.id)
            .collect();
        let mut blobs = match ids.is_empty() {
            true => None,
            false => Some(BlobReader::start(store, &ids)?),
        };
        for (path, entry) in &self.write {
            writer.require_directories(path)?;
            match (&mut blobs, entry.kind) {
                (Some(blobs), EntryKind::File) => writer.write_file(path, entry, blobs)?,
                (Some(blobs), EntryKind::Symlink) => writer.write_link(path, blobs)?,
                (_, EntryKind::Directory) => writer.write_directory(path, entry)?,
                (None, EntryKind::File | EntryKind::Symlink) => {}
            }
        }
        writer.set_modes()
    }
}

struct TreeWriter<'a> {
    root: &'a Path,
    temporary: &'a str,
    /// Directories whose permissions are set at the end, because they may forbid writing.
    modes: BTreeMap<PathBuf, u32>,
    /// Directories that are known to be no symbolic links.
    real_directories: BTreeSet<Vec<u8>>,
}

impl TreeWriter<'_> {
    fn path(&self, path: &[u8]) -> PathBuf {
        self.root.join(OsStr::from_bytes(path))
    }

    /// Checks that no directory above a path is a symbolic link, which would lead out of the root, and makes the last one
    /// writable.
    fn require_directories(&mut self, path: &[u8]) -> Result<(), SnapshotError> {
        let mut missing = Vec::new();
        let mut current = parent(path);
        while let Some(directory) = current {
            if self.real_directories.contains(directory) {
                break;
            }
            missing.push(directory.to_vec());
            current = parent(directory);
        }
        for directory in missing.into_iter().rev() {
            let path = self.path(&directory);
            let metadata = fs::symlink_metadata(&path).map_err(io_error("write below", &path))?;
            if !metadata.is_dir() {
                let source = io::Error::from(io::ErrorKind::NotADirectory);
                return Err(io_error("write below", &path)(source));
            }
            self.make_writable(&path, metadata.permissions().mode() & 0o7777)?;
            self.real_directories.insert(directory);
        }
        Ok(())
    }

    /// Permissions that were changed for writing are restored at the end.
    fn make_writable(&mut self, path: &Path, permissions: u32) -> Result<(), SnapshotError> {
        if permissions & 0o700 != 0o700 {
            set_permissions(path, permissions | 0o700)?;
            // The permissions that the snapshot gives it take precedence.
            self.modes.entry(path.to_owned()).or_insert(permissions);
        }
        Ok(())
    }

    fn remove(&mut self, path: &[u8], kind: EntryKind) -> Result<(), SnapshotError> {
        match self.require_directories(path) {
            // The directory above it is gone, or was replaced by something else.
            Err(SnapshotError::Io { .. }) => return Ok(()),
            result => result?,
        }
        let path = self.path(path);
        let removed = match kind {
            EntryKind::Directory => fs::remove_dir(&path),
            EntryKind::File | EntryKind::Symlink => fs::remove_file(&path),
        };
        match removed {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            // A directory that contains files of which no snapshot knows stays.
            Err(_) if kind == EntryKind::Directory => Ok(()),
            Err(source) => Err(io_error("remove", &path)(source)),
        }
    }

    fn temporary_path(&self, path: &Path) -> PathBuf {
        path.with_file_name(self.temporary)
    }

    fn write_file(
        &self,
        path: &[u8],
        entry: &TreeEntry,
        blobs: &mut BlobReader<'_>,
    ) -> Result<(), SnapshotError> {
        let path = self.path(path);
        let temporary = self.temporary_path(&path);
        remove_if_present(&temporary)?;
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)
            .map_err(io_error("create", &temporary))?;
        blobs.copy_next(&mut file)?;
        file.set_permissions(Permissions::from_mode(entry.permissions))
            .map_err(io_error("write", &temporary))?;
        replace(&temporary, &path)
    }

    fn write_link(&self, path: &[u8], blobs: &mut BlobReader<'_>) -> Result<(), SnapshotError> {
        let path = self.path(path);
        let temporary = self.temporary_path(&path);
        remove_if_present(&temporary)?;
        let mut target = Vec::new();
        blobs.copy_next(&mut target)?;
        let target = PathBuf::from(std::ffi::OsString::from_vec(target));
        symlink(target, &temporary).map_err(io_error("create", &temporary))?;
        replace(&temporary, &path)
    }

    fn write_directory(&mut self, path: &[u8], entry: &TreeEntry) -> Result<(), SnapshotError> {
        let path = self.path(path);
        let create = || DirBuilder::new().mode(0o700).create(&path);
        match create() {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let is_directory = fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_dir());
                if !is_directory {
                    fs::remove_file(&path)
                        .and_then(|()| create())
                        .map_err(io_error("replace", &path))?;
                }
            }
            Err(source) => return Err(io_error("create", &path)(source)),
        }
        self.modes.insert(path, entry.permissions);
        Ok(())
    }

    /// Sets the permissions of directories, contents before their parents.
    fn set_modes(self) -> Result<(), SnapshotError> {
        for (path, permissions) in self.modes.into_iter().rev() {
            // It may have been replaced by a file or a link after it had been made writable.
            if !fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_dir()) {
                continue;
            }
            match set_permissions(&path, permissions) {
                // It was removed after it had been made writable.
                Err(SnapshotError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                result => result?,
            }
        }
        Ok(())
    }
}

fn set_permissions(path: &Path, permissions: u32) -> Result<(), SnapshotError> {
    let set = fs::set_permissions(path, Permissions::from_mode(permissions));
    set.map_err(io_error("set the permissions of", path))
}

fn remove_if_present(path: &Path) -> Result<(), SnapshotError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error("remove", path)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Moves a finished file to its place. A directory there must be empty.
fn replace(temporary: &Path, path: &Path) -> Result<(), SnapshotError> {
    let is_directory = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
    if is_directory {
        if let Some(name) = first_entry(path) {
            remove_if_present(temporary)?;
            let path = path.to_owned();
            return Err(SnapshotError::Blocked { path, name });
        }
        fs::remove_dir(path).map_err(io_error("replace", path))?;
    }
    fs::rename(temporary, path).map_err(io_error("write", path))
}

/// A name in a directory that keeps it from being replaced.
pub(super) fn first_entry(directory: &Path) -> Option<PathBuf> {
    let mut entries = fs::read_dir(directory).ok()?.flatten();
    entries.next().map(|entry| PathBuf::from(entry.file_name()))
}
