//! The worktrees of a plan's tasks: where they are, and how they are created and made ready.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use sha2::{Digest, Sha256};

use super::children::{ChildOutcome, ChildProcesses};
use super::git::Repository;
use crate::files::free_space;
use crate::process::Environment;
use crate::run::shell_command;

/// A worktree is not created with less free space than this.
const MIN_FREE_BYTES: u64 = 512 << 20;
/// How long `worktree.setup` may take.
const SETUP_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(1800);
/// The file that lists ignored files to copy.
const INCLUDE: &str = ".worktreeinclude";
/// Ports per worktree, and the first port of all.
const PORTS: u64 = 20;
const FIRST_PORT: u64 = 10_000;
/// Ports per plan.
const PORTS_PER_PLAN: u64 = 2_000;
const PLANS_WITH_OWN_PORTS: u64 = 10;

/// The worktrees of one plan.
pub(crate) struct Worktrees {
    repository: Repository,
    directory: PathBuf,
    setup: Option<String>,
    /// Git changes the list of worktrees without a lock of its own.
    creating: Mutex<()>,
}

/// The user's cache directory; `None` without a home directory.
pub(super) fn cache_directory() -> Option<PathBuf> {
    let variable = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")))
}

impl Worktrees {
    /// `project` is the name of the project's directory in the state directory.
    pub(crate) fn new(
        repository: Repository,
        project: &str,
        plan: &str,
        setup: Option<String>,
    ) -> io::Result<Self> {
        let cache =
            cache_directory().ok_or_else(|| io::Error::other("neither XDG_CACHE_HOME nor HOME is set"))?;
        let directory = cache.join("ralph/worktrees").join(project).join(plan);
        fs::create_dir_all(&directory)?;
        Ok(Self {
            repository,
            // Git reports paths without symbolic links.
            directory: fs::canonicalize(&directory)?,
            setup,
            creating: Mutex::new(()),
        })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// A file beside a worktree, which exists once the worktree is complete.
    fn ready_file(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.ready"))
    }

    pub(crate) fn is_ready(&self, name: &str) -> bool {
        self.ready_file(name).exists() && self.path(name).join(".git").exists()
    }

    /// Returns a worktree, which is created from `commit` if it does not exist.
    pub(crate) fn prepare(
        &self,
        name: &str,
        branch: Option<&str>,
        commit: &str,
        children: &ChildProcesses,
    ) -> Result<PathBuf, String> {
        let path = self.path(name);
        if self.is_ready(name) {
            return Ok(path);
        }
        check_space(&self.directory)?;
        {
            let _guard = self
                .creating
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            // A process that was killed may have left a part of it.
            if path.exists() {
                self.repository.remove_worktree(&path);
            }
            self.repository
                .add_worktree(&path, branch, commit)
                .map_err(|error| error.to_string())?;
        }
        self.copy_included(&path)?;
        if let Some(setup) = &self.setup {
            self.run_setup(setup, &path, children)?;
        }
        fs::write(self.ready_file(name), "")
            .map_err(|error| format!("cannot write beside {}: {error}", path.display()))?;
        Ok(path)
    }

    /// Removes a worktree. Its branch stays.
    pub(crate) fn remove(&self, name: &str) {
        let _guard = self
            .creating
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        // It is missing if the worktree was never prepared.
        let _ = fs::remove_file(self.ready_file(name));
        if self.path(name).exists() {
            self.repository.remove_worktree(&self.path(name));
        }
    }

    /// Removes all worktrees of the plan.
    pub(crate) fn remove_all(&self) {
        for name in self.names() {
            self.remove(&name);
        }
    }

    fn names(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(&self.directory) else {
            return Vec::new();
        };
        let names = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok());
        names.filter(|name| !name.ends_with(".ready")).collect()
    }

    /// Removes worktrees that were not completed.
    pub(crate) fn remove_incomplete(&self) {
        for name in self.names() {
            if !self.is_ready(&name) {
                self.remove(&name);
            }
        }
    }

    /// Copies the ignored files that `.worktreeinclude` names from the user's checkout.
    fn copy_included(&self, to: &Path) -> Result<(), String> {
        let patterns = self.repository.root().join(INCLUDE);
        if !patterns.is_file() {
            return Ok(());
        }
        let files = self
            .repository
            .ignored_files(&patterns)
            .map_err(|error| error.to_string())?;
        for file in files {
            let (source, target) = (self.repository.root().join(&file), to.join(&file));
            let copy = || -> io::Result<()> {
                if let Some(parent) = target.parent() {
                    fs::create_dir_all(parent)?;
                }
                if source.is_symlink() {
                    return std::os::unix::fs::symlink(fs::read_link(&source)?, &target);
                }
                if source.is_file() {
                    fs::copy(&source, &target)?;
                }
                Ok(())
            };
            copy().map_err(|error| format!("cannot copy {} ({INCLUDE}): {error}", file.display()))?;
        }
        Ok(())
    }

    fn run_setup(&self, setup: &str, path: &Path, children: &ChildProcesses) -> Result<(), String> {
        let variables = vec![(
            OsString::from("RALPH_PLAN_ROOT"),
            self.repository.root().as_os_str().to_owned(),
        )];
        let environment = Environment {
            remove: Vec::new(),
            set: variables,
        };
        let spec = shell_command(setup, environment, path);
        let (outcome, output) = children.run_captured(&spec, SETUP_TIMEOUT);
        match outcome {
            ChildOutcome::Ended(end) if end.success() => Ok(()),
            ChildOutcome::Ended(end) => Err(format!(
                "worktree.setup failed with {end}: {}",
                last_line(&output)
            )),
            ChildOutcome::TimedOut => Err("worktree.setup timed out".to_owned()),
            ChildOutcome::Stopped => Err("stopped".to_owned()),
            ChildOutcome::CouldNotStart(why) => Err(format!("cannot start worktree.setup: {why}")),
        }
    }
}

fn last_line(output: &str) -> &str {
    output
        .lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default()
}

pub(super) fn check_space(directory: &Path) -> Result<(), String> {
    let Ok(free) = free_space(directory) else {
        return Ok(());
    };
    if free < MIN_FREE_BYTES {
        return Err(format!(
            "not enough space for a worktree in {}: {} MB free, {} MB required",
            directory.display(),
            free >> 20,
            MIN_FREE_BYTES >> 20
        ));
    }
    Ok(())
}

/// The first of the ports that the processes of one worktree may use. Slots of one plan never share ports.
pub(crate) fn port_base(plan: &Path, slot: usize) -> u64 {
    use std::os::unix::ffi::OsStrExt;

    let digest = Sha256::digest(plan.as_os_str().as_bytes());
    let region = u64::from(digest[0]) % PLANS_WITH_OWN_PORTS;
    let slot = (slot as u64).min(PORTS_PER_PLAN / PORTS - 1);
    FIRST_PORT + region * PORTS_PER_PLAN + slot * PORTS
}
