//! Determines with git who controls a file. Runs no command that the repository configures.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::event::ProcessEnd;
use crate::files::{self, ReadRule};
use crate::process::{self, Supervisors};

/// Who controls a file, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FileOwner {
    /// Only the user.
    User(&'static str),
    /// Other people have written it, or can change it.
    Others(String),
}

/// Runs git so that it executes nothing that a repository configures.
#[derive(Debug, Clone)]
pub struct Git {
    /// `None` if git is not installed.
    pub program: Option<PathBuf>,
    pub supervisors: Supervisors,
}

impl Git {
    /// Checks both the file and its link target. If the owner cannot be determined, returns `Others`.
    pub(super) fn owner(&self, path: &Path) -> FileOwner {
        let owner = self.owner_of(path);
        match (path.canonicalize(), &owner) {
            (Ok(real), FileOwner::User(_)) if real != path => self.owner_of(&real),
            _ => owner,
        }
    }

    /// Returns the branch and the number of changed or new files; `None` outside of any repository.
    pub fn changes(&self, directory: &Path) -> Option<Result<(String, usize), String>> {
        directory
            .ancestors()
            .find(|directory| directory.join(".git").symlink_metadata().is_ok())?;
        let Some(git) = &self.program else {
            return Some(Err("git not found".to_owned()));
        };
        let run = |arguments: &[&str]| {
            let arguments: Vec<&std::ffi::OsStr> = arguments.iter().map(std::ffi::OsStr::new).collect();
            self.run(git, directory, &arguments)
        };
        let branch = run(&["branch", "--show-current"]).map(|output| match output.stdout.as_str() {
            "" => "no branch".to_owned(),
            branch => branch.to_owned(),
        });
        let changed = |branch| {
            let status = run(&["status", "--porcelain"])?;
            Ok((branch, status.stdout.lines().count()))
        };
        Some(branch.and_then(changed))
    }

    fn owner_of(&self, path: &Path) -> FileOwner {
        let me = rustix::process::geteuid().as_raw();
        let sudo_user = std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok());
        if path
            .symlink_metadata()
            .is_ok_and(|file| belongs_to_another_user(file.uid(), me, sudo_user))
        {
            return FileOwner::Others("owned by another user of this machine".to_owned());
        }
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
            return FileOwner::User("not a file");
        };
        let has_git = |directory: &&Path| directory.join(".git").symlink_metadata().is_ok();
        let Some(root) = directory.ancestors().find(has_git) else {
            return FileOwner::User("outside of any git repository");
        };
        let Some(git) = &self.program else {
            return FileOwner::Others("git is not installed, so the owner is unknown".to_owned());
        };
        let name = Path::new(name).as_os_str();
        // The configuration of the repository could name another directory, in which the file is not tracked.
        let mut work_tree = std::ffi::OsString::from("--work-tree=");
        work_tree.push(root);
        match self.run(
            git,
            directory,
            &[
                &work_tree,
                "ls-files".as_ref(),
                "--error-unmatch".as_ref(),
                "--".as_ref(),
                name,
            ],
        ) {
            Ok(GitOutput { code: 1, .. }) => return FileOwner::User("not tracked by git"),
            Ok(GitOutput { code: 0, .. }) => {}
            Ok(GitOutput { stdout: error, .. }) | Err(error) => {
                return FileOwner::Others(format!("git cannot determine the owner: {error}"));
            }
        }
        match self.run(git, directory, &["remote".as_ref()]) {
            Ok(GitOutput { code: 0, stdout }) if stdout.is_empty() => {
                self.owner_without_remote(git, directory)
            }
            Ok(GitOutput { code: 0, .. }) => {
                FileOwner::Others("tracked, in a repository with a remote".to_owned())
            }
            Ok(GitOutput { stdout: error, .. }) | Err(error) => {
                FileOwner::Others(format!("git cannot determine the owner: {error}"))
            }
        }
    }

    /// A repository without a remote was created by the user, or it was unpacked from an archive.
    fn owner_without_remote(&self, git: &Path, directory: &Path) -> FileOwner {
        let common = ["rev-parse".as_ref(), "--git-common-dir".as_ref()];
        match self.run(git, directory, &common) {
            Ok(GitOutput { code: 0, stdout }) if was_created_here(&directory.join(&stdout)) => {
                FileOwner::User("tracked, in a repository that was created on this machine")
            }
            Ok(_) | Err(_) => FileOwner::Others(
                "tracked, in a repository without a remote that was not created on this machine".to_owned(),
            ),
        }
    }

    fn run(&self, git: &Path, directory: &Path, arguments: &[&std::ffi::OsStr]) -> Result<GitOutput, String> {
        let bounds = process::Bounds {
            timeout: Duration::from_secs(10),
            grace: Duration::from_millis(200),
            max_bytes: 1 << 20,
        };
        let captured = process::read_git(git, &self.supervisors, directory, arguments, bounds)
            .map_err(|error| error.to_string())?;
        let to_text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        match captured.end {
            Some(ProcessEnd::Exited { code }) if code <= 1 => Ok(GitOutput {
                code,
                stdout: to_text(&captured.stdout),
            }),
            Some(_) => Err(to_text(&captured.stderr)),
            None => Err("git timed out".to_owned()),
        }
    }
}

/// Whether the first commit of a repository was made after its directory was created on this disk. The directory of an unpacked archive is
/// newer than its commits. The file system sets the time of creation; no program can change it.
fn was_created_here(repository: &Path) -> bool {
    let rule = ReadRule::following(64 << 20);
    let Ok(log) = files::read_text(&repository.join("logs/HEAD"), rule) else {
        return false;
    };
    let created = repository.metadata().and_then(|directory| directory.created());
    let created = created
        .ok()
        .and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok();
    let (Some(created), Some(now), Some(first)) = (created, now, log.lines().next().and_then(time_of_entry))
    else {
        return false;
    };
    (created.as_secs()..=now.as_secs()).contains(&first)
}

/// The time of an entry of the log of HEAD: `OLD NEW NAME <ADDRESS> SECONDS ZONE\tMESSAGE`.
fn time_of_entry(line: &str) -> Option<u64> {
    let header = line.split('\t').next()?;
    let (_, time) = header.rsplit_once("> ")?;
    time.split(' ').next()?.parse().ok()
}

/// Files are also searched for in parent directories, which other users may be able to write. Root's files count as
/// the user's own. Root itself trusts only its own files and those of the user who called `sudo`, as git does.
fn belongs_to_another_user(owner: u32, me: u32, sudo_user: Option<u32>) -> bool {
    owner != me && owner != 0 && !(me == 0 && sudo_user == Some(owner))
}

struct GitOutput {
    code: i32,
    stdout: String,
}

#[cfg(test)]
mod tests {
    use super::{belongs_to_another_user, time_of_entry};

    #[test]
    fn the_time_of_a_commit_is_read_from_the_log() {
        let line = "0000 7123 A > B <a> b@c.d> 1790000000 +0100\tcommit (initial): x > 5";
        assert_eq!(time_of_entry(line), Some(1_790_000_000));
        assert_eq!(time_of_entry("garbage"), None);
    }

    #[test]
    fn files_of_the_user_root_and_sudo_caller_are_trusted() {
        assert!(belongs_to_another_user(1001, 1000, None) && belongs_to_another_user(1001, 1000, Some(1001)));
        assert!(!belongs_to_another_user(1000, 1000, None) && !belongs_to_another_user(0, 1000, None));
        assert!(belongs_to_another_user(1000, 0, None) && belongs_to_another_user(1000, 0, Some(1001)));
        assert!(!belongs_to_another_user(1000, 0, Some(1000)) && !belongs_to_another_user(0, 0, None));
    }
}
