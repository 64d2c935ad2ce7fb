//! Detects changes in the workspace: whether an iteration changed anything, and whether it changed files that it must not
//! change. The comparison does not rely on the git repository, which the agent can configure.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::PathPattern;
use crate::process::{Bounds, Supervisors, read_git};
use crate::store::DIRECTORY;

use crate::files::{GitDirectory, Head};

use super::manifest::{IgnoreRules, Manifest};

/// Limits for git, which compares commits.
const GIT: Bounds = Bounds {
    timeout: Duration::from_secs(30),
    grace: Duration::from_secs(1),
    max_bytes: 32 << 20,
};

/// Stands for `HEAD` on a branch without a commit.
const INITIAL: &str = "(initial)";
/// The object name of git's empty tree.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// What to check in the workspace.
#[derive(Debug, Clone, Default)]
pub struct Watched {
    /// Globs; empty allows every change.
    pub allowed_paths: Vec<String>,
}

/// Scans one workspace before and after each iteration.
pub(super) struct Workspace {
    root: PathBuf,
    supervisors: Supervisors,
    /// The repository around the workspace when the run started.
    repository: Option<Repository>,
    /// `None` allows every change.
    allowed: Option<Vec<PathPattern>>,
    /// Read by the first scan, before the agent can change them.
    rules: Option<IgnoreRules>,
    before: Option<Snapshot>,
    /// The newest scan; its hashes are used again.
    newest: Manifest,
}

struct Repository {
    top: PathBuf,
    git: GitDirectory,
    /// The workspace below the top level; empty, or with a slash at its end.
    prefix: Vec<u8>,
}

struct Snapshot {
    head: String,
    manifest: Manifest,
}

impl Workspace {
    pub(super) fn open(root: &Path, supervisors: &Supervisors, watched: &Watched) -> Self {
        // The patterns were checked with the configuration. One that cannot be parsed allows nothing.
        let patterns = watched.allowed_paths.iter().flat_map(|glob| glob.parse());
        let real = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let repository = GitDirectory::around(&real).map(|(top, git)| Repository {
            prefix: prefix(&top, &real),
            top,
            git,
        });
        Self {
            root: real,
            supervisors: supervisors.clone(),
            repository,
            allowed: (!watched.allowed_paths.is_empty()).then(|| patterns.collect()),
            rules: None,
            before: None,
            newest: Manifest::default(),
        }
    }

    /// Scans the workspace before an iteration. Returns its fingerprint.
    pub(super) fn scan(&mut self) -> Result<String, String> {
        // After a failed scan, no older one may be compared with.
        if let Some(before) = self.before.take() {
            self.newest = before.manifest;
        }
        let snapshot = self.snapshot()?;
        let fingerprint = snapshot.manifest.fingerprint(&snapshot.head);
        self.before = Some(snapshot);
        Ok(fingerprint)
    }

    /// The changed files outside of the allowed paths.
    pub(super) fn violations(&mut self) -> Result<Vec<String>, String> {
        let Some(allowed) = self.allowed.clone() else {
            return Ok(Vec::new());
        };
        let before = self
            .before
            .take()
            .ok_or("it could not be scanned before the iteration")?;
        self.newest = before.manifest;
        let after = self.snapshot()?;
        let mut changed = self.newest.differences(&after.manifest);
        self.newest = after.manifest;
        if before.head != after.head {
            changed.extend(self.committed(&before.head, &after.head)?);
        }
        let names: BTreeSet<String> = changed
            .into_iter()
            .map(|path| String::from_utf8_lossy(&self.seen_from_workspace(path)).into_owned())
            .collect();
        let is_allowed = |name: &String| allowed.iter().any(|pattern| pattern.matches(name));
        Ok(names.into_iter().filter(|name| !is_allowed(name)).collect())
    }

    fn top(&self) -> &Path {
        self.repository
            .as_ref()
            .map_or(&self.root, |repository| &repository.top)
    }

    fn snapshot(&mut self) -> Result<Snapshot, String> {
        let head = self.head()?;
        let rules = match self.rules.take() {
            Some(rules) => rules,
            None => self.read_rules(),
        };
        let manifest = Manifest::scan(self.top(), &rules, &self.newest);
        self.rules = Some(rules);
        let manifest = manifest.map_err(|error| error.to_string())?;
        Ok(Snapshot { head, manifest })
    }

    /// If git cannot list the tracked files, nothing is ignored: an ignored file could be a tracked one.
    fn read_rules(&self) -> IgnoreRules {
        let Some(repository) = &self.repository else {
            return IgnoreRules::only(DIRECTORY.as_bytes());
        };
        let own = [&repository.prefix, DIRECTORY.as_bytes()].concat();
        match self.git(&["ls-files", "-z", "--full-name", "--", ":/"]) {
            Ok(listed) => {
                let tracked: Vec<&[u8]> = listed.split(|byte| *byte == 0).collect();
                IgnoreRules::read(&repository.top, &own, &self.exclude_files(repository), &tracked)
            }
            Err(error) => {
                tracing::warn!(error, "git cannot list its files; .gitignore has no effect");
                IgnoreRules::only(&own)
            }
        }
    }

    /// The files with ignore rules for the whole repository, in ascending precedence of their place in the list.
    fn exclude_files(&self, repository: &Repository) -> Vec<PathBuf> {
        let configured = self.git(&["config", "--type=path", "--get", "core.excludesFile"]);
        let users = match configured {
            Ok(path) => Some(PathBuf::from(OsStr::from_bytes(path.trim_ascii_end()))),
            Err(_) => config_directory().map(|directory| directory.join("git/ignore")),
        };
        [repository.git.exclude_file()].into_iter().chain(users).collect()
    }

    /// The current commit, or `(initial)` if there is none yet; empty outside of a repository.
    fn head(&self) -> Result<String, String> {
        let Some(repository) = &self.repository else {
            return Ok(String::new());
        };
        match repository.git.head() {
            Head::Commit(hash) => Ok(hash),
            Head::Unborn => Ok(INITIAL.to_owned()),
            Head::Broken => Err("the repository has no valid HEAD".to_owned()),
            Head::AskGit => {
                let hash = self.git(&["rev-parse", "--verify", "--end-of-options", "HEAD"])?;
                Ok(String::from_utf8_lossy(hash.trim_ascii()).into_owned())
            }
        }
    }

    /// The files that differ between two commits. They may be unchanged in the workspace: an agent can commit a change and
    /// revert it there.
    fn committed(&self, from: &str, to: &str) -> Result<Vec<Vec<u8>>, String> {
        let name = |head: &str| match head {
            INITIAL => EMPTY_TREE.to_owned(),
            head => head.to_owned(),
        };
        let (from, to) = (name(from), name(to));
        let names = self.git(&["diff-tree", "-r", "-z", "--name-only", "--no-renames", &from, &to])?;
        let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.map(<[u8]>::to_vec).collect())
    }

    /// Converts a path below the top level to one relative to the workspace.
    fn seen_from_workspace(&self, path: Vec<u8>) -> Vec<u8> {
        match &self.repository {
            Some(repository) => seen_from(&repository.prefix, path),
            None => path,
        }
    }

    fn git(&self, args: &[&str]) -> Result<Vec<u8>, String> {
        let words: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
        let captured = read_git(Path::new("git"), &self.supervisors, &self.root, &words, GIT)
            .map_err(|error| error.to_string())?;
        match captured.end {
            Some(end) if end.success() && captured.stdout_omitted.is_none() => Ok(captured.stdout),
            Some(end) if end.success() => Err(format!(
                "git {} printed more than {} bytes",
                args[0], GIT.max_bytes
            )),
            Some(end) => {
                let stderr = String::from_utf8_lossy(&captured.stderr);
                Err(format!("git {}: {end}: {}", args[0], stderr.trim()))
            }
            None => Err(format!("git {} timed out", args[0])),
        }
    }
}

/// The path of a directory below another one; with a slash at its end, unless it is empty.
fn prefix(top: &Path, directory: &Path) -> Vec<u8> {
    let below = directory.strip_prefix(top).unwrap_or(Path::new(""));
    let bytes = below.as_os_str().as_bytes();
    match bytes.is_empty() {
        true => Vec::new(),
        false => [bytes, b"/"].concat(),
    }
}

fn seen_from(prefix: &[u8], path: Vec<u8>) -> Vec<u8> {
    match path.strip_prefix(prefix) {
        Some(below) => below.to_vec(),
        None => {
            let ups = prefix.iter().filter(|byte| **byte == b'/').count();
            [b"../".repeat(ups).as_slice(), &path].concat()
        }
    }
}

fn config_directory() -> Option<PathBuf> {
    let configured = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    configured
        .filter(|path| path.is_absolute())
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".config")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_workspace() {
        let seen = |prefix: &str, path: &str| {
            String::from_utf8(seen_from(prefix.as_bytes(), path.as_bytes().to_vec())).expect("text")
        };
        assert_eq!(seen("", "src/a"), "src/a");
        assert_eq!(seen("a/b/", "a/b/c"), "c");
        assert_eq!(seen("a/b/", "x"), "../../x");
        assert_eq!(prefix(Path::new("/w"), Path::new("/w/a/b")), b"a/b/");
        assert_eq!(prefix(Path::new("/w"), Path::new("/w")), b"");
    }
}
