//! A project: its root directory, and its files in the state directory.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::lock::{NestingLocks, ProjectLock};
use super::{DIRECTORY, Lock, LockHolder, StateDirectory, StoreError, private_files, replace_file};

const VERSION: u32 = 1;
/// Maximum size of `project.json`.
const MAX_BYTES: u64 = 1 << 16;
/// Maximum length of the directory name's readable part.
const MAX_NAME: usize = 40;
/// Number of bytes of a hash in a file name.
const HASH_BYTES: usize = 6;

/// The contents of `project.json`.
#[derive(Debug, Serialize, Deserialize)]
struct ProjectFile {
    version: u32,
    root: PathBuf,
}

/// A project of this user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    state: StateDirectory,
    root: PathBuf,
    directory: PathBuf,
}

impl Project {
    pub(super) fn of(state: StateDirectory, root: &Path) -> Self {
        let root = fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
        let directory = state.projects_path().join(directory_name(&root));
        Self {
            state,
            root,
            directory,
        }
    }

    /// The project in this subdirectory of `projects`, if its `project.json` is valid.
    pub(super) fn stored(state: StateDirectory, name: &str) -> Option<Self> {
        let directory = state.projects_path().join(name);
        let bytes = private_files::read(&directory.join("project.json"), MAX_BYTES).ok()?;
        let file: ProjectFile = serde_json::from_slice(&bytes).ok()?;
        (directory_name(&file.root) == name).then_some(Self {
            state,
            root: file.root,
            directory,
        })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The last component of the root, for lists.
    pub fn name(&self) -> String {
        let name = self.root.file_name().unwrap_or(self.root.as_os_str());
        name.to_string_lossy().into_owned()
    }

    pub fn state(&self) -> &StateDirectory {
        &self.state
    }

    /// The project's files in the state directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The directory that contains the project's runs.
    pub fn runs(&self) -> PathBuf {
        self.directory.join("runs")
    }

    /// The store of the project's snapshots, which may not exist yet.
    pub fn snapshots(&self) -> PathBuf {
        self.directory.join("snapshots.git")
    }

    /// The clean checkouts of the project in which gates run.
    pub fn checkouts(&self) -> PathBuf {
        self.directory.join("checkouts")
    }

    /// ralph's own files in the project root and around it, which belong to no snapshot.
    pub fn own_files(&self) -> Vec<PathBuf> {
        let agent = self.root.join(DIRECTORY);
        let state = fs::canonicalize(self.state.path()).unwrap_or_else(|_| self.state.path().to_owned());
        vec![agent.join("events.jsonl"), agent.join("runs"), state]
    }

    /// The runs that version 1 of ralph recorded in the workspace, if that directory is the user's own.
    pub(super) fn legacy_runs(&self) -> Option<PathBuf> {
        let agent = self.root.join(DIRECTORY);
        let runs = agent.join("runs");
        let is_usable =
            private_files::check_directory(&agent).is_ok() && private_files::check_directory(&runs).is_ok();
        is_usable.then_some(runs)
    }

    /// Returns the process that runs a loop in this project.
    pub fn holder(&self) -> Option<LockHolder> {
        Lock::holder(&self.lock_path())
    }

    pub(super) fn lock_path(&self) -> PathBuf {
        self.directory.join("lock")
    }

    /// Creates the project's directories.
    pub(super) fn create(&self) -> Result<(), StoreError> {
        self.state.create()?;
        private_files::create_directory(&self.state.projects_path())?;
        private_files::create_directory(&self.directory)?;
        private_files::create_directory(&self.runs())?;
        let path = self.directory.join("project.json");
        if private_files::read(&path, MAX_BYTES).is_err() {
            let file = ProjectFile {
                version: VERSION,
                root: self.root.clone(),
            };
            replace_file(
                &path,
                &super::json_text(&file).map_err(super::io_error("write", &path))?,
            )?;
        }
        Ok(())
    }

    /// Creates the project's directories and acquires its lock, which also excludes loops in directories above and below
    /// the root.
    pub fn lock(&self, now: Timestamp) -> Result<ProjectLock, StoreError> {
        self.create()?;
        let own = Lock::acquire(&self.lock_path(), now)?;
        let nesting = NestingLocks::acquire(self)?;
        Ok(ProjectLock::new(own, nesting))
    }

    /// The file that represents a directory in the locks of nested roots.
    pub(super) fn nesting_lock_path(&self, root: &Path) -> PathBuf {
        self.state.path().join("locks").join(short_hash(root))
    }

    /// Finds a running project whose root contains this root or lies inside it.
    pub(super) fn overlapping(&self) -> Option<(Self, LockHolder)> {
        let overlaps = |other: &Self| {
            other.root != self.root
                && (other.root.starts_with(&self.root) || self.root.starts_with(&other.root))
        };
        let mut others = self.state.projects().into_iter().filter(overlaps);
        others.find_map(|other| {
            let holder = other.holder()?;
            Some((other, holder))
        })
    }
}

/// `parser-3f2a9c01b7de`: the readable name makes the directory recognizable, the hash makes it unique.
fn directory_name(root: &Path) -> String {
    let name = root.file_name().unwrap_or_default().to_string_lossy();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-');
    let name: String = name
        .trim_start_matches('.')
        .chars()
        .map(|letter| if is_plain(letter) { letter } else { '-' })
        .take(MAX_NAME)
        .collect();
    let name = if name.is_empty() { "root" } else { &name };
    format!("{name}-{}", short_hash(root))
}

fn short_hash(root: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;

    let digest = Sha256::digest(root.as_os_str().as_bytes());
    digest[..HASH_BYTES]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    #[test]
    fn directory_name_is_readable_and_unique() {
        let name = |root: &str| directory_name(Path::new(root));
        assert_eq!(name("/home/me/parser"), "parser-e8174becc304");
        assert_ne!(name("/home/me/parser"), name("/home/you/parser"));
        assert!(name("/").starts_with("root-"));
        assert!(name("/a/two words/ä").starts_with("--"), "{}", name("/a/ä"));
        assert!(name("/a/.hidden").starts_with("hidden-"));
    }

    #[test]
    fn stored_projects_are_listed_with_their_roots() {
        let base = tempfile::tempdir().unwrap();
        let state = StateDirectory::at(base.path().join("state"));
        assert_eq!(state.projects(), []);
        let project = state.project(base.path());
        project.create().unwrap();
        assert_eq!(state.projects(), std::slice::from_ref(&project));
        let copy = state.projects_path().join("copy");
        fs::create_dir(&copy).unwrap();
        fs::copy(
            project.directory().join("project.json"),
            copy.join("project.json"),
        )
        .unwrap();
        assert_eq!(
            state.projects(),
            [project],
            "a copied project.json names another directory"
        );
    }

    #[test]
    fn roots_that_contain_each_other_exclude_each_other() {
        let base = tempfile::tempdir().unwrap();
        let state = StateDirectory::at(base.path().join("state"));
        let project = |name: &str| {
            let root = base.path().join("work").join(name);
            fs::create_dir_all(&root).unwrap();
            state.project(&root)
        };
        let (outer, inner, sibling) = (project("a"), project("a/b/c"), project("a/d"));
        let refused = |project: &Project, by: &Project| match project.lock(now()) {
            Err(StoreError::Locked { root, .. }) => assert_eq!(root.as_deref(), Some(by.root())),
            other => panic!("{other:?}"),
        };
        let held = inner.lock(now()).unwrap();
        refused(&outer, &inner);
        let beside = sibling.lock(now()).unwrap();
        drop(held);
        refused(&outer, &sibling);
        drop(beside);
        let held = outer.lock(now()).unwrap();
        refused(&inner, &outer);
        drop(held);
        inner.lock(now()).unwrap();
    }
}
