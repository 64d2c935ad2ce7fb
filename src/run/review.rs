//! The checkout in which reviewers work: the files of a snapshot and a patch, all of them read-only.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::engine::{ReviewMaterial, TouchedLines};
use crate::files::FileStat;
use crate::ok_or_log;
use crate::policy::Gate;
use crate::snapshot::{Checkout, SnapshotError, SnapshotId, SnapshotStore};
use crate::store::Project;

/// The file with the patch in the checkout.
pub const REVIEW_PATCH_FILE: &str = ".ralph-review.patch";
/// A larger file is no instruction for a reviewer.
const MAX_INSTRUCTIONS: usize = 1 << 20;

/// The snapshots of earlier rounds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EarlierRounds {
    pub(super) first: Option<SnapshotId>,
    pub(super) last: Option<SnapshotId>,
}

/// The checkout of reviews. It is removed with this value.
#[derive(Debug)]
pub struct ReviewCheckout {
    directory: PathBuf,
    checkout: Checkout,
    /// The files of the snapshot, as they were before the reviewer started.
    files: BTreeMap<PathBuf, Option<FileStat>>,
}

impl ReviewCheckout {
    /// Uses a directory, which is created when it is needed.
    pub fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            checkout: Checkout::new(directory, Vec::new()),
            files: BTreeMap::new(),
        }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Writes a snapshot and the patch. Only reading is allowed afterwards.
    pub fn prepare(&mut self, store: &SnapshotStore, tree: SnapshotId, patch: &[u8]) -> Result<(), String> {
        let problem = |error: SnapshotError| format!("cannot prepare the checkout of the review: {error}");
        set_writable(&self.directory, Access::ReadWrite);
        self.checkout.update(store, tree).map_err(problem)?;
        self.seal(patch)
    }

    /// Adds the patch to the files of the directory. Only reading is allowed afterwards.
    pub fn seal(&mut self, patch: &[u8]) -> Result<(), String> {
        let patch_file = self.directory.join(REVIEW_PATCH_FILE);
        fs::write(&patch_file, patch).map_err(|error| {
            let directory = self.directory.display();
            format!("cannot prepare the checkout of the review in {directory}: {error}")
        })?;
        set_writable(&self.directory, Access::ReadOnly);
        self.files.clear();
        add_files(&self.directory, &mut self.files);
        Ok(())
    }

    /// The files that changed since they were written. New files, such as caches, do not matter: they are removed before the
    /// next round.
    pub fn altered(&self) -> Vec<String> {
        const MAX_NAMED: usize = 10;
        let altered = self
            .files
            .iter()
            .filter(|(path, state)| state_of(path) != **state);
        let names = altered.map(|(path, _)| {
            let name = path.strip_prefix(&self.directory).unwrap_or(path);
            name.to_string_lossy().into_owned()
        });
        names.take(MAX_NAMED).collect()
    }

    /// Restores what a reviewer changed, for the next reviewer.
    pub(super) fn restore(&mut self, store: &SnapshotStore, tree: SnapshotId) -> Result<(), String> {
        let patch = fs::read(self.directory.join(REVIEW_PATCH_FILE)).unwrap_or_default();
        self.prepare(store, tree, &patch)
    }
}

impl Drop for ReviewCheckout {
    fn drop(&mut self) {
        remove_checkout(&self.directory);
    }
}

/// Removes the checkout of a review, if there is one.
pub(super) fn remove_checkout(directory: &Path) {
    if directory.exists() {
        set_writable(directory, Access::ReadWrite);
        ok_or_log!(fs::remove_dir_all(directory), "removing the checkout of a review");
    }
}

/// The checkout of a project's run.
pub(super) fn checkout_of(project: &Project) -> PathBuf {
    project.checkouts().join("review")
}

/// Adds every file below a directory with its state.
fn add_files(directory: &Path, files: &mut BTreeMap<PathBuf, Option<FileStat>>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => add_files(&path, files),
            Ok(_) | Err(_) => {
                let state = state_of(&path);
                files.insert(path, state);
            }
        }
    }
}

fn state_of(path: &Path) -> Option<FileStat> {
    path.symlink_metadata()
        .ok()
        .map(|metadata| FileStat::of(&metadata))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    ReadOnly,
    ReadWrite,
}

/// Changes the permission of the owner to write, below a directory and of itself. What cannot be changed is left: the files
/// are compared afterwards.
fn set_writable(path: &Path, access: Access) {
    let Ok(metadata) = path.symlink_metadata() else {
        return;
    };
    if metadata.is_symlink() {
        return;
    }
    let mode = metadata.permissions().mode() & 0o7777;
    let wanted = match access {
        Access::ReadOnly => mode & !0o222,
        Access::ReadWrite => mode | 0o200,
    };
    let change = || {
        if wanted != mode {
            ok_or_log!(
                fs::set_permissions(path, fs::Permissions::from_mode(wanted)),
                "changing permissions in the checkout of a review"
            );
        }
    };
    // A directory has to be writable while its entries are changed.
    if access == Access::ReadWrite {
        change();
    }
    if metadata.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            set_writable(&entry.path(), access);
        }
    }
    if access == Access::ReadOnly {
        change();
    }
}

/// Collects what the reviewers of one round judge.
pub(super) fn material(
    store: &SnapshotStore,
    first: SnapshotId,
    tree: SnapshotId,
    earlier: EarlierRounds,
) -> Result<ReviewMaterial, SnapshotError> {
    let patch = |from: SnapshotId| store.diff(from, tree, &[]);
    let changed = |from: SnapshotId| -> Result<Vec<String>, SnapshotError> {
        if from == tree {
            return Ok(Vec::new());
        }
        let changes = store.changed_paths(from, tree)?;
        let names = changes
            .iter()
            .map(|change| String::from_utf8_lossy(&change.path).into_owned());
        Ok(names.collect())
    };
    let touched = match earlier.first {
        None => None,
        Some(from) => {
            let text = patch(from)?;
            Some(TouchedLines::new(
                &changed(from)?,
                &String::from_utf8_lossy(&text),
            ))
        }
    };
    Ok(ReviewMaterial {
        tree: tree.to_string(),
        directory: String::new(),
        patch: String::from_utf8_lossy(&patch(first)?).into_owned(),
        patch_file: REVIEW_PATCH_FILE.to_owned(),
        touched,
        changed: earlier.last.map(changed).transpose()?.unwrap_or_default(),
        instructions: BTreeMap::new(),
    })
}

/// The instructions of the reviewers as they were at the start of the run, if they are files of the project: the agent that
/// is reviewed could have changed them since.
pub(super) fn instructions(
    store: &SnapshotStore,
    first: SnapshotId,
    root: &Path,
    gate: &Gate,
) -> Result<BTreeMap<String, String>, SnapshotError> {
    let mut found = BTreeMap::new();
    for reviewer in gate.all_reviewers() {
        let Some(path) = &reviewer.prompt_file else {
            continue;
        };
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        let Some(below) = real
            .strip_prefix(root)
            .ok()
            .or_else(|| path.strip_prefix(root).ok())
        else {
            continue;
        };
        if let Some(content) = store.read_file(first, below.as_os_str().as_bytes())?
            && content.len() <= MAX_INSTRUCTIONS
        {
            found.insert(reviewer.name, String::from_utf8_lossy(&content).into_owned());
        }
    }
    Ok(found)
}
