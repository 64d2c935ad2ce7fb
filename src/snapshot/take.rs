//! Takes snapshots of one project.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::config::PathPattern;

use super::diff::FileChange;
use super::error::{SnapshotError, io_error};
use super::git_files::GitFiles;
use super::ignored::IgnoreFiles;
use super::import::{ImportStream, ImportTarget};
use super::metadata;
use super::scan::{ContentSink, ScanChanges, ScanRules, Scanner, SkippedFile};
use super::store::SnapshotStore;
use super::tree::{EntryKind, SnapshotId, SnapshotTree, TreeEntry, parent};

const MEGABYTE: u64 = 1 << 20;

/// Which files the snapshots of a project contain.
#[derive(Debug, Clone, Default)]
pub struct SnapshotRules {
    /// Patterns of ignored files that are included.
    pub include: Vec<PathPattern>,
    /// Absolute paths of ralph's own files.
    pub excluded: Vec<PathBuf>,
    /// Maximum size of the store in megabytes.
    pub max_mb: u64,
}

/// A snapshot that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenSnapshot {
    pub id: SnapshotId,
    /// Number of files in the snapshot.
    pub files: u64,
    /// The files that differ from the previous snapshot; empty for the first one.
    pub changes: Vec<FileChange>,
    /// Bytes of content that were stored.
    pub bytes: u64,
    /// Files that could not be recorded.
    pub skipped: Vec<SkippedFile>,
}

/// Takes the snapshots of a run. It stores the last one, so that an unchanged project costs no process.
#[derive(Debug)]
pub struct SnapshotTaker {
    store: SnapshotStore,
    reference: String,
    pub(super) scanner: Scanner,
    max_mb: u64,
    last: Option<SnapshotId>,
}

impl SnapshotTaker {
    /// Prepares snapshots of the project at `root` for a run. `supervisors` run git.
    pub fn new(store: SnapshotStore, run: &str, root: &Path, rules: SnapshotRules) -> Self {
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let git = GitFiles::read(&root, &store.git.supervisors);
        let mut files = IgnoreFiles::default();
        let scan_rules = ScanRules {
            ignore: Some(files.global(&root, &git)),
            include: rules.include,
            always: git.tracked.into_iter().collect(),
            excluded: rules.excluded,
            kept: Vec::new(),
        };
        Self {
            reference: SnapshotStore::reference(run),
            scanner: Scanner::new(&root, scan_rules, files),
            store,
            max_mb: rules.max_mb,
            last: None,
        }
    }

    /// Records the project as it is now.
    pub fn take(&mut self) -> Result<TakenSnapshot, SnapshotError> {
        match self.take_or_fail() {
            // The next snapshot compares with nothing, so that nothing that was not stored is taken for known.
            Err(error) => {
                self.forget();
                Err(error)
            }
            taken => taken,
        }
    }

    fn take_or_fail(&mut self) -> Result<TakenSnapshot, SnapshotError> {
        self.store.create()?;
        let mut import = LazyImport {
            directory: self.store.directory().to_owned(),
            reference: self.reference.clone(),
            parent: self.store.newest(&self.reference),
            base: self.last,
            room: self
                .max_mb
                .saturating_mul(MEGABYTE)
                .saturating_sub(self.store.size()),
            refused: None,
            stream: None,
        };
        let changes = self.scanner.scan(&mut import);
        let changes = match (changes, import.refused) {
            (_, Some(needed)) => return Err(self.too_large(needed)),
            (changes, None) => changes?,
        };
        match self.last {
            Some(last) if changes.is_empty() => Ok(self.taken(last, Vec::new(), 0)),
            _ => self.store_changes(&changes, import),
        }
    }

    fn too_large(&self, needed: u64) -> SnapshotError {
        SnapshotError::TooLarge {
            needed_mb: (self.store.size() + needed).div_ceil(MEGABYTE),
            max_mb: self.max_mb,
        }
    }

    fn store_changes(
        &mut self,
        changes: &ScanChanges,
        mut import: LazyImport,
    ) -> Result<TakenSnapshot, SnapshotError> {
        let tree = self.tree();
        let directory = self.store.directory().to_owned();
        let cannot_write = |source| io_error("write to", &directory)(source);
        let stream = import.stream().map_err(cannot_write)?;
        let parents = directories_of_files(&tree);
        let gone = |path: &[u8]| match tree.entries.get(path) {
            // git replaces a file by the directory that now contains files.
            Some(entry) => entry.kind == EntryKind::Directory && !parents.contains(path),
            None => true,
        };
        let removed = changes.removed.iter().map(|(path, entry)| (path, entry));
        let replaced = changes
            .changed
            .iter()
            .filter_map(|(path, entry)| Some((path, entry.as_ref()?)));
        for (path, entry) in removed.chain(replaced) {
            if entry.kind != EntryKind::Directory && gone(path) {
                stream.remove(path).map_err(cannot_write)?;
            }
        }
        let bytes = stream.bytes;
        let spool = import
            .take_stream()
            .map_err(cannot_write)?
            .finish(&metadata::encode(&tree))
            .map_err(cannot_write)?;
        self.store.combine_packs()?;
        let id = self.store.import(&self.reference, spool.path())?;
        let before = self.last.replace(id);
        let changes = match before {
            Some(before) if before != id => self.store.changed_paths(before, id)?,
            Some(_) => Vec::new(),
            None => {
                // Files of the first snapshot are recorded even if they are ignored later.
                let files = tree.files().map(|(path, _)| path.clone());
                self.scanner.rules.always.extend(files);
                Vec::new()
            }
        };
        Ok(self.taken(id, changes, bytes))
    }

    fn taken(&self, id: SnapshotId, changes: Vec<FileChange>, bytes: u64) -> TakenSnapshot {
        let is_file = |entry: &TreeEntry| entry.kind != EntryKind::Directory;
        let known = self.scanner.known.values();
        TakenSnapshot {
            id,
            files: known.filter(|known| is_file(&known.entry)).count() as u64,
            changes,
            bytes,
            skipped: self.scanner.skipped.clone(),
        }
    }

    /// The entries of the newest snapshot.
    pub fn tree(&self) -> SnapshotTree {
        let known = self.scanner.known.iter();
        SnapshotTree {
            entries: known.map(|(path, known)| (path.clone(), known.entry)).collect(),
        }
    }

    /// Makes the next snapshot compare with nothing.
    fn forget(&mut self) {
        self.scanner.known.clear();
        self.last = None;
    }
}

/// All directories that contain files, directly or not.
fn directories_of_files(tree: &SnapshotTree) -> BTreeSet<&[u8]> {
    let mut found = BTreeSet::new();
    for (path, _) in tree.files() {
        let mut path = path.as_slice();
        while let Some(directory) = parent(path) {
            if !found.insert(directory) {
                break;
            }
            path = directory;
        }
    }
    found
}

/// A stream that is created when the first content arrives.
struct LazyImport {
    directory: PathBuf,
    reference: String,
    parent: Option<String>,
    base: Option<SnapshotId>,
    /// Maximum bytes of content.
    room: u64,
    /// Bytes of content that did not fit.
    refused: Option<u64>,
    stream: Option<ImportStream>,
}

impl LazyImport {
    fn stream(&mut self) -> io::Result<&mut ImportStream> {
        if self.stream.is_none() {
            self.stream = Some(self.create()?);
        }
        self.stream.as_mut().ok_or_else(|| io::ErrorKind::Other.into())
    }

    fn take_stream(&mut self) -> io::Result<ImportStream> {
        self.stream.take().ok_or_else(|| io::ErrorKind::Other.into())
    }

    fn create(&self) -> io::Result<ImportStream> {
        let target = ImportTarget {
            reference: &self.reference,
            parent: self.parent.clone(),
            base: self.base,
        };
        ImportStream::create(&self.directory, &target, Timestamp::now().as_second())
    }

    /// Refuses content beyond the limit, before it is written.
    fn require_room(&mut self, size: u64) -> io::Result<&mut ImportStream> {
        let stored = self.stream.as_ref().map_or(0, |stream| stream.bytes);
        self.announce(stored.saturating_add(size))?;
        self.stream()
    }
}

impl ContentSink for LazyImport {
    fn announce(&mut self, bytes: u64) -> io::Result<()> {
        if bytes > self.room {
            self.refused = Some(bytes);
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    fn whole(&mut self, path: &[u8], entry: &TreeEntry, content: &[u8]) -> io::Result<()> {
        self.require_room(content.len() as u64)?
            .whole(path, entry, content)
    }

    fn begin(&mut self, path: &[u8], git_mode: &str, size: u64) -> io::Result<()> {
        self.require_room(size)?.begin(path, git_mode, size)
    }

    fn piece(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream()?.piece(bytes)
    }

    fn undo(&mut self) -> io::Result<()> {
        self.stream()?.undo()
    }

    fn mode(&mut self, path: &[u8], entry: &TreeEntry) -> io::Result<()> {
        self.stream()?.mode(path, entry)
    }
}
