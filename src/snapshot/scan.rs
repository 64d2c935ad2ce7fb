//! Lists the files of a directory tree and hashes those that may have changed since the last scan.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::config::PathPattern;
use crate::files::{self, FileStat, Links};

use super::error::{SnapshotError, io_error};
use super::ignored::{IgnoreFiles, Levels, RuleFiles, is_ignored};
use super::tree::{BlobHasher, EntryKind, ObjectId, TreeEntry};

/// A larger project cannot be recorded.
const MAX_FILES: usize = 2_000_000;
/// Larger files are read in pieces.
const MAX_BYTES_AT_ONCE: u64 = 1 << 20;
const PIECE: usize = 256 << 10;
/// How often a file is read again that was truncated meanwhile.
const ATTEMPTS: u32 = 3;

/// Receives the content of files that differ from the last scan.
pub(super) trait ContentSink {
    /// Announces at most how many bytes follow. An error refuses them before anything is read.
    fn announce(&mut self, bytes: u64) -> io::Result<()>;
    /// A whole file, or the target of a symbolic link.
    fn whole(&mut self, path: &[u8], entry: &TreeEntry, content: &[u8]) -> io::Result<()>;
    /// Starts a file of this size whose content follows.
    fn begin(&mut self, path: &[u8], git_mode: &str, size: u64) -> io::Result<()>;
    fn piece(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Removes the file that was begun last.
    fn undo(&mut self) -> io::Result<()>;
    /// Only the mode changed, not the content.
    fn mode(&mut self, path: &[u8], entry: &TreeEntry) -> io::Result<()>;
}

/// Ignores the content: only the hashes are needed.
pub(super) struct NoSink;

impl ContentSink for NoSink {
    fn announce(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }
    fn whole(&mut self, _: &[u8], _: &TreeEntry, _: &[u8]) -> io::Result<()> {
        Ok(())
    }
    fn begin(&mut self, _: &[u8], _: &str, _: u64) -> io::Result<()> {
        Ok(())
    }
    fn piece(&mut self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }
    fn undo(&mut self) -> io::Result<()> {
        Ok(())
    }
    fn mode(&mut self, _: &[u8], _: &TreeEntry) -> io::Result<()> {
        Ok(())
    }
}

/// What was found at a path, and the stat by which an unchanged file is recognized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KnownEntry {
    pub(super) entry: TreeEntry,
    pub(super) stat: FileStat,
}

/// Which files a scan lists.
#[derive(Debug, Default)]
pub(super) struct ScanRules {
    /// The levels of ignore rules above the root; `None` lists ignored files too.
    pub(super) ignore: Option<Levels>,
    /// Ignored files that are listed nevertheless.
    pub(super) include: Vec<PathPattern>,
    /// Files that are listed even if they are ignored.
    pub(super) always: BTreeSet<Vec<u8>>,
    /// Paths that are never listed, and neither is anything below them.
    pub(super) excluded: Vec<PathBuf>,
    /// Patterns of paths below the root that are never listed.
    pub(super) kept: Vec<PathPattern>,
}

/// Files that could not be recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedFile {
    pub path: Vec<u8>,
    pub reason: &'static str,
}

/// Scans one directory tree repeatedly.
#[derive(Debug)]
pub(super) struct Scanner {
    root: PathBuf,
    pub(super) rules: ScanRules,
    files: IgnoreFiles,
    /// The result of the last scan.
    pub(super) known: HashMap<Vec<u8>, KnownEntry>,
    /// When the last scan began, in seconds since 1970.
    pub(super) scanned_at: i64,
    pub(super) skipped: Vec<SkippedFile>,
}

/// The differences between two scans.
#[derive(Debug, Default)]
pub(super) struct ScanChanges {
    /// New and changed paths, with what was there before.
    pub(super) changed: Vec<(Vec<u8>, Option<TreeEntry>)>,
    pub(super) removed: Vec<(Vec<u8>, TreeEntry)>,
}

impl ScanChanges {
    pub(super) fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.removed.is_empty()
    }
}

/// The state of one walk.
struct Walk {
    found: HashMap<Vec<u8>, KnownEntry>,
    /// Files whose content must be read.
    unread: Vec<(Vec<u8>, PathBuf, FileStat)>,
    /// Ignored files and directories.
    ignored: Vec<(Vec<u8>, PathBuf, bool)>,
}

impl Scanner {
    pub(super) fn new(root: &Path, rules: ScanRules, files: IgnoreFiles) -> Self {
        Self {
            root: root.to_owned(),
            rules,
            files,
            known: HashMap::new(),
            scanned_at: 0,
            skipped: Vec::new(),
        }
    }

    /// Lists all files, passes new content to `sink`, and returns the differences from the last scan.
    pub(super) fn scan(&mut self, sink: &mut dyn ContentSink) -> Result<ScanChanges, SnapshotError> {
        let started = unix_seconds();
        self.skipped.clear();
        let mut walk = Walk {
            found: HashMap::with_capacity(self.known.len()),
            unread: Vec::new(),
            ignored: Vec::new(),
        };
        let top = match &self.rules.ignore {
            Some(levels) => levels.clone(),
            None => None,
        };
        self.walk(Vec::new(), self.root.clone(), &top, &mut walk)?;
        for (path, file, is_directory) in std::mem::take(&mut walk.ignored) {
            self.add_always(&path, is_directory, &mut walk);
            if !self.rules.include.is_empty() {
                self.add_included(path, file, is_directory, &mut walk);
            }
        }
        // Files of the last scan are usually read only because they changed recently, and have the same content.
        let unknown = walk
            .unread
            .iter()
            .filter(|(path, ..)| !self.known.contains_key(path));
        sink.announce(unknown.map(|(_, _, stat)| stat.size).sum())
            .map_err(io_error("store", &self.root))?;
        walk.unread.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        for (path, file, stat) in std::mem::take(&mut walk.unread) {
            let before = self.known.get(&path).map(|known| known.entry);
            match read_entry(&path, &file, &stat, before, sink) {
                Ok(entry) => drop(walk.found.insert(path, KnownEntry { entry, stat })),
                Err(ReadFailure::Gone) => {}
                Err(ReadFailure::Skip(reason)) => self.skipped.push(SkippedFile { path, reason }),
                Err(ReadFailure::Sink(source)) => return Err(io_error("store", &file)(source)),
            }
        }
        let before = std::mem::replace(&mut self.known, walk.found);
        self.scanned_at = started;
        Ok(self.changes_since(before))
    }

    fn changes_since(&self, before: HashMap<Vec<u8>, KnownEntry>) -> ScanChanges {
        let mut changes = ScanChanges::default();
        for (path, known) in &self.known {
            let old = before.get(path).map(|known| known.entry);
            if old != Some(known.entry) {
                changes.changed.push((path.clone(), old));
            }
        }
        for (path, known) in before {
            if !self.known.contains_key(&path) {
                changes.removed.push((path, known.entry));
            }
        }
        changes
    }

    fn walk(
        &mut self,
        path: Vec<u8>,
        directory: PathBuf,
        parent: &Levels,
        walk: &mut Walk,
    ) -> Result<(), SnapshotError> {
        let mut pending = vec![(path, directory, parent.clone())];
        while let Some((path, directory, parent)) = pending.pop() {
            let entries = match read_directory(&directory) {
                Ok(entries) => entries,
                Err(source) if path.is_empty() => return Err(io_error("read", &directory)(source)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(_) => {
                    let reason = "it cannot be read";
                    self.skipped.push(SkippedFile { path, reason });
                    continue;
                }
            };
            let has = |name: &str| entries.iter().any(|(other, _)| other == name);
            let levels = match &self.rules.ignore {
                Some(_) => {
                    let own = RuleFiles {
                        gitignore: has(".gitignore"),
                        nested_repository: !path.is_empty() && has(".git"),
                    };
                    self.files.enter(&parent, &directory, &path, own)
                }
                None => None,
            };
            for (name, kind) in &entries {
                let below = joined(&path, name);
                let file = directory.join(name);
                if name == ".git" || self.is_excluded(&below, &file) {
                    continue;
                }
                if is_ignored(&levels, &below, kind.is_dir()) {
                    walk.ignored.push((below, file, kind.is_dir()));
                    continue;
                }
                if kind.is_dir() {
                    self.add_directory(&below, &file, walk);
                    pending.push((below, file, levels.clone()));
                } else {
                    self.add(below, file, walk);
                }
            }
            if walk.found.len() + walk.unread.len() > MAX_FILES {
                return Err(SnapshotError::TooManyFiles { max: MAX_FILES });
            }
        }
        Ok(())
    }

    fn is_excluded(&self, path: &[u8], file: &Path) -> bool {
        let text = || String::from_utf8_lossy(path);
        self.rules.excluded.iter().any(|excluded| excluded == file)
            || (!self.rules.kept.is_empty() && self.rules.kept.iter().any(|pattern| pattern.matches(&text())))
    }

    /// A directory that contains an excluded path, such as ralph's own, is not recorded for its own sake.
    fn add_directory(&self, path: &[u8], file: &Path, walk: &mut Walk) {
        let mut excluded = self.rules.excluded.iter();
        if excluded.any(|excluded| excluded.parent() == Some(file)) {
            return;
        }
        if let Ok(metadata) = fs::symlink_metadata(file) {
            let known = KnownEntry {
                entry: TreeEntry::directory(metadata.mode() & 0o7777),
                stat: FileStat::of(&metadata),
            };
            walk.found.insert(path.to_vec(), known);
        }
    }

    fn add(&mut self, path: Vec<u8>, file: PathBuf, walk: &mut Walk) {
        // It may have been removed since its directory was read.
        let Ok(metadata) = fs::symlink_metadata(&file) else {
            return;
        };
        let kind = metadata.file_type();
        if let Some(reason) = unstorable(&path, &metadata) {
            self.skipped.push(SkippedFile { path, reason });
            return;
        }
        if !kind.is_file() && !kind.is_symlink() {
            // Sockets and pipes are useless without the process that created them.
            return;
        }
        let stat = FileStat::of(&metadata);
        match self.known.get(&path) {
            Some(known) if known.stat == stat && stat.is_reliable(self.scanned_at) => {
                walk.found.insert(path, *known);
            }
            Some(_) | None => walk.unread.push((path, file, stat)),
        }
    }

    /// Adds files that are listed although the path itself, or a directory above them, is ignored.
    fn add_always(&mut self, path: &[u8], is_directory: bool, walk: &mut Walk) {
        let names: Vec<Vec<u8>> = match is_directory {
            false => self.rules.always.get(path).cloned().into_iter().collect(),
            true => {
                let below = [path, b"/"].concat();
                let from = self.rules.always.range(below.clone()..);
                from.take_while(|name| name.starts_with(&below))
                    .cloned()
                    .collect()
            }
        };
        for name in names {
            let file = self.root.join(OsStr::from_bytes(&name));
            if fs::symlink_metadata(&file).is_ok_and(|metadata| !metadata.is_dir()) {
                self.add(name, file, walk);
            }
        }
    }

    /// Adds the files below an ignored path that the configuration includes.
    fn add_included(&mut self, path: Vec<u8>, file: PathBuf, is_directory: bool, walk: &mut Walk) {
        let mut pending = vec![(path, file, is_directory)];
        while let Some((path, file, is_directory)) = pending.pop() {
            let entries = match is_directory {
                true => read_directory(&file).unwrap_or_default(),
                false => Vec::new(),
            };
            for (name, kind) in entries {
                if name != ".git" {
                    pending.push((joined(&path, &name), file.join(&name), kind.is_dir()));
                }
            }
            let text = String::from_utf8_lossy(&path);
            let is_included = self.rules.include.iter().any(|pattern| pattern.matches(&text));
            if !is_directory && is_included && !walk.found.contains_key(&path) {
                self.add(path, file, walk);
            }
        }
    }
}

/// The reason why git cannot store a path.
fn unstorable(path: &[u8], metadata: &Metadata) -> Option<&'static str> {
    let mut parts = path.split(|byte| *byte == b'/');
    if parts.any(|part| part.eq_ignore_ascii_case(b".git")) {
        return Some("git does not store this name");
    }
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    let is_link = metadata.file_type().is_symlink();
    (is_link && name.eq_ignore_ascii_case(b".gitmodules")).then_some("git does not store this link")
}

enum ReadFailure {
    /// It was removed since its directory was read.
    Gone,
    Skip(&'static str),
    Sink(io::Error),
}

impl From<io::Error> for ReadFailure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Gone,
            _ => Self::Skip("it cannot be read"),
        }
    }
}

/// Reads a file or a link, and passes the content on if it differs from `before`.
fn read_entry(
    path: &[u8],
    file: &Path,
    stat: &FileStat,
    before: Option<TreeEntry>,
    sink: &mut dyn ContentSink,
) -> Result<TreeEntry, ReadFailure> {
    let is_link = stat.mode & 0o170_000 == 0o120_000;
    let mut entry = TreeEntry {
        kind: if is_link {
            EntryKind::Symlink
        } else {
            EntryKind::File
        },
        permissions: if is_link { 0 } else { stat.mode & 0o7777 },
        id: ObjectId::NONE,
    };
    let is_stored = |entry: &TreeEntry| {
        before.is_some_and(|before| before.id == entry.id && before.git_mode() == entry.git_mode())
    };
    if !is_link && stat.size > MAX_BYTES_AT_ONCE {
        entry.id = read_in_pieces(path, file, entry.git_mode(), sink)?;
        if is_stored(&entry) {
            sink.undo().map_err(ReadFailure::Sink)?;
        }
        return Ok(entry);
    }
    let content = match is_link {
        true => fs::read_link(file)?.into_os_string().into_encoded_bytes(),
        false => {
            let mut content = Vec::new();
            // A file that grows meanwhile is read as far as it was listed.
            open(file)?.take(MAX_BYTES_AT_ONCE).read_to_end(&mut content)?;
            content
        }
    };
    entry.id = ObjectId::of_blob(&content);
    if before.is_some_and(|before| before.id == entry.id && before.kind == entry.kind) {
        if !is_stored(&entry) {
            sink.mode(path, &entry).map_err(ReadFailure::Sink)?;
        }
    } else {
        sink.whole(path, &entry, &content).map_err(ReadFailure::Sink)?;
    }
    Ok(entry)
}

fn read_in_pieces(
    path: &[u8],
    file: &Path,
    git_mode: &str,
    sink: &mut dyn ContentSink,
) -> Result<ObjectId, ReadFailure> {
    let mut buffer = vec![0; PIECE];
    for _ in 0..ATTEMPTS {
        let source = open(file)?;
        let size = source.metadata()?.len();
        let mut hasher = BlobHasher::new(size);
        let (mut source, mut rest) = (source.take(size), size);
        sink.begin(path, git_mode, size).map_err(ReadFailure::Sink)?;
        loop {
            match source.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => {
                    hasher.update(&buffer[..count]);
                    sink.piece(&buffer[..count]).map_err(ReadFailure::Sink)?;
                    rest -= count as u64;
                }
                Err(error) => {
                    sink.undo().map_err(ReadFailure::Sink)?;
                    return Err(error.into());
                }
            }
        }
        if rest == 0 {
            return Ok(hasher.finish());
        }
        sink.undo().map_err(ReadFailure::Sink)?;
    }
    Err(ReadFailure::Skip("it changes while it is read"))
}

fn open(file: &Path) -> io::Result<File> {
    files::open(file, Links::Refuse).map_err(files::FileError::into_io)
}

fn read_directory(directory: &Path) -> io::Result<Vec<(std::ffi::OsString, fs::FileType)>> {
    let entries = fs::read_dir(directory)?;
    entries
        .map(|entry| entry.and_then(|entry| Ok((entry.file_name(), entry.file_type()?))))
        .collect()
}

pub(super) fn joined(directory: &[u8], name: &OsStr) -> Vec<u8> {
    let name = name.as_bytes();
    match directory.is_empty() {
        true => name.to_vec(),
        false => [directory, b"/", name].concat(),
    }
}

fn unix_seconds() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH);
    elapsed.map_or(0, |elapsed| elapsed.as_secs().cast_signed())
}
