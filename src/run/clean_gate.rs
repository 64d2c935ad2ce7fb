//! Gates that run in a checkout outside of the workspace: a directory with the files of a snapshot, in which the protected
//! files have the content that they had when the run started.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::config::PathPattern;
use crate::engine::{CheckedTree, GateVersion, ReviewMaterial};
use crate::event::SnapshotMoment;
use crate::files::FileStat;
use crate::policy::Gate;
use crate::process::Environment;
use crate::snapshot::{
    Checkout, EntryKind, RESTORE_SUFFIX, RestoreRequest, Restorer, SnapshotError, SnapshotId, SnapshotRules,
    SnapshotStore, SnapshotTaker, SnapshotTree, TakenSnapshot,
};
use crate::store::Run;

use super::host::Host;
use super::review::{self, EarlierRounds, ReviewCheckout};
use super::snapshots::SnapshotHistory;

/// The snapshots of a run and what gates do with them.
#[derive(Debug)]
pub(super) struct RunSnapshots {
    pub(super) taker: SnapshotTaker,
    store: SnapshotStore,
    checkouts: PathBuf,
    journal: PathBuf,
    root: PathBuf,
    rules: SnapshotRules,
    gates: Vec<Gate>,
    /// The number of agents that this process has started.
    pub(super) agents_started: u64,
    /// The snapshot that was prepared last for a gate.
    newest: Option<SnapshotId>,
    clean: Option<CleanGates>,
    review: Option<(ReviewCheckout, SnapshotId)>,
    review_checkout: PathBuf,
}

impl RunSnapshots {
    pub(super) fn new(run: &Run, host: &Host, rules: &SnapshotRules, gates: &[Gate]) -> Self {
        let project = run.project();
        let store = SnapshotStore::at(project.snapshots(), host.supervisors());
        Self {
            store: store.clone(),
            taker: SnapshotTaker::new(store, run.id(), project.root(), rules.clone()),
            checkouts: project.checkouts(),
            journal: run.journal_path(),
            root: project.root().to_owned(),
            rules: rules.clone(),
            gates: gates.to_vec(),
            agents_started: 0,
            newest: None,
            clean: None,
            review: None,
            review_checkout: review::checkout_of(project),
        }
    }

    /// Prepares the checkout for the reviewers of a gate.
    pub(super) fn prepare_review(
        &mut self,
        gate: &Gate,
        earlier: EarlierRounds,
    ) -> Result<Box<ReviewMaterial>, String> {
        let tree = self.take()?;
        let first = self.first(tree)?;
        let problem = |error: SnapshotError| format!("cannot collect what changed: {error}");
        let mut material = review::material(&self.store, first, tree, earlier).map_err(problem)?;
        let root = self.root.canonicalize().unwrap_or_else(|_| self.root.clone());
        material.instructions = review::instructions(&self.store, first, &root, gate).map_err(problem)?;
        let mut checkout = match self.review.take() {
            Some((checkout, _)) => checkout,
            None => ReviewCheckout::new(&self.review_checkout),
        };
        checkout.prepare(&self.store, tree, material.patch.as_bytes())?;
        material.directory = checkout.directory().display().to_string();
        self.review = Some((checkout, tree));
        Ok(Box::new(material))
    }

    /// The directory in which reviewers work.
    pub(super) fn review_directory(&self) -> Option<&Path> {
        self.review.as_ref().map(|(checkout, _)| checkout.directory())
    }

    /// The files of the checkout that a reviewer changed. They are restored.
    pub(super) fn check_review(&mut self) -> Vec<String> {
        let Some((checkout, tree)) = &mut self.review else {
            return vec!["(the checkout is gone)".to_owned()];
        };
        let mut altered = checkout.altered();
        if !altered.is_empty()
            && let Err(reason) = checkout.restore(&self.store, *tree)
        {
            altered.push(format!("({reason})"));
        }
        altered
    }

    /// An environment in which `PATH` contains no directory of the workspace.
    pub(super) fn outside_environment(&self, environment: Environment) -> Environment {
        let root = self.root.canonicalize().unwrap_or_else(|_| self.root.clone());
        outside_environment(&root, environment)
    }

    /// Prepares a clean checkout for a gate, and the environment for it.
    pub(super) fn prepare(
        &mut self,
        gate: &Gate,
        version: GateVersion,
        environment: Environment,
    ) -> Result<(PreparedGate, Environment), String> {
        let tree = match (version, self.newest) {
            // Both versions of the protected files are checked with the same other files.
            (GateVersion::Protected, Some(tree)) => tree,
            (GateVersion::Protected | GateVersion::AsLeft, _) => self.take()?,
        };
        self.newest = Some(tree);
        let first = self.first(tree)?;
        let clean = self
            .clean
            .get_or_insert_with(|| CleanGates::new(self.checkouts.clone(), &self.root, first, &self.gates));
        let prepared = clean.prepare(&self.store, tree, gate, version)?;
        Ok((prepared, clean.environment(environment)))
    }

    /// Compares the project with the snapshot that the gates checked, and with the start of the run.
    pub(super) fn check_tree(&mut self, checked: Option<&str>) -> Result<CheckedTree, String> {
        let now = self.take()?;
        let first = self.first(now)?;
        let changed = |from: SnapshotId| -> Result<Vec<String>, String> {
            if from == now {
                return Ok(Vec::new());
            }
            let changes = self.store.changed_paths(from, now);
            let changes = changes.map_err(|error| error.to_string())?;
            let names = changes
                .iter()
                .map(|change| String::from_utf8_lossy(&change.path).into_owned());
            Ok(names.collect())
        };
        let is_check = |path: &String| {
            let is_script = self.gates.iter().any(|gate| gate.names_file(path));
            Gate::is_test_file(path) || path == "ralph.yml" || is_script
        };
        Ok(CheckedTree {
            tree: now.to_string(),
            changed: match checked.and_then(SnapshotId::parse) {
                Some(checked) => changed(checked)?,
                None => Vec::new(),
            },
            changed_checks: changed(first)?.into_iter().filter(is_check).collect(),
        })
    }

    /// Restores the files of a snapshot. What they replace is recorded.
    pub(super) fn restore(&mut self, id: &str) -> Result<TakenSnapshot, SnapshotError> {
        let invalid = || SnapshotError::InvalidId { text: id.to_owned() };
        let target = SnapshotId::parse(id).ok_or_else(invalid)?;
        let now = self.taker.take()?.id;
        let name = format!("{}{RESTORE_SUFFIX}", Timestamp::now().strftime("%Y%m%d-%H%M%S"));
        let mut restorer = Restorer::new(self.store.clone(), &name, &self.root, self.rules.clone());
        let request = RestoreRequest {
            target,
            recorded: vec![now],
            paths: Vec::new(),
        };
        let plan = restorer.plan(request)?;
        restorer.carry_out(plan)?;
        self.taker.take()
    }

    fn take(&mut self) -> Result<SnapshotId, String> {
        let taken = self.taker.take();
        taken
            .map(|taken| taken.id)
            .map_err(|error| format!("no snapshot was taken: {error}"))
    }

    /// The snapshot from the start of the run; the given one if no agent has been started yet.
    fn first(&self, newest: SnapshotId) -> Result<SnapshotId, String> {
        let history = SnapshotHistory::read(&self.journal).map_err(|error| error.to_string())?;
        let first = match (history.first(), self.agents_started) {
            (Some(first), _) if first.iteration == 0 && first.moment == SnapshotMoment::Start => {
                SnapshotId::parse(&first.id)
            }
            (None, 0) => Some(newest),
            (Some(_) | None, _) => None,
        };
        first.ok_or_else(|| "there is no snapshot from the start of the run".to_owned())
    }
}

/// The checkouts of a run. Those with the protected files are separate, so that what the changed files leave in a cache is
/// not used by them.
#[derive(Debug)]
pub(super) struct CleanGates {
    directory: PathBuf,
    /// The project root, without symbolic links.
    root: PathBuf,
    /// The snapshot from the start of the run.
    first: SnapshotId,
    kept: Vec<PathPattern>,
    as_left: Option<Checkout>,
    protected: Option<Checkout>,
}

/// A checkout that is ready for a gate.
#[derive(Debug)]
pub(super) struct PreparedGate {
    /// Where the gate runs.
    pub(super) directory: PathBuf,
    pub(super) tree: SnapshotId,
    /// The protected files that differ from the start of the run.
    pub(super) protected_changes: Vec<String>,
    watched: Vec<WatchedFile>,
}

/// A protected file in a checkout.
#[derive(Debug)]
struct WatchedFile {
    name: String,
    path: PathBuf,
    state: Option<FileStat>,
}

impl WatchedFile {
    fn new(root: &Path, name: &[u8]) -> Self {
        let path = root.join(OsString::from_vec(name.to_vec()));
        Self {
            name: String::from_utf8_lossy(name).into_owned(),
            state: state_of(&path),
            path,
        }
    }
}

fn state_of(path: &Path) -> Option<FileStat> {
    path.symlink_metadata()
        .ok()
        .map(|metadata| FileStat::of(&metadata))
}

impl PreparedGate {
    /// The protected files that changed while the gate ran.
    pub(super) fn altered(&self) -> Vec<String> {
        let altered = self
            .watched
            .iter()
            .filter(|file| state_of(&file.path) != file.state);
        altered.map(|file| file.name.clone()).collect()
    }
}

impl CleanGates {
    /// `directory` is created when a gate needs it. `gates` are all gates of the run.
    pub(super) fn new(directory: PathBuf, root: &Path, first: SnapshotId, gates: &[Gate]) -> Self {
        let patterns = gates.iter().flat_map(|gate| &gate.cache);
        Self {
            directory,
            root: root.canonicalize().unwrap_or_else(|_| root.to_owned()),
            first,
            // The patterns were checked with the configuration. One that cannot be parsed keeps nothing.
            kept: patterns.flat_map(|pattern| pattern.parse()).collect(),
            as_left: None,
            protected: None,
        }
    }

    /// Prepares the files for a gate.
    pub(super) fn prepare(
        &mut self,
        store: &SnapshotStore,
        tree: SnapshotId,
        gate: &Gate,
        version: GateVersion,
    ) -> Result<PreparedGate, String> {
        let below = self.below_root(gate)?;
        let problem = |error: SnapshotError| format!("cannot prepare a clean checkout: {error}");
        let (slot, name) = match version {
            GateVersion::AsLeft => (&mut self.as_left, "as-left"),
            GateVersion::Protected => (&mut self.protected, "protected"),
        };
        let checkout =
            slot.get_or_insert_with(|| Checkout::new(&self.directory.join(name), self.kept.clone()));
        checkout.update(store, tree).map_err(problem)?;
        let top = checkout.directory().to_owned();
        let mut prepared = PreparedGate {
            directory: top.join(below),
            tree,
            protected_changes: Vec::new(),
            watched: Vec::new(),
        };
        if gate.protect.is_empty() {
            return Ok(prepared);
        }
        let first = store.tree(self.first).map_err(problem)?;
        let protection = Protection::of(gate);
        let changed = protection.changed(store, self.first, tree).map_err(problem)?;
        prepared.protected_changes = names(&changed);
        if version == GateVersion::Protected {
            for path in &changed {
                restore(store, &first, self.first, &top, path)
                    .map_err(|error| format!("cannot restore {}: {error}", String::from_utf8_lossy(path)))?;
            }
        }
        let files = first
            .entries
            .iter()
            .filter(|(_, entry)| entry.kind != EntryKind::Directory);
        let protected = files.map(|(path, _)| path).filter(|path| protection.covers(path));
        prepared.watched = protected.map(|path| WatchedFile::new(&top, path)).collect();
        Ok(prepared)
    }

    /// The gate's directory relative to the project root.
    fn below_root(&self, gate: &Gate) -> Result<PathBuf, String> {
        let Some(cwd) = &gate.cwd else {
            return Ok(PathBuf::new());
        };
        let real = cwd.canonicalize().unwrap_or_else(|_| cwd.clone());
        let below = real.strip_prefix(&self.root).map(Path::to_owned);
        below.map_err(|_| {
            format!(
                "its directory {} is outside of the project, so the gate cannot run in a clean checkout",
                cwd.display()
            )
        })
    }

    pub(super) fn environment(&self, environment: Environment) -> Environment {
        outside_environment(&self.root, environment)
    }
}

/// The environment without what the agent can replace: directories of the workspace and relative ones in `PATH`.
fn outside_environment(root: &Path, mut environment: Environment) -> Environment {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_safe = |directory: &PathBuf| {
        let real = directory.canonicalize().unwrap_or_else(|_| directory.clone());
        directory.is_absolute() && !real.starts_with(root) && !directory.starts_with(root)
    };
    let safe: Vec<PathBuf> = std::env::split_paths(&path).filter(is_safe).collect();
    if let Ok(path) = std::env::join_paths(safe) {
        environment.set.retain(|(name, _)| name != "PATH");
        environment.set.push(("PATH".into(), path));
    }
    environment
}

/// The protected files of a gate that differ between two snapshots.
pub(super) fn protected_changes(
    store: &SnapshotStore,
    first: SnapshotId,
    tree: SnapshotId,
    gate: &Gate,
) -> Result<Vec<String>, SnapshotError> {
    if gate.protect.is_empty() || first == tree {
        return Ok(Vec::new());
    }
    Ok(names(&Protection::of(gate).changed(store, first, tree)?))
}

fn names(paths: &[Vec<u8>]) -> Vec<String> {
    let names = paths
        .iter()
        .map(|path| String::from_utf8_lossy(path).into_owned());
    names.collect()
}

/// Gives a path the content of the first snapshot, or removes it if that snapshot does not contain it.
fn restore(
    store: &SnapshotStore,
    first: &SnapshotTree,
    id: SnapshotId,
    top: &Path,
    name: &[u8],
) -> io::Result<()> {
    let path = top.join(OsString::from_vec(name.to_vec()));
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(&path)?,
        Ok(_) => fs::remove_file(&path)?,
        Err(_) => {}
    }
    let Some(entry) = first.entries.get(name) else {
        return Ok(());
    };
    let content = store.read_file(id, name).map_err(io::Error::other)?;
    let content = content.ok_or(io::ErrorKind::NotFound)?;
    if let Some(parent) = path.parent() {
        make_directory(top, parent)?;
    }
    match entry.kind {
        EntryKind::Symlink => symlink(std::ffi::OsStr::from_bytes(&content), &path),
        EntryKind::File | EntryKind::Directory => {
            fs::write(&path, content)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(entry.permissions))
        }
    }
}

/// Creates the directories below `top`. A file or a symbolic link in their place is removed, so that nothing is written
/// elsewhere.
fn make_directory(top: &Path, directory: &Path) -> io::Result<()> {
    let below = directory.strip_prefix(top).unwrap_or(Path::new(""));
    let mut path = top.to_owned();
    for component in below.components() {
        path.push(component);
        match path.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => continue,
            Ok(_) => fs::remove_file(&path)?,
            Err(_) => {}
        }
        fs::create_dir(&path)?;
    }
    Ok(())
}

/// Which files of a gate are protected: those that match `protect`, the files that its command names, and files that
/// test tools read without being asked.
struct Protection<'a> {
    gate: &'a Gate,
    patterns: Vec<PathPattern>,
}

impl<'a> Protection<'a> {
    fn of(gate: &'a Gate) -> Self {
        Self {
            gate,
            patterns: gate.protect.iter().flat_map(|pattern| pattern.parse()).collect(),
        }
    }

    /// The protected files that differ.
    fn changed(
        &self,
        store: &SnapshotStore,
        first: SnapshotId,
        tree: SnapshotId,
    ) -> Result<Vec<Vec<u8>>, SnapshotError> {
        let changes = store.changed_paths(first, tree)?.into_iter();
        let paths = changes.map(|change| change.path);
        Ok(paths.filter(|path| self.covers(path)).collect())
    }

    fn covers(&self, path: &[u8]) -> bool {
        let text = String::from_utf8_lossy(path);
        self.patterns.iter().any(|pattern| pattern.matches(&text))
            || self.gate.names_file(&text)
            || Gate::is_runner_file(&text)
    }
}
