//! Makes the workspace of a task: from its base, or from its last checkpoint.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ralph::fleet::StateDirectory;
use sha2::{Digest, Sha256};

use super::checkpoint::remote_refs;
use super::{Copy, Git, JournalSummary, PARTS, ProvisionError, state_ref};

/// One worker fetches into one mirror at a time.
static FETCH: Mutex<()> = Mutex::new(());

/// Where a task comes from.
#[derive(Debug, Clone)]
pub(crate) struct TaskSource<'a> {
    pub(crate) remote: &'a str,
    /// `plan/task`.
    pub(crate) name: &'a str,
    pub(crate) branch: &'a str,
    /// The branch on which a new task starts, if it exists.
    pub(crate) integration: Option<&'a str>,
    /// The commit on which a new task starts otherwise.
    pub(crate) base: &'a str,
    pub(crate) run_id: &'a str,
    pub(crate) ship: &'a [String],
    pub(crate) worker: &'a str,
    pub(crate) attempt: u32,
}

/// A workspace that is ready.
#[derive(Debug)]
pub(crate) struct Provisioned {
    pub(crate) copy: Copy,
    /// The file that describes the copy.
    pub(crate) file: PathBuf,
    /// The state directory of ralph for this copy.
    pub(crate) state: PathBuf,
    /// Whether the run has started before, and is resumed.
    pub(crate) is_known: bool,
}

/// Creates a new directory below `root` with the workspace of a task.
pub(crate) fn prepare(root: &Path, source: &TaskSource<'_>) -> Result<Provisioned, ProvisionError> {
    let directory = new_directory(root, source)?;
    let workspace = directory.join("work");
    let mirror = fetch(root, source)?;
    let own = Git::new(&directory);
    let mirror_text = mirror.display().to_string();
    let workspace_text = workspace.display().to_string();
    own.run(&[
        "clone",
        "--quiet",
        "--shared",
        "--no-checkout",
        &mirror_text,
        &workspace_text,
    ])?;
    let work = Git::new(&workspace);
    work.run(&["remote", "set-url", "origin", source.remote])?;
    exclude_own_files(&workspace)?;
    let refs = known_refs(&Git::new(&mirror), source)?;
    let state_directory = directory.join("state");
    make_private(&state_directory)?;
    let project = StateDirectory::at(state_directory.clone()).project(&workspace);
    let mut copy = Copy {
        remote: source.remote.to_owned(),
        name: source.name.to_owned(),
        branch: source.branch.to_owned(),
        run_id: source.run_id.to_owned(),
        run_directory: project.runs().join(source.run_id),
        workspace,
        worker: source.worker.to_owned(),
        attempt: source.attempt,
        ship: source.ship.to_vec(),
        refs,
        segments: Vec::new(),
        journal_bytes: 0,
        summary: JournalSummary::default(),
    };
    let has_checkpoint = !copy.refs[&copy.state_ref(PARTS[2])].is_empty();
    let is_known = match has_checkpoint {
        true => restore(&mut copy, &work)?,
        false => {
            let start = start_of(&Git::new(&mirror), source);
            check_out(&work, source.branch, &start)?;
            false
        }
    };
    let file = directory.join("copy.json");
    copy.write(&file)?;
    Ok(Provisioned {
        copy,
        file,
        state: state_directory,
        is_known,
    })
}

/// Keeps ralph's links in the workspace out of commits and checkpoints.
fn exclude_own_files(workspace: &Path) -> Result<(), ProvisionError> {
    let path = workspace.join(".git/info/exclude");
    let written =
        fs::create_dir_all(workspace.join(".git/info")).and_then(|()| fs::write(&path, ".agent/\n"));
    written.map_err(|error| ProvisionError::File {
        path,
        why: error.to_string(),
    })
}

/// The integration branch, if it exists, else the base.
fn start_of(mirror: &Git, source: &TaskSource<'_>) -> String {
    let integration = source
        .integration
        .and_then(|branch| mirror.resolve(&format!("refs/mirror/heads/{branch}")));
    integration.unwrap_or_else(|| source.base.to_owned())
}

fn check_out(work: &Git, branch: &str, commit: &str) -> Result<(), ProvisionError> {
    work.run(&["checkout", "--quiet", "-B", branch, commit]).map(drop)
}

/// Restores the last checkpoint; returns whether it contains a journal.
fn restore(copy: &mut Copy, work: &Git) -> Result<bool, ProvisionError> {
    let value = |copy: &Copy, part: &str| copy.refs[&copy.state_ref(part)].clone();
    let [head, tree, state] = PARTS.map(|part| value(copy, part));
    check_out(work, &copy.branch, &head)?;
    work.run(&["read-tree", "-u", "--reset", &tree])?;
    work.run(&["reset", "--quiet", "--mixed", &head])?;
    make_private(&copy.run_directory)?;
    let git_directory = work.run(&["rev-parse", "--absolute-git-dir"])?;
    let run = Git::new(&copy.run_directory)
        .with("GIT_DIR", git_directory)
        .with("GIT_WORK_TREE", &copy.run_directory)
        .with_index(&copy.beside("state-index"));
    run.run(&["read-tree", &state])?;
    run.run(&["checkout-index", "--all", "--force"])?;
    let listing = work.run(&["ls-tree", "-r", &state, "journal/"])?;
    let blobs = listing.lines().filter_map(|line| line.split_whitespace().nth(2));
    copy.segments = blobs.map(str::to_owned).collect();
    let mut journal = Vec::new();
    for blob in &copy.segments {
        journal.extend(work.bytes(&["cat-file", "blob", blob])?);
    }
    copy.journal_bytes = journal.len() as u64;
    copy.summary.add(&journal);
    let failed = |path: &Path, error: std::io::Error| ProvisionError::File {
        path: path.to_owned(),
        why: error.to_string(),
    };
    let segments = copy.run_directory.join("journal");
    let _ = fs::remove_dir_all(&segments);
    if !journal.is_empty() {
        let path = copy.run_directory.join("events.jsonl");
        fs::write(&path, &journal).map_err(|error| failed(&path, error))?;
    }
    protect(&copy.run_directory).map_err(|error| failed(&copy.run_directory, error))?;
    Ok(!journal.is_empty())
}

/// The refs of the checkpoint as the remote has them; those that do not exist are empty.
fn known_refs(mirror: &Git, source: &TaskSource<'_>) -> Result<BTreeMap<String, String>, ProvisionError> {
    let mut refs: BTreeMap<String, String> = PARTS
        .iter()
        .map(|part| state_ref(source.name, part))
        .chain([format!("refs/heads/{}", source.branch)])
        .map(|name| (name, String::new()))
        .collect();
    let names: Vec<String> = refs.keys().cloned().collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for (name, value) in remote_refs(mirror, source.remote, &names)? {
        if mirror.resolve(&format!("{value}^{{object}}")).is_none() {
            // Moved since the fetch.
            mirror.run(&["fetch", "--quiet", "--no-tags", source.remote, &value])?;
        }
        refs.entry(name).and_modify(|known| *known = value);
    }
    Ok(refs)
}

/// Updates the mirror of the remote, and returns its directory.
fn fetch(root: &Path, source: &TaskSource<'_>) -> Result<PathBuf, ProvisionError> {
    let _guard = FETCH.lock().unwrap_or_else(PoisonError::into_inner);
    let digest = Sha256::digest(source.remote);
    let name: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    let mirror = root.join("mirrors").join(format!("{name}.git"));
    make_private(&mirror)?;
    let git = Git::new(&mirror);
    if !mirror.join("HEAD").exists() {
        git.run(&["init", "--quiet", "--bare", "."])?;
    }
    let states = format!("+refs/ralph/{0}/*:refs/mirror/ralph/{0}/*", source.name);
    let heads = "+refs/heads/*:refs/mirror/heads/*";
    git.run(&["fetch", "--quiet", "--prune", source.remote, heads, &states])?;
    Ok(mirror)
}

/// A directory that no earlier attempt has used.
fn new_directory(root: &Path, source: &TaskSource<'_>) -> Result<PathBuf, ProvisionError> {
    let base = root.join("work");
    make_private(&base)?;
    let name = source.name.replace('/', ".");
    for number in 1..10_000 {
        let path = base.join(format!("{name}-a{}-{number}", source.attempt));
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                let why = error.to_string();
                return Err(ProvisionError::File { path, why });
            }
        }
    }
    let why = "no unused name found".to_owned();
    Err(ProvisionError::File { path: base, why })
}

fn make_private(path: &Path) -> Result<(), ProvisionError> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| ProvisionError::File {
        path: path.to_owned(),
        why: error.to_string(),
    })
}

/// Only the user may read the files of a run; git does not keep that.
fn protect(directory: &Path) -> std::io::Result<()> {
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        match entry.file_type()? {
            kind if kind.is_dir() => protect(&entry.path())?,
            kind if kind.is_file() => fs::set_permissions(entry.path(), fs::Permissions::from_mode(0o600))?,
            _ => {}
        }
    }
    Ok(())
}
