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

/// A repository's configuration can name programs for these; here it cannot.
const HARMLESS: &[&str] = &[
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.untrackedCache=false",
    "core.sshCommand=false",
    "core.pager=cat",
    "credential.helper=",
    "protocol.allow=never",
];
/// What would make git look elsewhere than at the directory that it is asked about.
const REDIRECTING: &[&str] = &[
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_CEILING_DIRECTORIES",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_COUNT",
];

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
        if path
            .symlink_metadata()
            .is_ok_and(|file| is_strangers(file.uid(), me))
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
        let options = HARMLESS.iter().flat_map(|option| ["-c".into(), (*option).into()]);
        let spec = process::ProcessSpec {
            program: git.to_owned(),
            args: options.chain(question.iter().map(Into::into)).collect(),
            environment: process::Environment {
                remove: REDIRECTING.iter().map(Into::into).collect(),
                set: [
                    ("GIT_OPTIONAL_LOCKS", "0"),
                    ("GIT_TERMINAL_PROMPT", "0"),
                    ("GIT_NO_LAZY_FETCH", "1"),
                    ("LC_ALL", "C"),
                ]
                .map(|(name, value)| (name.into(), value.into()))
                .to_vec(),
            },
            cwd: directory.to_owned(),
            stdin: process::Stdin::Null,
            stdout: process::Transport::Pipe,
        };
        let bounds = process::Bounds {
            timeout: Duration::from_secs(10),
            grace: Duration::from_millis(200),
            max_bytes: 1 << 20,
        };
        let captured =
            process::capture(&self.supervisors, &spec, bounds).map_err(|error| error.to_string())?;
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

/// Files are looked for in the directories above, too, and those may be open to everybody. What root owns is as good
/// as one's own; root itself works in places that others own.
fn is_strangers(owner: u32, me: u32) -> bool {
    me != 0 && owner != me && owner != 0
}

struct Answer {
    code: i32,
    said: String,
}

#[cfg(test)]
mod tests {
    use super::is_strangers;

    #[test]
    fn a_file_of_another_user_is_not_ones_own() {
        assert!(is_strangers(1001, 1000));
        assert!(!is_strangers(1000, 1000) && !is_strangers(0, 1000) && !is_strangers(1000, 0));
    }
}
