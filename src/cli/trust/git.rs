//! Whose is a file? Asks git, and only asks: nothing that the repository configures may run on the way.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::event::ProcessEnd;
use crate::process::{self, Supervisors};

/// Whose a file is, and how that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Owner {
    /// The user's own; the reason in words.
    User(&'static str),
    /// It came, or can come, from somebody else.
    Others(String),
}

pub(in crate::cli) struct Git {
    pub(super) program: Option<PathBuf>,
    pub(super) supervisors: Supervisors,
}

impl Git {
    /// Both the file and what it links to are looked at, and who owns them. What cannot be known is not the user's own.
    pub(super) fn owner(&self, path: &Path) -> Owner {
        let owner = self.owner_of(path);
        match (path.canonicalize(), &owner) {
            (Ok(real), Owner::User(_)) if real != path => self.owner_of(&real),
            _ => owner,
        }
    }

    /// The branch, and how many files are changed or new; `None` outside of any repository.
    pub(in crate::cli) fn changes(&self, directory: &Path) -> Option<Result<(String, usize), String>> {
        directory
            .ancestors()
            .find(|directory| directory.join(".git").symlink_metadata().is_ok())?;
        let Some(git) = &self.program else {
            return Some(Err("git is not found".to_owned()));
        };
        let ask = |question: &[&str]| {
            let question: Vec<&std::ffi::OsStr> = question.iter().map(std::ffi::OsStr::new).collect();
            self.ask(git, directory, &question)
        };
        let branch = ask(&["branch", "--show-current"]).map(|answer| match answer.said.as_str() {
            "" => "no branch".to_owned(),
            branch => branch.to_owned(),
        });
        let changed = |branch| {
            let status = ask(&["status", "--porcelain"])?;
            Ok((branch, status.said.lines().count()))
        };
        Some(branch.and_then(changed))
    }

    /// Whether git leaves this directory out.
    pub(in crate::cli) fn ignores(&self, directory: &Path, name: &str) -> bool {
        // What lies in it decides: ralph's own .gitignore leaves out all that is beside it.
        let inside = format!("{name}/runs");
        let question = ["check-ignore", "-q", "--", inside.as_str()].map(std::ffi::OsStr::new);
        let answer = self
            .program
            .as_ref()
            .map(|git| self.ask(git, directory, &question));
        !matches!(answer, Some(Ok(Answer { code: 1, .. })))
    }

    fn owner_of(&self, path: &Path) -> Owner {
        let me = rustix::process::geteuid().as_raw();
        let sudo_user = std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok());
        if path
            .symlink_metadata()
            .is_ok_and(|file| is_strangers(file.uid(), me, sudo_user))
        {
            return Owner::Others("it belongs to another user of this machine".to_owned());
        }
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
            return Owner::User("not a file");
        };
        if !directory
            .ancestors()
            .any(|directory| directory.join(".git").symlink_metadata().is_ok())
        {
            return Owner::User("outside of any git repository");
        }
        let Some(git) = &self.program else {
            return Owner::Others("git is not there to tell whose it is".to_owned());
        };
        let name = Path::new(name).as_os_str();
        match self.ask(
            git,
            directory,
            &[
                "ls-files".as_ref(),
                "--error-unmatch".as_ref(),
                "--".as_ref(),
                name,
            ],
        ) {
            Ok(Answer { code: 1, .. }) => return Owner::User("not tracked by git"),
            Ok(Answer { code: 0, .. }) => {}
            Ok(Answer { said, .. }) | Err(said) => {
                return Owner::Others(format!("git cannot tell whose it is: {said}"));
            }
        }
        match self.ask(git, directory, &["remote".as_ref()]) {
            Ok(Answer { code: 0, said }) if said.is_empty() => {
                Owner::User("tracked, in a repository without a remote")
            }
            Ok(Answer { code: 0, .. }) => Owner::Others("tracked, in a repository with a remote".to_owned()),
            Ok(Answer { said, .. }) | Err(said) => {
                Owner::Others(format!("git cannot tell whose it is: {said}"))
            }
        }
    }

    fn ask(&self, git: &Path, directory: &Path, question: &[&std::ffi::OsStr]) -> Result<Answer, String> {
        let bounds = process::Bounds {
            timeout: Duration::from_secs(10),
            grace: Duration::from_millis(200),
            max_bytes: 1 << 20,
        };
        let captured = process::read_git(git, &self.supervisors, directory, question, bounds)
            .map_err(|error| error.to_string())?;
        let printed = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        match captured.end {
            Some(ProcessEnd::Exited { code }) if code <= 1 => Ok(Answer {
                code,
                said: printed(&captured.stdout),
            }),
            Some(_) => Err(printed(&captured.stderr)),
            None => Err("it did not answer".to_owned()),
        }
    }
}

/// Files are searched for in parent directories too, which other users may be able to write. Root's own files count as
/// the user's. Root itself trusts only its own files and those of the user who called `sudo`, as git does.
fn is_strangers(owner: u32, me: u32, sudo_user: Option<u32>) -> bool {
    owner != me && owner != 0 && !(me == 0 && sudo_user == Some(owner))
}

struct Answer {
    code: i32,
    said: String,
}

#[cfg(test)]
mod tests {
    use super::is_strangers;

    #[test]
    fn only_files_of_the_user_of_root_and_of_the_sudo_caller_are_the_users_own() {
        assert!(is_strangers(1001, 1000, None) && is_strangers(1001, 1000, Some(1001)));
        assert!(!is_strangers(1000, 1000, None) && !is_strangers(0, 1000, None));
        assert!(is_strangers(1000, 0, None) && is_strangers(1000, 0, Some(1001)));
        assert!(!is_strangers(1000, 0, Some(1000)) && !is_strangers(0, 0, None));
    }
}
