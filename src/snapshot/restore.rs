//! Writes a snapshot back to the project. What is about to be overwritten is recorded first, so that it can be undone, and
//! the intention is stored before the first change, so that an interrupted restore can be completed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::apply::ApplyPlan;
use super::error::{SnapshotError, io_error};
use super::scan::NoSink;
use super::store::SnapshotStore;
use super::take::{SnapshotRules, SnapshotTaker};
use super::tree::{EntryKind, SnapshotId, SnapshotTree, TreeEntry};

/// Describes a restore that has begun.
const PENDING: &str = "restore.json";
/// The snapshot that was restored last.
const RESTORED: &str = "restored";
const VERSION: u32 = 1;

/// What to restore.
#[derive(Debug, Clone)]
pub struct RestoreRequest {
    pub target: SnapshotId,
    /// Snapshots of the run. Content that one of them contains can be overwritten without asking, and files that one of
    /// them contains are removed if the target does not contain them.
    pub recorded: Vec<SnapshotId>,
    /// Files and directories below the project root; empty restores everything.
    pub paths: Vec<Vec<u8>>,
}

/// A restore that has begun, as stored on disk.
#[derive(Debug, Serialize, Deserialize)]
struct PendingRestore {
    version: u32,
    target: String,
    before: String,
    recorded: Vec<String>,
    paths: Vec<Vec<u8>>,
}

/// The changes that a restore makes.
#[derive(Debug)]
pub struct RestorePlan {
    pub before: SnapshotId,
    pub written: Vec<Vec<u8>>,
    pub removed: Vec<Vec<u8>>,
    /// Files with content that no snapshot of the run contains, and that would be overwritten or removed.
    pub unrecorded: Vec<Vec<u8>>,
    request: RestoreRequest,
}

/// The result of a restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreReport {
    /// The snapshot that undoes the restore.
    pub before: SnapshotId,
    pub written: usize,
    pub removed: usize,
}

/// Restores snapshots of one project. The caller holds the project's lock.
#[derive(Debug)]
pub struct Restorer {
    store: SnapshotStore,
    root: PathBuf,
    taker: SnapshotTaker,
}

impl Restorer {
    /// `name` is the reference of the snapshots that are taken before and after the restore.
    pub fn new(store: SnapshotStore, name: &str, root: &Path, rules: SnapshotRules) -> Self {
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        Self {
            taker: SnapshotTaker::new(store.clone(), name, &root, rules),
            store,
            root,
        }
    }

    /// Records the project and determines what a restore would change.
    pub fn plan(&mut self, mut request: RestoreRequest) -> Result<RestorePlan, SnapshotError> {
        request.recorded.extend(self.last_restored());
        let (target, recorded) = self.trees(&request)?;
        self.also_list(&target, &recorded);
        let before = self.taker.take()?.id;
        let current = self.taker.tree();
        let plan = plan(&request, &target, &recorded, &current);
        let is_recorded = |path: &[u8], entry: &TreeEntry| {
            recorded.iter().any(|tree| {
                tree.entries
                    .get(path)
                    .is_some_and(|known| same_content(known, entry))
            })
        };
        let changed = plan.write.iter().map(|(path, _)| path);
        let changed = changed.chain(plan.remove.iter().map(|(path, _)| path));
        let unrecorded = changed.filter(|path| {
            let entry = current.entries.get(*path);
            entry.is_some_and(|entry| entry.kind != EntryKind::Directory && !is_recorded(path, entry))
        });
        let unrecorded: BTreeSet<Vec<u8>> = unrecorded.cloned().collect();
        require_free_places(&self.root, &plan, &current)?;
        let files = |entries: Vec<(&Vec<u8>, EntryKind)>| {
            let files = entries
                .into_iter()
                .filter(|(_, kind)| *kind != EntryKind::Directory);
            files.map(|(path, _)| path.clone()).collect()
        };
        Ok(RestorePlan {
            before,
            written: files(
                plan.write
                    .iter()
                    .map(|(path, entry)| (path, entry.kind))
                    .collect(),
            ),
            removed: files(plan.remove.iter().map(|(path, kind)| (path, *kind)).collect()),
            unrecorded: unrecorded.into_iter().collect(),
            request,
        })
    }

    /// Carries out a plan.
    pub fn carry_out(&mut self, plan: RestorePlan) -> Result<RestoreReport, SnapshotError> {
        let RestorePlan { before, request, .. } = plan;
        let pending = PendingRestore {
            version: VERSION,
            target: request.target.to_string(),
            before: before.to_string(),
            recorded: request.recorded.iter().map(ToString::to_string).collect(),
            paths: request.paths.clone(),
        };
        let path = self.store.directory().join(PENDING);
        write_durably(&path, &serde_json::to_vec(&pending).unwrap_or_default())?;
        self.finish(before, &request)
    }

    /// Completes a restore that was interrupted; `None` if there is none.
    pub fn resume(&mut self) -> Result<Option<RestoreReport>, SnapshotError> {
        let path = self.store.directory().join(PENDING);
        let text = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(io_error("read", &path))?,
        };
        let pending: PendingRestore =
            serde_json::from_slice(&text).map_err(|error| io_error("read", &path)(error.into()))?;
        let id = |text: &str| {
            let text = text.to_owned();
            SnapshotId::parse(&text).ok_or(SnapshotError::InvalidId { text })
        };
        let request = RestoreRequest {
            target: id(&pending.target)?,
            recorded: pending
                .recorded
                .iter()
                .map(|text| id(text))
                .collect::<Result<_, _>>()?,
            paths: pending.paths,
        };
        self.finish(id(&pending.before)?, &request).map(Some)
    }

    /// Makes the changes that are still missing.
    fn finish(
        &mut self,
        before: SnapshotId,
        request: &RestoreRequest,
    ) -> Result<RestoreReport, SnapshotError> {
        let (target, recorded) = self.trees(request)?;
        self.also_list(&target, &recorded);
        // The same name as before an interruption, so that an unfinished file is replaced.
        let temporary = format!(".ralph-restore-{}", request.target.short());
        self.taker.scanner.scan(&mut NoSink)?;
        let original = self.store.tree(before)?;
        let mut plan = plan(request, &target, &recorded, &self.taker.tree());
        // A file that appeared since then is not the one that was recorded.
        plan.remove
            .retain(|(path, _)| original.entries.contains_key(path));
        let count = |kinds: &mut dyn Iterator<Item = EntryKind>| {
            kinds.filter(|kind| *kind != EntryKind::Directory).count()
        };
        let report = RestoreReport {
            before,
            written: count(&mut plan.write.iter().map(|(_, entry)| entry.kind)),
            removed: count(&mut plan.remove.iter().map(|(_, kind)| *kind)),
        };
        plan.apply(&self.store, &self.root, &temporary)?;
        sync_file_system(&self.root);
        let directory = self.store.directory();
        write_durably(&directory.join(RESTORED), request.target.to_string().as_bytes())?;
        let path = directory.join(PENDING);
        fs::remove_file(&path).map_err(io_error("remove", &path))?;
        Ok(report)
    }

    fn trees(&self, request: &RestoreRequest) -> Result<(SnapshotTree, Vec<SnapshotTree>), SnapshotError> {
        let recorded = request.recorded.iter().map(|id| self.store.tree(*id));
        Ok((
            self.store.tree(request.target)?,
            recorded.collect::<Result<_, _>>()?,
        ))
    }

    /// Files of the snapshots are compared even if they are ignored now.
    fn also_list(&mut self, target: &SnapshotTree, recorded: &[SnapshotTree]) {
        for tree in recorded.iter().chain([target]) {
            let files = tree.entries.iter();
            let files = files.filter(|(_, entry)| entry.kind != EntryKind::Directory);
            self.taker
                .scanner
                .rules
                .always
                .extend(files.map(|(path, _)| path.clone()));
        }
    }

    fn last_restored(&self) -> Option<SnapshotId> {
        let text = fs::read_to_string(self.store.directory().join(RESTORED)).ok()?;
        let id = SnapshotId::parse(text.trim())?;
        // It may have been deleted since then.
        self.store.tree(id).ok().map(|_| id)
    }
}

impl SnapshotStore {
    /// Whether a restore was interrupted.
    pub fn has_pending_restore(&self) -> bool {
        self.directory().join(PENDING).symlink_metadata().is_ok()
    }
}

/// Permissions of directories are restored, but are no content that could be lost.
fn same_content(one: &TreeEntry, other: &TreeEntry) -> bool {
    (one.kind, one.id) == (other.kind, other.id)
}

fn plan(
    request: &RestoreRequest,
    target: &SnapshotTree,
    recorded: &[SnapshotTree],
    current: &SnapshotTree,
) -> ApplyPlan {
    let in_scope = |path: &[u8]| {
        request.paths.is_empty()
            || request.paths.iter().any(|scope| {
                let below = path.strip_prefix(scope.as_slice());
                below.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
            })
    };
    let contains_scope = |path: &[u8]| {
        let mut scopes = request.paths.iter();
        scopes.any(|scope| {
            scope
                .strip_prefix(path)
                .is_some_and(|rest| rest.starts_with(b"/"))
        })
    };
    let mut plan = ApplyPlan::default();
    for (path, entry) in &target.entries {
        let is_directory = entry.kind == EntryKind::Directory;
        let differs = current.entries.get(path) != Some(entry);
        // The directories above a restored path must exist; their permissions are not restored.
        let is_missing_parent = is_directory && contains_scope(path) && !current.entries.contains_key(path);
        if differs && (in_scope(path) || is_missing_parent) {
            plan.write.push((path.clone(), *entry));
        }
    }
    let mut removed: BTreeMap<&Vec<u8>, EntryKind> = BTreeMap::new();
    for (path, entry) in &current.entries {
        let was_recorded = recorded.iter().any(|tree| tree.entries.contains_key(path));
        let replacement = target.entries.get(path).map(|entry| entry.kind);
        let is_gone = replacement.is_none() && was_recorded;
        let is_replaced = entry.kind == EntryKind::Directory
            && replacement.is_some_and(|kind| kind != EntryKind::Directory);
        if in_scope(path) && (is_gone || is_replaced) {
            removed.insert(path, entry.kind);
        }
    }
    plan.remove = removed
        .into_iter()
        .rev()
        .map(|(path, kind)| (path.clone(), kind))
        .collect();
    plan
}

/// Refuses to begin if a directory has to make way for a file and contains something that is not removed.
fn require_free_places(root: &Path, plan: &ApplyPlan, current: &SnapshotTree) -> Result<(), SnapshotError> {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let removed: BTreeSet<&[u8]> = plan.remove.iter().map(|(path, _)| path.as_slice()).collect();
    let replaced = plan.write.iter().filter(|(path, entry)| {
        let current = current.entries.get(path).map(|entry| entry.kind);
        entry.kind != EntryKind::Directory && current == Some(EntryKind::Directory)
    });
    for (path, _) in replaced {
        let mut pending = vec![path.clone()];
        while let Some(directory) = pending.pop() {
            let full = root.join(OsStr::from_bytes(&directory));
            for entry in fs::read_dir(&full).into_iter().flatten().flatten() {
                let name = super::scan::joined(&directory, &entry.file_name());
                let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
                if !removed.contains(name.as_slice()) {
                    let (path, name) = (full, PathBuf::from(entry.file_name()));
                    return Err(SnapshotError::Blocked { path, name });
                } else if is_directory {
                    pending.push(name);
                }
            }
        }
    }
    Ok(())
}

/// Replaces a file so that it has the old or the new content, even after a power failure.
fn write_durably(path: &Path, text: &[u8]) -> Result<(), SnapshotError> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let write = || -> io::Result<()> {
        let mut file = tempfile::Builder::new().prefix("new-").tempfile_in(directory)?;
        file.write_all(text)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        File::open(directory)?.sync_all()
    };
    write().map_err(io_error("write", path))
}

/// The restored files must be on disk before the intention is forgotten.
fn sync_file_system(root: &Path) {
    #[cfg(target_os = "linux")]
    if let Ok(directory) = File::open(root) {
        // The restored files are complete; only their durability is in question.
        crate::ok_or_log!(rustix::fs::syncfs(directory), "cannot sync the restored files");
    }
    #[cfg(not(target_os = "linux"))]
    rustix::fs::sync();
}
