//! The workspace as it stands: which commit, which changes, as a snapshot that can be compared with another one. Only
//! looks; git is asked in a way that leaves even its index alone. What git ignores does not count, nor does `.agent`.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::PathPattern;
use crate::process::{Bounds, Supervisors, read_git};
use crate::store::DIRECTORY;

/// Git must not take longer, nor say more.
const GIT: Bounds = Bounds {
    timeout: Duration::from_secs(30),
    grace: Duration::from_secs(1),
    max_bytes: 32 << 20,
};
/// Changed files are read up to this size each, and this much together; beyond it size and time must do.
const READ_EACH: u64 = 8 << 20;
const READ_ALL: u64 = 64 << 20;
/// Without git, at most so many files are looked at.
const MOST_FILES: usize = 100_000;

/// What of the workspace is to be watched.
#[derive(Debug, Clone, Default)]
pub struct Watched {
    pub progress: Progress,
    /// Globs; empty allows every change.
    pub allowed_paths: Vec<String>,
}

/// Whether a standstill is to be noticed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Progress {
    #[default]
    Unwatched,
    Watched,
}

/// Looks at one workspace, again and again.
pub(super) struct Workspace {
    root: PathBuf,
    supervisors: Supervisors,
    kind: Kind,
    pub(super) progress: Progress,
    /// `None` allows every change.
    allowed: Option<Vec<PathPattern>>,
    before: Option<Snapshot>,
}

enum Kind {
    /// In a repository with this top, at this place below it (empty, or with a slash at its end).
    Git {
        top: PathBuf,
        prefix: Vec<u8>,
    },
    Plain,
}

/// The workspace at one moment. Paths are relative to it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Snapshot {
    head: String,
    files: BTreeMap<Vec<u8>, u64>,
}

impl Workspace {
    /// `None` if there is nothing to watch.
    pub(super) fn open(root: &Path, supervisors: &Supervisors, watched: &Watched) -> Option<Self> {
        if watched.progress == Progress::Unwatched && watched.allowed_paths.is_empty() {
            return None;
        }
        // The configuration was checked: what does not parse here cannot come, and would allow nothing.
        let patterns = watched.allowed_paths.iter().flat_map(|glob| glob.parse());
        let mut workspace = Self {
            root: root.to_owned(),
            supervisors: supervisors.clone(),
            kind: Kind::Plain,
            progress: watched.progress,
            allowed: (!watched.allowed_paths.is_empty()).then(|| patterns.collect()),
            before: None,
        };
        if let Ok(place) = workspace.git(&["rev-parse", "--show-toplevel", "--show-prefix"]) {
            let mut lines = place.split(|byte| *byte == b'\n');
            let top = lines.next().unwrap_or_default();
            let prefix = lines.next().unwrap_or_default().to_vec();
            if !top.is_empty() {
                let top = PathBuf::from(OsStr::from_bytes(top));
                workspace.kind = Kind::Git { top, prefix };
            }
        }
        Some(workspace)
    }

    /// Remembers how it looks before an iteration; returns that as a fingerprint.
    pub(super) fn look(&mut self) -> Result<String, String> {
        // A look that fails must not leave an older one to be compared with.
        self.before = None;
        let snapshot = self.snapshot()?;
        let fingerprint = snapshot.fingerprint();
        self.before = Some(snapshot);
        Ok(fingerprint)
    }

    /// What has been changed since then and may not be.
    pub(super) fn strayed(&mut self) -> Result<Vec<String>, String> {
        let (Some(allowed), Some(before)) = (&self.allowed, &self.before) else {
            return Ok(Vec::new());
        };
        let after = self.snapshot()?;
        let mut changed = before.differences(&after);
        if before.head != after.head {
            changed.extend(self.committed(&before.head, &after.head)?);
        }
        let names = changed
            .into_iter()
            .map(|path| String::from_utf8_lossy(&path).into_owned());
        let is_allowed = |name: &String| allowed.iter().any(|pattern| pattern.matches(name));
        Ok(names.filter(|name| !is_allowed(name)).collect())
    }

    fn snapshot(&self) -> Result<Snapshot, String> {
        match &self.kind {
            Kind::Git { top, prefix } => {
                let status = self.git(&[
                    "status",
                    "--porcelain=v2",
                    "-z",
                    "--branch",
                    "--untracked-files=all",
                    "--no-renames",
                ])?;
                Ok(read_status(&status, top, prefix))
            }
            Kind::Plain => Ok(walk(&self.root)),
        }
    }

    /// The files that differ between two commits.
    fn committed(&self, from: &str, to: &str) -> Result<Vec<Vec<u8>>, String> {
        let Kind::Git { prefix, .. } = &self.kind else {
            return Ok(Vec::new());
        };
        // A repository without a commit calls its head `(initial)`; git knows the empty tree under this name.
        const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
        let name = |head: &str| match head {
            "(initial)" => EMPTY_TREE.to_owned(),
            head => head.to_owned(),
        };
        let (from, to) = (name(from), name(to));
        let names = self.git(&["diff-tree", "-r", "-z", "--name-only", "--no-renames", &from, &to])?;
        let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.filter_map(|name| seen_from(prefix, name)).collect())
    }

    fn git(&self, args: &[&str]) -> Result<Vec<u8>, String> {
        let words: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
        let captured = read_git(Path::new("git"), &self.supervisors, &self.root, &words, GIT)
            .map_err(|error| error.to_string())?;
        match captured.end {
            Some(end) if end.success() && captured.stdout_omitted.is_none() => Ok(captured.stdout),
            Some(end) if end.success() => Err("git has too much to say".to_owned()),
            Some(end) => {
                let stderr = String::from_utf8_lossy(&captured.stderr);
                Err(format!("git {}: {end}: {}", args[0], stderr.trim()))
            }
            None => Err(format!("git {} takes too long", args[0])),
        }
    }
}

impl Snapshot {
    fn fingerprint(&self) -> String {
        let mut hasher = DefaultHasher::new();
        (&self.head, &self.files).hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    }

    /// The paths that are not the same in both.
    fn differences(&self, other: &Self) -> BTreeSet<Vec<u8>> {
        let paths = self.files.keys().chain(other.files.keys());
        let differs = |path: &&Vec<u8>| self.files.get(*path) != other.files.get(*path);
        paths.filter(differs).cloned().collect()
    }
}

/// `git status --porcelain=v2 -z --branch`: a header, then a record for each file that is not as committed.
fn read_status(status: &[u8], top: &Path, prefix: &[u8]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    let mut budget = READ_ALL;
    for record in status.split(|byte| *byte == 0) {
        let fields_before_path = match record.first() {
            Some(b'#') => {
                if let Some(head) = record.strip_prefix(b"# branch.oid ") {
                    snapshot.head = String::from_utf8_lossy(head).into_owned();
                }
                continue;
            }
            Some(b'1') => 8,
            Some(b'u') => 10,
            Some(b'?') => 1,
            _ => continue,
        };
        let Some(path) = record.splitn(fields_before_path + 1, |byte| *byte == b' ').last() else {
            continue;
        };
        let Some(name) = seen_from(prefix, path) else {
            continue;
        };
        let mut hasher = DefaultHasher::new();
        record.hash(&mut hasher);
        hash_file(&top.join(OsStr::from_bytes(path)), &mut budget, &mut hasher);
        snapshot.files.insert(name, hasher.finish());
    }
    snapshot
}

/// A path of the repository as seen from the workspace; `None` for what is ralph's own.
fn seen_from(prefix: &[u8], path: &[u8]) -> Option<Vec<u8>> {
    let Some(below) = path.strip_prefix(prefix) else {
        let ups = prefix.iter().filter(|byte| **byte == b'/').count();
        return Some([b"../".repeat(ups).as_slice(), path].concat());
    };
    let own = below.strip_prefix(DIRECTORY.as_bytes());
    let is_own = own.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"));
    (!is_own).then(|| below.to_vec())
}

/// What a file is: its content if that is not too much, or else its size and time.
fn hash_file(path: &Path, budget: &mut u64, hasher: &mut DefaultHasher) {
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return 0_u8.hash(hasher);
    };
    metadata.mode().hash(hasher);
    if metadata.is_symlink() {
        return fs::read_link(path).ok().hash(hasher);
    }
    let size = metadata.len();
    if metadata.is_file() && size <= READ_EACH.min(*budget) {
        *budget -= size;
        let mut content = Vec::new();
        let read = fs::File::open(path).and_then(|file| file.take(READ_EACH).read_to_end(&mut content));
        if read.is_ok() {
            return content.hash(hasher);
        }
    }
    (size, metadata.mtime(), metadata.mtime_nsec()).hash(hasher);
}

/// Without git: every file by size and time, up to a bound.
fn walk(root: &Path) -> Snapshot {
    let mut snapshot = Snapshot::default();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        let Ok(entries) = fs::read_dir(&directory) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let Ok(name) = path.strip_prefix(root) else {
                continue;
            };
            let own = name == Path::new(DIRECTORY) || entry.file_name() == ".git";
            let Ok(metadata) = fs::symlink_metadata(&path) else {
                continue;
            };
            if own || snapshot.files.len() >= MOST_FILES {
                continue;
            }
            if metadata.is_dir() {
                directories.push(path);
                continue;
            }
            let mut hasher = DefaultHasher::new();
            let time = (metadata.mtime(), metadata.mtime_nsec());
            (metadata.mode(), metadata.len(), time).hash(&mut hasher);
            snapshot
                .files
                .insert(name.as_os_str().as_bytes().to_vec(), hasher.finish());
        }
    }
    snapshot
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_with_its_head_and_every_kind_of_record() {
        let status = b"# branch.oid abc\0# branch.head main\0\
            1 .M N... 100644 100644 100644 aaa bbb src/a b.rs\0\
            u UU N... 100644 100644 100644 100644 a b c both.rs\0\
            ? sub/new.txt\0? .agent/lock\0";
        let snapshot = read_status(status, Path::new("/nowhere"), b"");
        let names: Vec<String> = snapshot
            .files
            .keys()
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect();
        assert_eq!(snapshot.head, "abc");
        assert_eq!(names, ["both.rs", "src/a b.rs", "sub/new.txt"]);
    }

    #[test]
    fn paths_are_those_that_one_sees_from_the_workspace() {
        let seen = |prefix: &str, path: &str| {
            seen_from(prefix.as_bytes(), path.as_bytes()).map(|name| String::from_utf8(name).unwrap())
        };
        assert_eq!(seen("", "src/a").as_deref(), Some("src/a"));
        assert_eq!(seen("a/b/", "a/b/c").as_deref(), Some("c"));
        assert_eq!(seen("a/b/", "x").as_deref(), Some("../../x"));
        assert_eq!(seen("a/", "a/.agent/runs/x"), None);
        assert_eq!(seen("", ".agents").as_deref(), Some(".agents"));
    }

    #[test]
    fn without_git_a_new_a_changed_and_a_removed_file_are_seen() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(root.path().join(name), text).unwrap();
        fs::create_dir_all(root.path().join(".agent/runs")).unwrap();
        fs::create_dir(root.path().join("sub")).unwrap();
        ["same", "changed", "removed"]
            .iter()
            .for_each(|name| write(name, "x"));
        let before = walk(root.path());
        write(".agent/runs/journal", "x");
        assert_eq!(walk(root.path()), before);
        write("changed", "xy");
        write("sub/new", "x");
        fs::remove_file(root.path().join("removed")).unwrap();
        let expected = ["changed", "removed", "sub/new"].map(|name| name.as_bytes().to_vec());
        assert_eq!(before.differences(&walk(root.path())), expected.into());
    }
}
