//! A project in the sandbox: the fake agent as the configured one, and a git repository with a past.

use std::fs;
use std::process::Command;

use super::Sandbox;
use crate::process::stage::fake_agent;

/// All that git remembers, and its index byte for byte.
#[derive(PartialEq, Eq)]
pub(crate) struct GitState {
    index: Vec<u8>,
    answers: Vec<Vec<u8>>,
}

impl Sandbox {
    /// A world in which the fake agent is configured by its path, reads its prompt on stdin and speaks RTF1. Every
    /// invocation plays `script`; `config` is added to the `ralph.yml`.
    pub(crate) fn scripted(script: &str, config: &str) -> Self {
        let sandbox = Self::new().playing("default", script);
        sandbox.configure(config);
        sandbox
    }

    /// Writes the `ralph.yml` of `scripted` anew.
    pub(crate) fn configure(&self, config: &str) {
        let text = format!(
            "cli:\n  backend: custom\n  command: {}\n  prompt_mode: stdin\n  transcript: rtf1\n{config}",
            fake_agent().display()
        );
        fs::write(self.work().join("ralph.yml"), text).expect("a configuration");
    }

    /// What the agent was given on stdin in its nth invocation.
    pub(crate) fn prompt(&self, invocation: usize) -> String {
        let path = self.path("play").join(format!("{invocation}.stdin"));
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    pub(crate) fn was_called(&self, invocation: usize) -> bool {
        self.path("play").join(format!("{invocation}.claimed")).exists()
    }

    /// A variable in the environment of the agent's nth invocation.
    pub(crate) fn agent_variable(&self, invocation: usize, name: &str) -> Option<String> {
        let environment = self.recorded(&format!("{invocation}.env"));
        let pairs = environment.split('\0');
        let mut values = pairs.filter_map(|pair| pair.strip_prefix(&format!("{name}=")));
        values.next().map(str::to_owned)
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> Vec<u8> {
        let identity = ["user.name=t", "user.email=t@localhost", "commit.gpgSign=false"];
        let output = Command::new("git")
            .args(identity.iter().flat_map(|setting| ["-c", setting]))
            .args(arguments)
            .current_dir(self.work())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .output()
            .expect("git runs");
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
        output.stdout
    }

    /// Makes the workspace a repository with a commit, a remote, a branch, a stash, something staged and something
    /// untracked; the `ralph.yml` is the user's own, and not part of it.
    pub(crate) fn live_in(&self) {
        let write = |name: &str, text: &str| fs::write(self.work().join(name), text).expect("a file");
        self.git(&["init", "--quiet", "--initial-branch=main"]);
        write("a.txt", "a\n");
        write("b.txt", "b\n");
        write(".gitignore", "ignored\n");
        self.git(&["add", "a.txt", "b.txt", ".gitignore"]);
        self.git(&["commit", "--quiet", "-m", "first"]);
        self.git(&["remote", "add", "origin", "https://example.invalid/x.git"]);
        self.git(&["branch", "other"]);
        write("a.txt", "stashed\n");
        self.git(&["stash", "--quiet"]);
        write("b.txt", "staged\n");
        self.git(&["add", "b.txt"]);
        write("b.txt", "staged, then changed\n");
        write("untracked.txt", "u\n");
        // The index now knows older times than the files have: a status that refreshed it would write it.
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
        let file = fs::File::options()
            .write(true)
            .open(self.work().join("a.txt"))
            .expect("a file");
        file.set_modified(later).expect("another time");
    }

    /// HEAD, index, stashes, branches and every other reference, remotes, and the repository's own settings.
    pub(crate) fn git_state(&self) -> GitState {
        let index = fs::read(self.work().join(".git/index")).expect("an index");
        let asked: [&[&str]; 6] = [
            &["rev-parse", "HEAD"],
            &["symbolic-ref", "HEAD"],
            &["stash", "list", "--format=%H %gs"],
            &["for-each-ref"],
            &["remote", "-v"],
            &["config", "--local", "--list"],
        ];
        let answers = asked.map(|arguments| self.git(&[&["--no-optional-locks"], arguments].concat()));
        GitState {
            index,
            answers: answers.into(),
        }
    }
}
