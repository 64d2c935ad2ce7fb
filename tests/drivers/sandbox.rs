//! Runs the real `ralph` with a temporary project, home directory and PATH.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use tempfile::TempDir;

use crate::process::helpers::{DEADLINE, fake_agent};

pub(crate) struct Sandbox {
    root: TempDir,
    environment: Vec<(String, String)>,
}

#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        let root = TempDir::new().expect("a temporary directory");
        for directory in ["project", "home", "bin", "agent"] {
            fs::create_dir(root.path().join(directory)).expect("a directory");
        }
        Self {
            root,
            environment: Vec::new(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.path("project")
    }

    /// Installs the fake agent under this name, with this script for every call.
    pub(crate) fn agent(self, name: &str, script: &str) -> Self {
        symlink(fake_agent(), self.path("bin").join(name)).expect("a link");
        self.set_agent_script(script)
    }

    pub(crate) fn set_agent_script(self, script: &str) -> Self {
        fs::write(self.path("agent/default.script"), script).expect("a script");
        self
    }

    pub(crate) fn file(self, path: &str, text: impl AsRef<[u8]>) -> Self {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(path, text).expect("a file");
        self
    }

    pub(crate) fn program(self, path: &str, text: &str) -> Self {
        let sandbox = self.file(path, text);
        fs::set_permissions(sandbox.path(path), fs::Permissions::from_mode(0o755)).expect("permissions");
        sandbox
    }

    pub(crate) fn set(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The arguments of call `number` of the fake agent.
    pub(crate) fn argv(&self, number: u32) -> Vec<String> {
        let path = self.path(&format!("agent/{number}.argv"));
        let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let words = bytes.split(|byte| *byte == 0);
        let mut words: Vec<String> = words
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect();
        words.pop();
        words
    }

    pub(crate) fn was_called(&self) -> bool {
        self.path("agent/1.argv").exists()
    }

    pub(crate) fn git(&self, args: &[&str]) {
        let status = Command::new("git")
            .args([
                "-c",
                "user.name=a",
                "-c",
                "user.email=a@b",
                "-c",
                "init.defaultBranch=main",
            ])
            .args(args)
            .current_dir(self.project())
            .env("HOME", self.path("home"))
            .stdin(Stdio::null())
            .output()
            .expect("git");
        assert!(status.status.success(), "git {args:?}: {status:?}");
    }

    /// Commits the project and adds a remote, as in a cloned repository.
    pub(crate) fn with_remote(self) -> Self {
        self.git(&["init", "-q"]);
        self.git(&["add", "-A"]);
        self.git(&["commit", "-qm", "all"]);
        self.git(&["remote", "add", "origin", "https://example.invalid/x.git"]);
        self
    }

    pub(crate) fn ralph(&self, args: &[&str]) -> Finished {
        self.ralph_with_stdin("", args)
    }

    pub(crate) fn ralph_with_stdin(&self, stdin: &str, args: &[&str]) -> Finished {
        let input = self.path("stdin");
        fs::write(&input, stdin).expect("an input");
        let (stdout, stderr) = (self.path("stdout"), self.path("stderr"));
        let create = |path: &Path| fs::File::create(path).expect("an output");
        let mut child = self
            .command(args)
            .stdin(fs::File::open(&input).expect("an input"))
            .stdout(create(&stdout))
            .stderr(create(&stderr))
            .spawn()
            .expect("ralph");
        let code = wait(&mut child, args);
        let read = |path: &Path| String::from_utf8_lossy(&fs::read(path).expect("an output")).into_owned();
        Finished {
            code,
            stdout: read(&stdout),
            stderr: read(&stderr),
        }
    }

    /// Runs `ralph` with a terminal for stdin and stderr and types `typed`. Returns the exit code and the output.
    pub(crate) fn ralph_on_terminal(&self, typed: &str, args: &[&str]) -> (i32, String) {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&master)
            .and_then(|()| unlockpt(&master))
            .expect("a terminal");
        let name = ptsname(&master, Vec::new()).expect("its name");
        let slave = || {
            let path = Path::new(name.to_str().expect("a name"));
            let mut options = fs::File::options();
            options.read(true).write(true).open(path).expect("the other end")
        };
        // Keeps the terminal readable after the child exits.
        let held = slave();
        let mut child = self
            .command(args)
            .stdin(slave())
            .stdout(Stdio::null())
            .stderr(slave())
            .spawn()
            .expect("ralph");
        let mut screen = fs::File::from(master);
        let mut keyboard = screen.try_clone().expect("a keyboard");
        keyboard.write_all(typed.as_bytes()).expect("a keyboard");
        // Reading fails at the end of the output.
        let reader = thread::spawn(move || {
            let mut seen = Vec::new();
            let mut chunk = [0; 4096];
            while let Ok(length @ 1..) = screen.read(&mut chunk) {
                seen.extend_from_slice(&chunk[..length]);
            }
            seen
        });
        let code = wait(&mut child, args);
        drop(held);
        let seen = reader.join().expect("a reader thread");
        (code, String::from_utf8_lossy(&seen).into_owned())
    }

    fn command(&self, args: &[&str]) -> Command {
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", self.path("bin").display());
        let mut command = Command::new(env!("CARGO_BIN_EXE_ralph"));
        command
            .args(args)
            .current_dir(self.project())
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.path("home"))
            .env("RALPH_STATE_DIR", self.path("state"))
            .env("FAKE_AGENT", self.path("agent"))
            .envs(self.environment.iter().cloned());
        command
    }

    /// Replaces the temporary directory with a fixed name.
    pub(crate) fn redact(&self, text: &str) -> String {
        text.replace(&self.root.path().display().to_string(), "/box")
    }
}

fn wait(child: &mut Child, args: &[&str]) -> i32 {
    let deadline = Instant::now() + DEADLINE;
    loop {
        if let Some(status) = child.try_wait().expect("ralph") {
            return status.code().unwrap_or(-1);
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            panic!("ralph {args:?} did not end");
        }
        thread::sleep(Duration::from_millis(5));
    }
}
