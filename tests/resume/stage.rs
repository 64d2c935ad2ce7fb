//! A workspace with a `ralph.yml` for the fake agent, and the real `ralph` in it. Whatever could hang has a deadline.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use ralph::event::{IterationOutcome, Record, RunEvent, RunOutcome, Usage};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) struct Stage {
    root: TempDir,
}

impl Stage {
    /// Every invocation of the agent plays this script; `config` is added to the `ralph.yml`.
    pub(crate) fn playing(script: &str, config: &str) -> Self {
        let root = TempDir::new().expect("a temporary directory");
        let stage = Self { root };
        fs::create_dir(stage.play()).expect("a directory for the play");
        fs::create_dir(stage.work()).expect("a workspace");
        fs::write(stage.play().join("default.script"), script).expect("a script");
        stage.configure(config);
        stage
    }

    pub(crate) fn configure(&self, config: &str) {
        let agent = env!("CARGO_BIN_EXE_fake-agent");
        let text = format!(
            "cli:\n  backend: custom\n  command: {agent}\n  prompt_mode: stdin\n  transcript: rtf1\n{config}"
        );
        fs::write(self.work().join("ralph.yml"), text).expect("a configuration");
    }

    /// What one invocation plays, the first being 1.
    pub(crate) fn act(self, number: usize, script: &str) -> Self {
        fs::write(self.play().join(format!("{number}.script")), script).expect("a script");
        self
    }

    pub(crate) fn play(&self) -> PathBuf {
        self.root.path().join("play")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> Vec<u8> {
        let output = Command::new("git")
            .args([
                "-c",
                "user.name=t",
                "-c",
                "user.email=t@localhost",
                "-c",
                "commit.gpgSign=false",
            ])
            .args(arguments)
            .current_dir(self.work())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .output()
            .expect("git runs");
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
        output.stdout
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ralph"));
        command
            .args(arguments)
            .current_dir(self.work())
            .env("FAKE_AGENT", self.play())
            // The stage's repository has a remote; what it runs is the test's own.
            .env("RALPH_TRUST", "1")
            .env("XDG_CONFIG_HOME", self.root.path().join("home"))
            .env_remove("RALPH_RUN_ID")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn spawn(&self, arguments: &[&str]) -> Child {
        self.command(arguments).spawn().expect("ralph starts")
    }

    pub(crate) fn ralph(&self, arguments: &[&str]) -> Output {
        finish(self.spawn(arguments))
    }

    pub(crate) fn run_directory(&self) -> PathBuf {
        let runs = self.work().join(".agent/runs");
        let mut runs: Vec<PathBuf> = fs::read_dir(runs)
            .expect("runs")
            .map(|entry| entry.expect("a run").path())
            .collect();
        assert_eq!(runs.len(), 1, "one run: {runs:?}");
        runs.remove(0)
    }

    pub(crate) fn run_id(&self) -> String {
        let directory = self.run_directory();
        directory
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned()
    }

    /// Every line of the journal that is a record, and whether the numbers have no gap.
    pub(crate) fn journal(&self) -> Vec<Record> {
        let text = fs::read(self.run_directory().join("events.jsonl")).expect("a journal");
        let records: Vec<Record> = text
            .split(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect();
        for (index, record) in records.iter().enumerate() {
            assert_eq!(record.seq, index as u64 + 1, "numbers without a gap");
        }
        records
    }

    pub(crate) fn wait_for_journal(&self, what: &str, found: impl Fn(&RunEvent) -> bool) {
        wait_until(what, || {
            let runs = self.work().join(".agent/runs");
            let started = fs::read_dir(runs).is_ok_and(|mut runs| {
                runs.next()
                    .is_some_and(|run| run.is_ok_and(|run| run.path().join("events.jsonl").exists()))
            });
            started && self.journal().iter().any(|record| found(&record.event))
        });
    }

    /// What the agent was given in its nth invocation.
    pub(crate) fn prompt(&self, number: usize) -> String {
        fs::read_to_string(self.play().join(format!("{number}.stdin"))).expect("a prompt")
    }

    pub(crate) fn pids(&self) -> Vec<i32> {
        let pids = fs::read_to_string(self.play().join("pids")).unwrap_or_default();
        pids.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Counts what has ended, by iteration.
    pub(crate) fn ended(&self) -> Vec<(u64, u64, IterationOutcome)> {
        let ended = self
            .journal()
            .into_iter()
            .filter_map(|record| match record.event {
                RunEvent::IterationEnded {
                    iteration,
                    attempt,
                    outcome,
                    ..
                } => Some((iteration, attempt, outcome)),
                _ => None,
            });
        ended.collect()
    }

    /// How the run ended last: its outcome, iterations and usage.
    pub(crate) fn end(&self) -> (RunOutcome, u64, Usage) {
        let end = self
            .journal()
            .into_iter()
            .rev()
            .find_map(|record| match record.event {
                RunEvent::RunEnded {
                    outcome,
                    iterations,
                    usage,
                    ..
                } => Some((outcome, iterations, usage)),
                _ => None,
            });
        end.expect("the run has ended")
    }
}

/// A failed test leaves no process behind.
impl Drop for Stage {
    fn drop(&mut self) {
        for pid in self.pids() {
            if let Some(pid) = rustix::process::Pid::from_raw(pid).filter(|_| is_alive(pid)) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
}

pub(crate) fn finish(mut child: Child) -> Output {
    let deadline = Instant::now() + DEADLINE;
    while child.try_wait().expect("a child").is_none() {
        if Instant::now() > deadline {
            let _ = child.kill();
            panic!("ralph hangs: {:?}", child.wait_with_output());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().expect("its output")
}

pub(crate) fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}

pub(crate) fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

pub(crate) fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub(crate) fn is_alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit(')')
        .next()
        .and_then(|rest| rest.split_whitespace().next());
    !matches!(state, None | Some("Z" | "X"))
}

pub(crate) fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON")
}
