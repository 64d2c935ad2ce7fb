//! A project with a snapshot store.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ralph::snapshot::{Checkout, SnapshotId, SnapshotRules, SnapshotStore, SnapshotTaker, TakenSnapshot};
use tempfile::TempDir;

use crate::process::helpers::supervisors;

pub(super) struct Project {
    base: TempDir,
}

impl Project {
    pub(super) fn new() -> Self {
        let base = TempDir::new().expect("a temporary directory");
        fs::create_dir(base.path().join("work")).expect("a directory");
        Self { base }
    }

    /// A project in a git repository.
    pub(super) fn in_git() -> Self {
        let project = Self::new();
        project.git(&["init", "--quiet"]);
        project
    }

    pub(super) fn git(&self, args: &[&str]) {
        git(&self.root(), args);
    }

    pub(super) fn root(&self) -> PathBuf {
        self.base.path().join("work")
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(path, text).expect("a file");
    }

    pub(super) fn set_mode(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).expect("a mode");
    }

    pub(super) fn store(&self) -> SnapshotStore {
        SnapshotStore::at(self.base.path().join("snapshots.git"), &supervisors())
    }

    pub(super) fn taker(&self) -> SnapshotTaker {
        self.taker_with(SnapshotRules {
            max_mb: 1000,
            ..SnapshotRules::default()
        })
    }

    pub(super) fn taker_with(&self, rules: SnapshotRules) -> SnapshotTaker {
        SnapshotTaker::new(self.store(), "20260101-000000-test", &self.root(), rules)
    }

    pub(super) fn take(&self) -> TakenSnapshot {
        self.taker().take().expect("a snapshot")
    }

    /// The paths of the files in a new snapshot.
    pub(super) fn files(&self) -> Vec<String> {
        let tree = self.store().tree(self.take().id).expect("a tree");
        let files = tree.entries.into_iter();
        files
            .filter(|(path, _)| !self.root().join(std::ffi::OsStr::from_bytes(path)).is_dir())
            .map(|(path, _)| String::from_utf8_lossy(&path).into_owned())
            .collect()
    }

    pub(super) fn checkout(&self) -> Checkout {
        Checkout::new(&self.base.path().join("checkout"), Vec::new())
    }

    /// Writes a snapshot to a new directory and returns what it contains.
    pub(super) fn contents_of(&self, id: SnapshotId) -> BTreeMap<Vec<u8>, String> {
        let mut checkout = self.checkout();
        checkout.update(&self.store(), id).expect("a checkout");
        contents(checkout.directory())
    }
}

pub(super) fn git(directory: &Path, args: &[&str]) {
    let mut command = Command::new("git");
    command
        .args(["-c", "user.name=u", "-c", "user.email=u@localhost"])
        .args(["-c", "init.defaultBranch=main"])
        .args(args)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    let output = command.output().expect("git");
    assert!(output.status.success(), "git {args:?}: {output:?}");
}

/// The mode and the content of every path below a directory, except for `.git`.
pub(super) fn contents(root: &Path) -> BTreeMap<Vec<u8>, String> {
    let mut found = BTreeMap::new();
    let mut pending = vec![root.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory).expect("a directory").flatten() {
            let (path, metadata) = (entry.path(), entry.metadata().expect("metadata"));
            if entry.file_name() == ".git" {
                continue;
            }
            let mode = metadata.permissions().mode() & 0o7777;
            let text = if metadata.is_dir() {
                pending.push(path.clone());
                format!("directory {mode:o}")
            } else if metadata.is_symlink() {
                format!("link {}", fs::read_link(&path).expect("a link").display())
            } else {
                format!("{mode:o} {:?}", fs::read(&path).expect("a file"))
            };
            let below = path.strip_prefix(root).expect("a path below the root");
            found.insert(below.as_os_str().as_bytes().to_vec(), text);
        }
    }
    found
}
