//! A project in the sandbox: the fake agent as the configured agent, and a git repository with a history.

use std::fs;
use std::process::Command;

use super::Sandbox;
use crate::process::helpers::fake_agent;

/// Everything in a repository that ralph must not change.
#[derive(PartialEq, Eq)]
pub(crate) struct GitState {
    index: Vec<u8>,
    answers: Vec<Vec<u8>>,
}

impl Sandbox {
    /// Returns a sandbox whose agent is the fake agent, with its prompt on stdin and RTF1 as its transcript format. Every
    /// invocation runs `script`; `config` is appended to `ralph.yml`.
    pub(crate) fn scripted(script: &str, config: &str) -> Self {
        let sandbox = Self::new().with_script("default", script);
        sandbox.configure(config);
        sandbox
    }

    /// Replaces the `ralph.yml` that `scripted` wrote.
    pub(crate) fn configure(&self, config: &str) {
        let text = format!(
            "cli:\n  backend: custom\n  command: {}\n  prompt_mode: stdin\n  transcript: rtf1\n{config}",
            fake_agent().display()
        );
        fs::write(self.work().join("ralph.yml"), text).expect("a configuration");
    }

    /// Returns the stdin of the agent's nth invocation.
    pub(crate) fn prompt(&self, invocation: usize) -> String {
        let path = self.path("agent").join(format!("{invocation}.stdin"));
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    pub(crate) fn was_called(&self, invocation: usize) -> bool {
        self.path("agent").join(format!("{invocation}.claimed")).exists()
    }

    /// Returns an environment variable of the agent's nth invocation.
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

    /// Makes the workspace a repository with a commit, a remote, a branch, a stash, a staged change and an untracked file.
    /// `ralph.yml` is not committed.
    pub(crate) fn init_git_repository(&self) {
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
        // The file is newer than its entry in the index, so a `git status` that refreshes the index would change it.
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
        let file = fs::File::options()
            .write(true)
            .open(self.work().join("a.txt"))
            .expect("a file");
        file.set_modified(later).expect("another time");
    }

    /// Reads HEAD, the index, stashes, references, remotes and the repository's settings.
    pub(crate) fn git_state(&self) -> GitState {
        let index = fs::read(self.work().join(".git/index")).expect("an index");
        let queries: [&[&str]; 6] = [
            &["rev-parse", "HEAD"],
            &["symbolic-ref", "HEAD"],
            &["stash", "list", "--format=%H %gs"],
            &["for-each-ref"],
            &["remote", "-v"],
            &["config", "--local", "--list"],
        ];
        let answers = queries.map(|arguments| self.git(&[&["--no-optional-locks"], arguments].concat()));
        GitState {
            index,
            answers: answers.into(),
        }
    }
}
