//! A directory outside of the workspace that contains the files of a snapshot. It is reused: only paths that differ are
//! written.

use std::fs;
use std::path::{Path, PathBuf};

use crate::config::PathPattern;

use super::apply::ApplyPlan;
use super::error::{SnapshotError, io_error};
use super::ignored::IgnoreFiles;
use super::scan::{NoSink, ScanRules, Scanner};
use super::store::SnapshotStore;
use super::tree::{EntryKind, SnapshotId};

const TEMPORARY: &str = ".ralph-checkout";

/// A directory for checkouts. While it exists, the hashes of unchanged files are remembered.
#[derive(Debug)]
pub struct Checkout {
    directory: PathBuf,
    scanner: Scanner,
}

impl Checkout {
    /// Uses a directory, which is created by the first update. Paths that match `kept` are not part of the checkout: they
    /// are neither written nor removed, for caches that a build fills.
    pub fn new(directory: &Path, kept: Vec<PathPattern>) -> Self {
        let rules = ScanRules {
            kept,
            ..ScanRules::default()
        };
        Self {
            directory: directory.to_owned(),
            scanner: Scanner::new(directory, rules, IgnoreFiles::default()),
        }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Makes the directory contain exactly the files of the snapshot, besides kept paths. Returns the number of paths that
    /// differed.
    pub fn update(&mut self, store: &SnapshotStore, id: SnapshotId) -> Result<usize, SnapshotError> {
        fs::create_dir_all(&self.directory).map_err(io_error("create", &self.directory))?;
        let target = store.tree(id)?;
        self.scanner.scan(&mut NoSink)?;
        let known = &self.scanner.known;
        let is_kept = |path: &[u8]| {
            let text = String::from_utf8_lossy(path);
            let kept = &self.scanner.rules.kept;
            kept.iter().any(|pattern| pattern.matches(&text))
        };
        let mut plan = ApplyPlan::default();
        for (path, entry) in &target.entries {
            let is_same = known.get(path).is_some_and(|known| known.entry == *entry);
            if !is_same && !is_kept(path) {
                plan.write.push((path.clone(), *entry));
            }
        }
        for (path, known) in known {
            let replaced = target.entries.get(path).map(|entry| entry.kind);
            let is_directory = known.entry.kind == EntryKind::Directory;
            if replaced.is_none() || is_directory && replaced != Some(EntryKind::Directory) {
                plan.remove.push((path.clone(), known.entry.kind));
            }
        }
        plan.remove
            .sort_unstable_by(|(one, _), (other, _)| other.cmp(one));
        plan.apply(store, &self.directory, TEMPORARY)?;
        Ok(plan.write.len() + plan.remove.len())
    }
}
