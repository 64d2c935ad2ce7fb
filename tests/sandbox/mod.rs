//! `Sandbox`: a workspace, a HOME and a PATH for one test, with the fake agent under any name.

pub(crate) mod claude;
pub(crate) mod history;
mod keyboard;
mod project;
pub(crate) mod signals;
pub(crate) mod skip;

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use ralph::store::{Project, StateDirectory};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::process::helpers::{fake_agent, is_alive, wait_until};

/// Longer than any step of a test takes, even on a busy machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// The programs on the PATH besides the fake agent; scripts and gates need them.
const TOOLS: &[&str] = &[
    "sh", "git", "cat", "grep", "sleep", "true", "false", "test", "mkdir", "touch",
];

pub(crate) struct Sandbox {
    root: TempDir,
}

/// Output and exit status of a finished `ralph`.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) status: ExitStatus,
}

impl CommandOutput {
    pub(crate) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Returns the exit code, or -1 if a signal ended ralph.
    pub(crate) fn exit(&self) -> i32 {
        self.code().unwrap_or(-1)
    }

    /// Returns stdout and stderr, one after the other.
    pub(crate) fn text(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    /// Parses stdout as one JSON document.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Asserts the exit code and shows the output if it is another one.
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
        Self::in_directory(TempDir::new().expect("a temporary directory"))
    }

    /// A sandbox outside of the temporary directory, which ralph's own sandbox replaces.
    pub(crate) fn new_in(directory: &Path) -> Self {
        Self::in_directory(TempDir::new_in(directory).expect("a temporary directory"))
    }

    fn in_directory(root: TempDir) -> Self {
        for directory in ["work", "home", "bin", "agent", "tmp"] {
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

    /// Installs the fake agent under this name.
    pub(crate) fn with_agent(self, program: &str) -> Self {
        symlink(fake_agent(), self.path("bin").join(program)).expect("the fake agent on the PATH");
        self
    }

    /// Sets the script of the fake agent's n-th invocation; `default` is the script of all others.
    pub(crate) fn with_script(self, invocation: &str, script: &str) -> Self {
        self.script(invocation, script);
        self
    }

    /// Like `with_script`, for a sandbox that is already in use.
    pub(crate) fn script(&self, invocation: &str, script: &str) {
        fs::write(self.path("agent").join(format!("{invocation}.script")), script).expect("a script");
    }

    /// Writes a file in the workspace.
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

    /// Returns a file that the fake agent recorded, such as `1.argv`.
    pub(crate) fn recorded(&self, name: &str) -> String {
        let path = self.path("agent").join(name);
        fs::read(&path)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.command_for(env!("CARGO_BIN_EXE_ralph"));
        command.args(arguments);
        command
    }

    /// Returns a command for another program in the environment of the sandbox.
    pub(crate) fn command_for(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.work())
            .env_clear()
            .env("PATH", self.path("bin"))
            .env("HOME", self.path("home"))
            .env("RALPH_STATE_DIR", self.path("state"))
            .env("TMPDIR", self.path("tmp"))
            .env("FAKE_AGENT", self.path("agent"))
            .env("TERM", "xterm")
            .env("TZ", "UTC")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        signals::with_default_signals(&mut command);
        command
    }

    /// Runs `ralph` until it exits.
    pub(crate) fn ralph(&self, arguments: &[&str]) -> CommandOutput {
        self.start(arguments).finish()
    }

    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        Running::start(&mut self.command(arguments))
    }

    /// Returns the project of the workspace.
    pub(crate) fn project(&self) -> Project {
        StateDirectory::at(self.path("state")).project(&self.work())
    }

    /// Returns the directory that contains the runs of the workspace.
    pub(crate) fn runs(&self) -> PathBuf {
        self.project().runs()
    }

    pub(crate) fn newest_run(&self) -> PathBuf {
        self.project().find_run("latest").expect("the newest run")
    }

    /// Returns the text of the newest run's journal; empty if there is none.
    pub(crate) fn journal_text(&self) -> String {
        let run = self.project().find_run("latest");
        let text = run.map(|run| fs::read_to_string(run.join("events.jsonl")).unwrap_or_default());
        text.unwrap_or_default()
    }

    pub(crate) fn wait_for_journal(&self) {
        wait_until("the journal", DEADLINE, || !self.journal_text().is_empty());
    }

    /// Returns the records of the newest run.
    pub(crate) fn journal(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.newest_run().join("events.jsonl")).expect("a journal");
        text.lines()
            .map(|line| serde_json::from_str(line).expect("a record"))
            .collect()
    }

    /// Returns the records of one type.
    pub(crate) fn records(&self, kind: &str) -> Vec<Value> {
        self.journal()
            .into_iter()
            .filter(|record| record["type"] == kind)
            .collect()
    }

    /// Reads a file of one iteration of the newest run.
    pub(crate) fn iteration_file(&self, iteration: &str, name: &str) -> Vec<u8> {
        let path = self.newest_run().join("iterations").join(iteration).join(name);
        fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Returns the pids of the fake agents and of the processes that they left behind.
    pub(crate) fn pids(&self) -> Vec<i32> {
        self.recorded("pids")
            .lines()
            .filter_map(|line| line.parse().ok())
            .collect()
    }

    pub(crate) fn wait_for_processes(&self, count: usize) {
        wait_until("the processes of the script", DEADLINE, || {
            self.pids().len() >= count
        });
    }

    pub(crate) fn wait_for_file(&self, path: &Path) {
        wait_until("a file", DEADLINE, || path.exists());
    }

    pub(crate) fn wait_until_processes_exit(&self, limit: Duration) {
        wait_until("the end of every process", limit, || {
            !self.pids().into_iter().any(is_alive)
        });
    }

    pub(crate) fn processes_exit_within(&self, limit: Duration) -> bool {
        let deadline = std::time::Instant::now() + limit;
        while self.pids().into_iter().any(is_alive) {
            if std::time::Instant::now() > deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        true
    }

    /// Replaces the paths of this sandbox by placeholders.
    pub(crate) fn redact_paths(&self, text: &str) -> String {
        let root = self.root.path();
        let real = fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
        let project = self.project().directory().display().to_string();
        let text = text.replace(&project, "[PROJECT]");
        [real.as_path(), root].iter().fold(text, |text, root| {
            text.replace(&*root.join("work").to_string_lossy(), "[WORKSPACE]")
                .replace(&*root.to_string_lossy(), "[SANDBOX]")
        })
    }
}

/// A failed test leaves no process behind either.
impl Drop for Sandbox {
    fn drop(&mut self) {
        for pid in self.pids().into_iter().filter(|pid| is_alive(*pid)) {
            signal(pid, Signal::KILL);
        }
    }
}

/// A running `ralph`; dropping it kills it.
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

    /// Kills ralph and returns its status, which is an exit code if ralph exited before the kill.
    pub(crate) fn kill(mut self) -> ExitStatus {
        let mut child = self.child.take().expect("a running ralph");
        child.kill().expect("SIGKILL is sent");
        child.wait().expect("ralph exits")
    }

    /// Returns the peak of its resident memory in bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok())
            .unwrap_or(0)
            * 1024
    }

    /// Returns whether ralph exits within this time.
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

    pub(crate) fn finish(mut self) -> CommandOutput {
        let child = self.child.take().expect("a running ralph");
        let pid = i32::try_from(child.id()).expect("a pid");
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || sender.send(child.wait_with_output()));
        match receiver.recv_timeout(DEADLINE) {
            Ok(output) => command_output(output.expect("ralph's output")),
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

pub(crate) fn command_output(output: Output) -> CommandOutput {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    CommandOutput {
        stdout: text(output.stdout),
        stderr: text(output.stderr),
        status: output.status,
    }
}

fn signal(pid: i32, number: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        // The process may have exited already.
        let _ = kill_process(pid, number);
    }
}

/// Returns whether this signal ended a process.
pub(crate) fn was_killed_by(status: ExitStatus, number: Signal) -> bool {
    status.signal() == Some(number.as_raw())
}

/// Splits the arguments that the fake agent recorded.
pub(crate) fn split_arguments(recorded: &str) -> Vec<&str> {
    recorded.split_terminator('\0').collect()
}
