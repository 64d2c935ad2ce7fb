//! Reads from the user's repository what is needed to list a project's files: the tracked files, and the files with
//! ignore rules.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::files::GitDirectory;
use crate::process::{Bounds, Supervisors, read_git};

/// Limits for git, which lists tracked files.
const GIT: Bounds = Bounds {
    timeout: Duration::from_secs(30),
    grace: Duration::from_secs(1),
    max_bytes: 256 << 20,
};

/// The repository around a project, if there is one.
#[derive(Debug, Default)]
pub(super) struct GitFiles {
    /// Tracked files below the project root.
    pub(super) tracked: Vec<Vec<u8>>,
    /// Files with ignore rules for the whole repository; the first match decides.
    pub(super) exclude_files: Vec<PathBuf>,
    /// The top level of the repository, if it lies above the project root.
    pub(super) top: Option<PathBuf>,
}

impl GitFiles {
    /// `root` is canonical. Without git, or if git fails, nothing is tracked.
    pub(super) fn read(root: &Path, supervisors: &Supervisors) -> Self {
        let Some((top, git)) = GitDirectory::around(root) else {
            return Self::default();
        };
        let run = |args: &[&str]| {
            let args: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
            let captured = read_git(Path::new("git"), supervisors, root, &args, GIT).ok()?;
            let is_complete =
                captured.end.is_some_and(|end| end.success()) && captured.stdout_omitted.is_none();
            is_complete.then_some(captured.stdout)
        };
        let tracked = run(&["ls-files", "-z"]).unwrap_or_default();
        let tracked = tracked.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        let users = match run(&["config", "--type=path", "--get", "core.excludesFile"]) {
            Some(path) => Some(PathBuf::from(OsStr::from_bytes(path.trim_ascii_end()))),
            None => config_directory().map(|directory| directory.join("git/ignore")),
        };
        Self {
            tracked: tracked.map(<[u8]>::to_vec).collect(),
            exclude_files: [git.exclude_file()].into_iter().chain(users).collect(),
            top: (top != root).then_some(top),
        }
    }
}

fn config_directory() -> Option<PathBuf> {
    let configured = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    configured
        .filter(|path| path.is_absolute())
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".config")))
}
