//! A list of all files of a workspace with a hash of each, made without trusting the git repository around them: an agent
//! can configure a repository so that git overlooks changes.
//!
//! Files are hashed once. A later scan hashes a file again only if its size, times or inode differ, or if it changed so
//! shortly before the last scan that a second change could have the same time.

mod ignored;

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use sha2::{Digest as _, Sha256};

use crate::debug_log::ParentLog;
use crate::files::{self, FileStat, GitDirectory, Links};
use crate::ok_or_log;

pub(super) use ignored::IgnoreRules;

/// A larger workspace cannot be watched.
const MAX_FILES: usize = 2_000_000;
/// Larger files are compared by size, times and inode. Every write changes these, even one of the same content.
const MAX_HASHED_BYTES: u64 = 64 << 20;
/// After this many bytes in one scan, all files are compared in this way.
const MAX_BYTES_PER_SCAN: u64 = 1 << 30;
/// Below this number of bytes, one thread is faster than several.
const BYTES_PER_THREAD: u64 = 4 << 20;

type Digest = [u8; 32];

/// The files of a workspace at one moment, by path relative to its root.
#[derive(Debug, Default)]
pub(super) struct Manifest {
    entries: HashMap<Vec<u8>, Entry>,
    /// When the scan began, in seconds since 1970.
    scanned_at: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    stat: FileStat,
    digest: Digest,
}

/// Replaces the hash of a file that is not read.
fn digest_of_stat(stat: &FileStat) -> Digest {
    Sha256::new()
        .chain_update(b"stat")
        .chain_update(format!("{stat:?}"))
        .finalize()
        .into()
}

#[derive(Debug, thiserror::Error)]
pub(super) enum ManifestError {
    #[error("cannot read the directory {}: {source}", path.display())]
    Root { path: PathBuf, source: std::io::Error },
    #[error("it contains more than {MAX_FILES} files")]
    TooManyFiles,
}

/// A file whose content must be read.
struct Unhashed {
    name: Vec<u8>,
    path: PathBuf,
    stat: FileStat,
}

impl Manifest {
    /// Lists all files below `root`, except ignored ones and ralph's own. Hashes of the earlier scan are used again.
    pub(super) fn scan(root: &Path, rules: &IgnoreRules, earlier: &Self) -> Result<Self, ManifestError> {
        let mut scan = Scan {
            rules,
            earlier,
            manifest: Self {
                entries: HashMap::with_capacity(earlier.entries.len()),
                scanned_at: unix_seconds(),
            },
            unhashed: Vec::new(),
            bytes: 0,
        };
        scan.walk(root)?;
        for (name, path) in rules.tracked_and_ignored(root) {
            scan.add(name, path);
        }
        Ok(scan.finish())
    }

    /// The paths that differ between both manifests.
    pub(super) fn differences(&self, other: &Self) -> BTreeSet<Vec<u8>> {
        let differs = |name: &&Vec<u8>| match (self.entries.get(*name), other.entries.get(*name)) {
            (Some(one), Some(other)) => !one.has_same_content(other),
            (None, _) | (_, None) => true,
        };
        let names = self.entries.keys().chain(other.entries.keys());
        names.filter(differs).cloned().collect()
    }

    /// A hash of all paths and contents; equal for equal workspaces, whatever their times and inodes are.
    pub(super) fn fingerprint(&self, head: &str) -> String {
        let mut names: Vec<&Vec<u8>> = self.entries.keys().collect();
        names.sort_unstable();
        let mut hasher = Sha256::new();
        hasher.update(head);
        for name in names {
            let entry = &self.entries[name];
            hasher.update((name.len() as u64).to_le_bytes());
            hasher.update(name);
            hasher.update(entry.kind_and_permissions().to_le_bytes());
            hasher.update(entry.digest);
        }
        hex(&hasher.finalize())
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

impl Entry {
    /// File type and whether the file is executable, as far as git records them.
    fn kind_and_permissions(&self) -> u32 {
        const TYPE: u32 = 0o170_000;
        const SPECIAL: u32 = 0o7_000;
        let executable = u32::from(self.stat.mode & 0o111 != 0);
        self.stat.mode & (TYPE | SPECIAL) | executable
    }

    fn has_same_content(&self, other: &Self) -> bool {
        (self.kind_and_permissions(), &self.digest) == (other.kind_and_permissions(), &other.digest)
    }
}

struct Scan<'a> {
    rules: &'a IgnoreRules,
    earlier: &'a Manifest,
    manifest: Manifest,
    unhashed: Vec<Unhashed>,
    /// Bytes that this scan has to read.
    bytes: u64,
}

impl Scan<'_> {
    fn walk(&mut self, root: &Path) -> Result<(), ManifestError> {
        let mut directories = vec![(Vec::new(), root.to_owned())];
        while let Some((prefix, directory)) = directories.pop() {
            let entries = match fs::read_dir(&directory) {
                Ok(entries) => entries,
                Err(source) if prefix.is_empty() => {
                    let path = directory;
                    return Err(ManifestError::Root { path, source });
                }
                // An unreadable directory is compared as such: making it readable, or the reverse, is a change.
                Err(error) => {
                    tracing::warn!(%error, directory = %directory.display(), "comparing only the metadata");
                    self.add_unread(prefix, &directory);
                    continue;
                }
            };
            for entry in entries {
                let Some(entry) = ok_or_log!(entry, "comparing only the metadata of {}", directory.display())
                else {
                    self.add_unread(prefix.clone(), &directory);
                    break;
                };
                let file_name = entry.file_name();
                let name = joined(&prefix, &file_name);
                let path = entry.path();
                // The type comes with the directory entry, so an ignored file costs no system call.
                let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
                if file_name == ".git" {
                    let git = GitDirectory::at(&path);
                    for (below, path) in git.iter().flat_map(GitDirectory::control_files) {
                        self.add(joined(&name, OsStr::from_bytes(&below)), path);
                    }
                } else if self.rules.ignores(&name, is_directory) {
                } else if is_directory {
                    directories.push((name, path));
                } else {
                    self.add(name, path);
                }
            }
            if self.manifest.len() + self.unhashed.len() > MAX_FILES {
                return Err(ManifestError::TooManyFiles);
            }
        }
        Ok(())
    }

    fn add(&mut self, name: Vec<u8>, path: PathBuf) {
        let Ok(metadata) = fs::symlink_metadata(&path) else {
            // It was removed since its directory was read.
            return;
        };
        let stat = FileStat::of(&metadata);
        if let Some(known) = self.earlier.entries.get(&name)
            && known.stat == stat
            && stat.is_reliable(self.earlier.scanned_at)
        {
            self.manifest.entries.insert(name, known.clone());
            return;
        }
        let kind = metadata.file_type();
        let digest = if kind.is_symlink() {
            let target = fs::read_link(&path).unwrap_or_default();
            let hasher = Sha256::new().chain_update(b"link");
            hasher
                .chain_update(target.as_os_str().as_bytes())
                .finalize()
                .into()
        } else if kind.is_file() && stat.size <= MAX_HASHED_BYTES && self.bytes <= MAX_BYTES_PER_SCAN {
            self.bytes += stat.size;
            self.unhashed.push(Unhashed { name, path, stat });
            return;
        } else if kind.is_fifo() || kind.is_socket() {
            Sha256::digest(b"special").into()
        } else {
            digest_of_stat(&stat)
        };
        self.manifest.entries.insert(name, Entry { stat, digest });
    }

    /// Records something whose content cannot be read.
    fn add_unread(&mut self, name: Vec<u8>, path: &Path) {
        if let Ok(metadata) = fs::symlink_metadata(path) {
            let stat = FileStat::of(&metadata);
            let digest = digest_of_stat(&stat);
            self.manifest.entries.insert(name, Entry { stat, digest });
        }
    }

    fn finish(mut self) -> Manifest {
        let unhashed = std::mem::take(&mut self.unhashed);
        let threads = usize::try_from(self.bytes / BYTES_PER_THREAD).unwrap_or(1);
        let available = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = threads.clamp(1, available);
        if threads == 1 {
            self.manifest.entries.extend(unhashed.into_iter().map(hash));
            return self.manifest;
        }
        let chunk = unhashed.len().div_ceil(threads).max(1);
        let mut rest = unhashed.into_iter();
        let chunks: Vec<Vec<Unhashed>> = std::iter::from_fn(|| {
            let part: Vec<Unhashed> = rest.by_ref().take(chunk).collect();
            (!part.is_empty()).then_some(part)
        })
        .collect();
        std::thread::scope(|scope| {
            let workers: Vec<_> = chunks
                .into_iter()
                .map(|part| {
                    let log = ParentLog::current();
                    let work = move || log.run(|| part.into_iter().map(hash).collect::<Vec<_>>());
                    let thread = std::thread::Builder::new().name("hash".into());
                    thread.spawn_scoped(scope, work).expect("a thread")
                })
                .collect();
            for worker in workers {
                match worker.join() {
                    Ok(hashed) => self.manifest.entries.extend(hashed),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
        });
        self.manifest
    }
}

/// Hashes the content of a file. If it cannot be read, its metadata is hashed instead.
fn hash(file: Unhashed) -> (Vec<u8>, Entry) {
    let Unhashed { name, path, stat } = file;
    let digest = read_digest(&path).unwrap_or_else(|| digest_of_stat(&stat));
    (name, Entry { stat, digest })
}

fn read_digest(path: &Path) -> Option<Digest> {
    let opened = files::open(path, Links::Refuse);
    let opened = ok_or_log!(opened, "comparing only the metadata of {}", path.display());
    let mut file = opened?.take(MAX_HASHED_BYTES + 1);
    let mut hasher = Sha256::new().chain_update(b"file");
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = file.read(&mut buffer);
        match ok_or_log!(read, "comparing only the metadata of {}", path.display())? {
            0 => return Some(hasher.finalize().into()),
            count => hasher.update(&buffer[..count]),
        }
    }
}

fn joined(directory: &[u8], name: &OsStr) -> Vec<u8> {
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

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests;
