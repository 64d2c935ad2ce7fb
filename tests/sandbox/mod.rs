//! A closed world for one test: a workspace, a HOME and a PATH of its own, with the fake agent under any name.

pub(crate) mod claude;
pub(crate) mod history;
mod keyboard;
mod project;

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::process::stage::{fake_agent, is_alive, wait_until};

/// Far more than anything here takes, even on a busy machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// What scripts and gates need besides the fake agent; nothing else is on the PATH.
const TOOLS: &[&str] = &[
    "sh", "git", "cat", "grep", "sleep", "true", "false", "test", "mkdir", "touch",
];

pub(crate) struct Sandbox {
    root: TempDir,
}

/// A finished `ralph`.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) status: ExitStatus,
}

impl Told {
    pub(crate) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// The exit code; -1 if a signal ended it.
    pub(crate) fn exit(&self) -> i32 {
        self.code().unwrap_or(-1)
    }

    /// All that was printed.
    pub(crate) fn text(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    /// What was printed, which must be one JSON document.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The exit code must be this one; if not, everything that was printed is shown.
    #[track_caller]
    pub(crate) fn exits_with(self, code: i32) -> Self {
        assert_eq!(
            self.code(),
            Some(code),
            "stdout:\n{}\nstderr:\n{}",
            self.stdout,
            self.stderr
        );
        self
    }
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        let root = TempDir::new().expect("a temporary directory");
        for directory in ["work", "home", "bin", "play", "tmp"] {
            fs::create_dir(root.path().join(directory)).expect("a directory of the sandbox");
        }
        let sandbox = Self { root };
        for tool in TOOLS {
            if let Ok(found) = which::which(tool) {
                symlink(found, sandbox.path("bin").join(tool)).expect("a tool on the PATH");
            }
        }
        sandbox
    }

    /// The fake agent, installed under this name.
    pub(crate) fn with_agent(self, program: &str) -> Self {
        symlink(fake_agent(), self.path("bin").join(program)).expect("the fake agent on the PATH");
        self
    }

    /// What the fake agent plays when it is called for the n-th time (`default`: any other time).
    pub(crate) fn playing(self, invocation: &str, script: &str) -> Self {
        self.script(invocation, script);
        self
    }

    /// As `playing`.
    pub(crate) fn script(&self, invocation: &str, script: &str) {
        fs::write(self.path("play").join(format!("{invocation}.script")), script).expect("a script");
    }

    /// A file in the workspace.
    pub(crate) fn with_file(self, name: &str, text: &str) -> Self {
        fs::write(self.work().join(name), text).expect("a file in the workspace");
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.path("work")
    }

    /// What the fake agent recorded, such as `1.argv`.
    pub(crate) fn recorded(&self, name: &str) -> String {
        let path = self.path("play").join(name);
        fs::read(&path)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.command_of(env!("CARGO_BIN_EXE_ralph"));
        command.args(arguments);
        command
    }

    /// Another program that is to start ralph here.
    pub(crate) fn command_of(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.work())
            .env_clear()
            .env("PATH", self.path("bin"))
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .env("FAKE_AGENT", self.path("play"))
            .env("TERM", "xterm")
            .env("TZ", "UTC")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs `ralph` to its end.
    pub(crate) fn ralph(&self, arguments: &[&str]) -> Told {
        self.start(arguments).finish()
    }

    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        Running::start(&mut self.command(arguments))
    }

    pub(crate) fn newest_run(&self) -> PathBuf {
        let journal = fs::canonicalize(self.work().join(".agent/events.jsonl")).expect("the newest journal");
        journal.parent().expect("a run's directory").to_owned()
    }

    /// The records of the newest run.
    pub(crate) fn journal(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.newest_run().join("events.jsonl")).expect("a journal");
        text.lines()
            .map(|line| serde_json::from_str(line).expect("a record"))
            .collect()
    }

    /// The records of one type.
    pub(crate) fn records(&self, kind: &str) -> Vec<Value> {
        self.journal()
            .into_iter()
            .filter(|record| record["type"] == kind)
            .collect()
    }

    /// A file of one iteration of the newest run.
    pub(crate) fn iteration_file(&self, iteration: &str, name: &str) -> Vec<u8> {
        let path = self.newest_run().join("iterations").join(iteration).join(name);
        fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// The fake agents and all that they left behind.
    pub(crate) fn pids(&self) -> Vec<i32> {
        self.recorded("pids")
            .lines()
            .filter_map(|line| line.parse().ok())
            .collect()
    }

    pub(crate) fn wait_for_processes(&self, count: usize) {
        wait_until("the processes of the play", DEADLINE, || {
            self.pids().len() >= count
        });
    }

    pub(crate) fn wait_for_file(&self, path: &Path) {
        wait_until("a file", DEADLINE, || path.exists());
    }

    pub(crate) fn wait_until_all_are_gone(&self, limit: Duration) {
        wait_until("the end of every process", limit, || {
            !self.pids().into_iter().any(is_alive)
        });
    }

    pub(crate) fn all_are_gone_within(&self, limit: Duration) -> bool {
        let deadline = std::time::Instant::now() + limit;
        while self.pids().into_iter().any(is_alive) {
            if std::time::Instant::now() > deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        true
    }

    /// Text with this sandbox's own places taken out of it.
    pub(crate) fn without_places(&self, text: &str) -> String {
        let root = self.root.path();
        let real = fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
        [real.as_path(), root].iter().fold(text.to_owned(), |text, root| {
            text.replace(&*root.join("work").to_string_lossy(), "[WORKSPACE]")
                .replace(&*root.to_string_lossy(), "[SANDBOX]")
        })
    }
}

/// A failed test leaves nothing behind either.
impl Drop for Sandbox {
    fn drop(&mut self) {
        for pid in self.pids().into_iter().filter(|pid| is_alive(*pid)) {
            signal(pid, Signal::KILL);
        }
    }
}

/// A `ralph` at work.
pub(crate) struct Running {
    child: Option<Child>,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self {
            child: Some(command.spawn().expect("ralph starts")),
        }
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.as_ref().expect("a running ralph").id()).expect("a pid")
    }

    pub(crate) fn signal(&self, number: Signal) {
        signal(self.pid(), number);
    }

    /// Kills it and waits for its end; how that came, since it may have been quicker.
    pub(crate) fn kill(mut self) -> ExitStatus {
        let mut child = self.child.take().expect("a running ralph");
        child.kill().expect("a kill");
        child.wait().expect("its end")
    }

    /// The largest amount of memory it has held so far.
    pub(crate) fn peak_memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok())
            .unwrap_or(0)
            * 1024
    }

    /// Whether it ends by itself in this time.
    pub(crate) fn has_ended_within(&mut self, limit: Duration) -> bool {
        let deadline = std::time::Instant::now() + limit;
        let child = self.child.as_mut().expect("a running ralph");
        while std::time::Instant::now() < deadline {
            if child.try_wait().expect("a child of ours").is_some() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        false
    }

    pub(crate) fn finish(mut self) -> Told {
        let child = self.child.take().expect("a running ralph");
        let pid = i32::try_from(child.id()).expect("a pid");
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || sender.send(child.wait_with_output()));
        match receiver.recv_timeout(DEADLINE) {
            Ok(output) => told(output.expect("ralph's output")),
            Err(_) => {
                signal(pid, Signal::KILL);
                panic!("ralph did not end within {DEADLINE:?}");
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn told(output: Output) -> Told {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Told {
        stdout: text(output.stdout),
        stderr: text(output.stderr),
        status: output.status,
    }
}

fn signal(pid: i32, number: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        // It may have gone by itself.
        let _ = kill_process(pid, number);
    }
}

/// Whether a process ended by this signal.
pub(crate) fn died_of(status: ExitStatus, number: Signal) -> bool {
    status.signal() == Some(number.as_raw())
}

/// The arguments that the fake agent was given.
pub(crate) fn words(recorded: &str) -> Vec<&str> {
    recorded.split_terminator('\0').collect()
}

/// Whether this process, and so every one that it starts, ignores a signal.
pub(crate) fn is_ignored(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal.as_raw() - 1) & 1 == 1)
}
