//! Git for a plan: branches, worktrees, commits and merges. It never changes the user's branch, index or files.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::process::{Bounds, GitCommand, Supervisors, run_git};

const TIMEOUT: Duration = Duration::from_secs(600);
const GRACE: Duration = Duration::from_secs(2);
const MAX_BYTES: usize = 64 << 20;

/// Why git could not do something.
#[derive(Debug, Clone, thiserror::Error)]
#[error("git {command}: {why}")]
pub struct GitError {
    command: String,
    why: String,
}

/// The repository of the user.
#[derive(Clone)]
pub(crate) struct Repository {
    program: PathBuf,
    supervisors: Supervisors,
    root: PathBuf,
    /// Variables for commits, if git has no identity of the user.
    identity: Vec<(OsString, OsString)>,
}

/// The result of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MergedTree {
    Tree(String),
    Conflict { files: Vec<String> },
}

impl Repository {
    /// The repository that contains a directory; `None` outside of git.
    pub(crate) fn open(program: PathBuf, supervisors: Supervisors, directory: &Path) -> Option<Self> {
        let mut repository = Self {
            program,
            supervisors,
            root: directory.to_owned(),
            identity: Vec::new(),
        };
        let top = repository
            .text(directory, &["rev-parse", "--show-toplevel"])
            .ok()?;
        repository.root = PathBuf::from(top);
        if repository
            .text(directory, &["var", "GIT_COMMITTER_IDENT"])
            .is_err()
        {
            for role in ["AUTHOR", "COMMITTER"] {
                repository
                    .identity
                    .push((format!("GIT_{role}_NAME").into(), "ralph".into()));
                repository
                    .identity
                    .push((format!("GIT_{role}_EMAIL").into(), "ralph@localhost".into()));
            }
        }
        Some(repository)
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Runs git in a directory; `Ok` has the exit code and stdout.
    fn run(&self, cwd: &Path, args: &[&str], stdin: Option<Vec<u8>>) -> Result<(i32, Vec<u8>), GitError> {
        self.run_with(cwd, args, stdin, &[])
    }

    fn run_with(
        &self,
        cwd: &Path,
        args: &[&str],
        stdin: Option<Vec<u8>>,
        variables: &[(OsString, OsString)],
    ) -> Result<(i32, Vec<u8>), GitError> {
        let failed = |why: String| GitError {
            command: args.first().copied().unwrap_or_default().to_owned(),
            why,
        };
        let command = GitCommand {
            cwd: cwd.to_owned(),
            args: args.iter().map(OsString::from).collect(),
            stdin,
            variables: self.identity.iter().chain(variables).cloned().collect(),
        };
        let bounds = Bounds {
            timeout: TIMEOUT,
            grace: GRACE,
            max_bytes: MAX_BYTES,
        };
        let captured = run_git(&self.program, &self.supervisors, command, bounds)
            .map_err(|error| failed(error.to_string()))?;
        match captured.end {
            Some(crate::event::ProcessEnd::Exited { code }) if code < 2 => {
                if captured.stdout_omitted.is_some() {
                    return Err(failed("its output is too long".to_owned()));
                }
                if code == 1 && !captured.stderr.is_empty() {
                    return Err(failed(last_line(&captured.stderr)));
                }
                Ok((code, captured.stdout))
            }
            Some(end) => {
                let line = last_line(&captured.stderr);
                Err(failed(if line.is_empty() { end.to_string() } else { line }))
            }
            None => Err(failed("timed out".to_owned())),
        }
    }

    /// Runs git, which must succeed, and returns its trimmed output.
    fn text(&self, cwd: &Path, args: &[&str]) -> Result<String, GitError> {
        match self.run(cwd, args, None)? {
            (0, out) => Ok(String::from_utf8_lossy(&out).trim_end().to_owned()),
            (code, _) => Err(GitError {
                command: args[0].to_owned(),
                why: format!("exit code {code}"),
            }),
        }
    }

    /// The commit of a name; `None` if there is none.
    pub(crate) fn commit_of(&self, name: &str) -> Option<String> {
        let commit = format!("{name}^{{commit}}");
        self.text(
            &self.root,
            &["rev-parse", "--verify", "--quiet", "--end-of-options", &commit],
        )
        .ok()
    }

    /// What the user sees of the own checkout: the branch, the commit and the changes.
    pub(crate) fn checkout_state(&self) -> Option<String> {
        let branch = self
            .text(&self.root, &["rev-parse", "--symbolic-full-name", "HEAD"])
            .unwrap_or_default();
        let status = self
            .text(
                &self.root,
                &["status", "--porcelain=v1", "--untracked-files=normal"],
            )
            .ok()?;
        Some(format!("{branch} {}\n{status}", self.commit_of("HEAD")?))
    }

    pub(crate) fn is_ancestor(&self, commit: &str, of: &str) -> bool {
        matches!(
            self.run(&self.root, &["merge-base", "--is-ancestor", commit, of], None),
            Ok((0, _))
        )
    }

    /// Moves a branch, if it is still at `old`. An empty `old` means that the branch must not exist.
    pub(crate) fn move_branch(&self, branch: &str, new: &str, old: &str) -> Result<(), GitError> {
        let name = format!("refs/heads/{branch}");
        let zero = "0".repeat(new.len());
        let old = if old.is_empty() { zero.as_str() } else { old };
        self.text(
            &self.root,
            &[
                "update-ref",
                "--create-reflog",
                "-m",
                "ralph plan",
                &name,
                new,
                old,
            ],
        )
        .map(drop)
    }

    pub(crate) fn delete_branch(&self, branch: &str, at: &str) -> Result<(), GitError> {
        self.text(
            &self.root,
            &["update-ref", "-d", &format!("refs/heads/{branch}"), at],
        )
        .map(drop)
    }

    /// The branches below a prefix, with their commits.
    pub(crate) fn branches(&self, prefix: &str) -> Vec<(String, String)> {
        let pattern = format!("refs/heads/{prefix}");
        let format = "--format=%(refname:lstrip=2) %(objectname)";
        let listing = self
            .text(&self.root, &["for-each-ref", format, &pattern])
            .unwrap_or_default();
        let pairs = listing.lines().filter_map(|line| line.split_once(' '));
        pairs
            .map(|(name, commit)| (name.to_owned(), commit.to_owned()))
            .collect()
    }

    /// Adds a worktree. `branch` is created at `commit` if it does not exist; without a branch, HEAD is detached.
    pub(crate) fn add_worktree(
        &self,
        path: &Path,
        branch: Option<&str>,
        commit: &str,
    ) -> Result<(), GitError> {
        let path = path.to_string_lossy();
        // A worktree whose directory was deleted still has an entry.
        self.text(&self.root, &["worktree", "prune"])?;
        let args: Vec<&str> = match branch {
            None => vec!["worktree", "add", "--quiet", "--force", "--detach", &path, commit],
            Some(branch) if self.commit_of(&format!("refs/heads/{branch}")).is_some() => {
                vec!["worktree", "add", "--quiet", "--force", &path, branch]
            }
            Some(branch) => vec![
                "worktree",
                "add",
                "--quiet",
                "--force",
                "--no-track",
                "-b",
                branch,
                &path,
                commit,
            ],
        };
        self.text(&self.root, &args).map(drop)
    }

    /// The commit that was checked out at this time, as far as the reflog goes back; `None` without a commit.
    pub(crate) fn head_at(&self, at: jiff::Timestamp) -> Option<String> {
        let then = format!("HEAD@{{{}}}", at.strftime("%Y-%m-%dT%H:%M:%SZ"));
        let names = [then.as_str(), "HEAD"];
        names.into_iter().find_map(|name| {
            let name = format!("{name}^{{commit}}");
            let commit = self
                .text(&self.root, &["rev-parse", "--verify", "--quiet", &name])
                .ok()?;
            (!commit.is_empty()).then_some(commit)
        })
    }

    pub(crate) fn remove_worktree(&self, path: &Path) {
        let path_text = path.to_string_lossy();
        let removed = self.text(
            &self.root,
            &["worktree", "remove", "--force", "--force", &path_text],
        );
        if removed.is_err() {
            // It is not a complete worktree.
            crate::ok_or_log!(std::fs::remove_dir_all(path), "cannot remove a worktree");
            let pruned = self.text(&self.root, &["worktree", "prune"]);
            crate::ok_or_log!(pruned, "cannot prune the worktrees");
        }
    }

    /// Ignored files of the user's checkout that match the patterns in a file.
    pub(crate) fn ignored_files(&self, patterns: &Path) -> Result<Vec<PathBuf>, GitError> {
        use std::os::unix::ffi::OsStrExt;

        let exclude = format!("--exclude-from={}", patterns.display());
        let (_, listed) = self.run(
            &self.root,
            &["ls-files", "-z", "--others", "--ignored", &exclude],
            None,
        )?;
        if listed.is_empty() {
            return Ok(Vec::new());
        }
        let (_, ignored) = self.run(&self.root, &["check-ignore", "-z", "--stdin"], Some(listed))?;
        let names = ignored.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.map(|name| PathBuf::from(OsStr::from_bytes(name))).collect())
    }

    pub(crate) fn has_changes(&self, worktree: &Path) -> Result<bool, GitError> {
        Ok(!self.text(worktree, &["status", "--porcelain=v1"])?.is_empty())
    }

    pub(crate) fn head_of(&self, worktree: &Path) -> Result<String, GitError> {
        self.text(worktree, &["rev-parse", "--verify", "HEAD^{commit}"])
    }

    /// Commits everything in a worktree that is not ignored.
    pub(crate) fn commit_all(&self, worktree: &Path, message: &str) -> Result<(), GitError> {
        self.text(worktree, &["add", "--all"])?;
        let message = message.as_bytes().to_vec();
        let args = [
            "commit",
            "--quiet",
            "--no-verify",
            "--cleanup=verbatim",
            "--file=-",
        ];
        match self.run(worktree, &args, Some(message))? {
            (0, _) => Ok(()),
            // Nothing differs from HEAD, for example because only permissions that git ignores have changed.
            (_, _) => Ok(()),
        }
    }

    /// Commits one file of a worktree.
    pub(crate) fn commit_file(&self, worktree: &Path, path: &str, message: &str) -> Result<(), GitError> {
        let message = message.as_bytes().to_vec();
        let args = [
            "commit",
            "--quiet",
            "--no-verify",
            "--cleanup=verbatim",
            "--file=-",
            "--",
            path,
        ];
        self.run(worktree, &args, Some(message)).map(drop)
    }

    /// Points a branch at one commit with its content and this parent.
    pub(crate) fn squash(&self, worktree: &Path, parent: &str, message: &str) -> Result<String, GitError> {
        let tree = self.text(worktree, &["rev-parse", "HEAD^{tree}"])?;
        let commit = self.commit_tree(&tree, &[parent.to_owned()], message)?;
        self.text(worktree, &["reset", "--quiet", "--soft", &commit])?;
        Ok(commit)
    }

    /// Merges two commits without a worktree.
    pub(crate) fn merge_trees(&self, ours: &str, theirs: &str) -> Result<MergedTree, GitError> {
        let args = [
            "merge-tree",
            "--write-tree",
            "-z",
            "--name-only",
            "--no-messages",
            ours,
            theirs,
        ];
        let (code, out) = self.run(&self.root, &args, None)?;
        let text = String::from_utf8_lossy(&out).into_owned();
        let mut parts = text.split('\0').filter(|part| !part.is_empty());
        let tree = parts.next().unwrap_or_default().trim().to_owned();
        Ok(match code {
            0 => MergedTree::Tree(tree),
            _ => {
                let mut files: Vec<String> = parts.map(str::to_owned).collect();
                files.dedup();
                MergedTree::Conflict { files }
            }
        })
    }

    pub(crate) fn commit_tree(
        &self,
        tree: &str,
        parents: &[String],
        message: &str,
    ) -> Result<String, GitError> {
        let mut args = vec!["commit-tree", tree];
        for parent in parents {
            args.extend(["-p", parent]);
        }
        let (_, out) = self.run(&self.root, &args, Some(message.as_bytes().to_vec()))?;
        Ok(String::from_utf8_lossy(&out).trim().to_owned())
    }

    /// The text of a file in a tree; `None` if it is not there.
    pub(crate) fn file_in(&self, tree: &str, path: &str) -> Option<String> {
        let name = format!("{tree}:{path}");
        let (code, out) = self.run(&self.root, &["cat-file", "blob", &name], None).ok()?;
        (code == 0).then(|| String::from_utf8(out).ok()).flatten()
    }

    /// The tree with another text in one of its files.
    pub(crate) fn replace_file(&self, tree: &str, path: &str, text: &str) -> Result<String, GitError> {
        let blob = self.run(
            &self.root,
            &["hash-object", "-w", "--stdin"],
            Some(text.as_bytes().to_vec()),
        )?;
        let blob = String::from_utf8_lossy(&blob.1).trim().to_owned();
        let entry = self.text(&self.root, &["ls-tree", tree, "--", path])?;
        let mode = entry.split(' ').next().unwrap_or("100644").to_owned();
        let index = tempfile::NamedTempFile::new().map_err(|error| GitError {
            command: "read-tree".to_owned(),
            why: error.to_string(),
        })?;
        let index_path = index.into_temp_path();
        let variables = [(
            OsString::from("GIT_INDEX_FILE"),
            index_path.as_os_str().to_owned(),
        )];
        // An empty file is not a valid index.
        crate::ok_or_log!(std::fs::remove_file(&index_path), "cannot remove the empty index");
        self.run_with(&self.root, &["read-tree", tree], None, &variables)?;
        let info = format!("{mode},{blob},{path}");
        self.run_with(
            &self.root,
            &["update-index", "--cacheinfo", &info],
            None,
            &variables,
        )?;
        let (_, out) = self.run_with(&self.root, &["write-tree"], None, &variables)?;
        Ok(String::from_utf8_lossy(&out).trim().to_owned())
    }

    /// Checks out a commit in a worktree of ralph's own and removes everything else that is not ignored.
    pub(crate) fn check_out(&self, worktree: &Path, commit: &str) -> Result<(), GitError> {
        self.text(worktree, &["reset", "--quiet", "--hard", commit])?;
        self.text(worktree, &["clean", "--quiet", "-d", "--force"])
            .map(drop)
    }

    /// The changes between two commits, as a patch.
    pub(crate) fn diff(&self, from: &str, to: &str) -> Result<String, GitError> {
        self.text(
            &self.root,
            &["diff", "--no-color", "--no-ext-diff", "--no-textconv", from, to],
        )
    }

    pub(crate) fn merge_base(&self, one: &str, other: &str) -> Option<String> {
        self.text(&self.root, &["merge-base", one, other]).ok()
    }

    /// Fast-forwards or merges the user's branch. Only for `--merge`.
    pub(crate) fn merge_into_checkout(&self, branch: &str) -> Result<(), GitError> {
        self.text(&self.root, &["merge", "--quiet", "--no-edit", branch])
            .map(drop)
    }
}

fn last_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let mut lines = text.lines().rev().map(str::trim);
    lines.find(|line| !line.is_empty()).unwrap_or_default().to_owned()
}
