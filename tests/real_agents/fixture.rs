//! `Fixture`: one agent program with a temporary project and home. Every wait has a deadline.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use ralph::event::{IterationOutcome, Record, RunEvent, TranscriptEvent};
use tempfile::TempDir;

use crate::programs::Program;
use crate::signals::with_default_signals;

/// Longer than any run takes, including the retries of the programs.
const DEADLINE: Duration = Duration::from_secs(400);
/// The time that the specification allows between the exit of ralph and the exit of its last process.
const PROMPTLY: Duration = Duration::from_secs(2);

pub(crate) struct Fixture {
    pub(crate) cli: Program,
    directory: TempDir,
    environment: Vec<(String, String)>,
    arguments: Vec<String>,
    /// The value of `--agent`.
    backend: String,
    config: String,
}

impl Fixture {
    pub(crate) fn new(cli: Program, url: &str) -> Self {
        let programs = programs();
        let directory = TempDir::with_prefix("real-").expect("a directory for the fixture");
        let home = directory.path().join("home");
        let project = directory.path().join("project");
        fs::create_dir_all(&home).expect("a home");
        fs::create_dir_all(&project).expect("a project");
        let variables = cli.prepare(&home, url);
        let path = std::env::var("PATH").unwrap_or_default();
        let shared = programs.join("shared-cache");
        let mut environment = vec![
            ("HOME".to_owned(), home.display().to_string()),
            (
                "RALPH_STATE_DIR".to_owned(),
                directory.path().join("state").display().to_string(),
            ),
            (
                "PATH".to_owned(),
                format!("{}:{path}", programs.join("node_modules/.bin").display()),
            ),
            ("XDG_CACHE_HOME".to_owned(), shared.display().to_string()),
            ("LANG".to_owned(), "C.UTF-8".to_owned()),
            ("TERM".to_owned(), "xterm-256color".to_owned()),
            ("TZ".to_owned(), "UTC".to_owned()),
            ("SHELL".to_owned(), "/bin/bash".to_owned()),
        ];
        environment.extend(
            variables
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value)),
        );
        let fixture = Self {
            cli,
            directory,
            environment,
            arguments: Vec::new(),
            backend: cli.name().to_owned(),
            config: String::new(),
        };
        let git = fixture
            .command("git")
            .args(["init", "-q", "-b", "main"])
            .status()
            .expect("git runs");
        assert!(git.success());
        fixture
    }

    /// Prepares another program too.
    pub(crate) fn with_program(mut self, cli: Program, url: &str) -> Self {
        let variables = cli.prepare(&self.home(), url);
        let variables = variables
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value));
        self.environment.extend(variables);
        self
    }

    pub(crate) fn with_env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn without_env(mut self, name: &str) -> Self {
        self.environment.retain(|(known, _)| known != name);
        self
    }

    pub(crate) fn with_backend(mut self, backend: &str) -> Self {
        backend.clone_into(&mut self.backend);
        self
    }

    /// Appends to `ralph.yml`.
    pub(crate) fn with_config(mut self, yaml: &str) -> Self {
        self.config.push_str(yaml);
        self.config.push('\n');
        self
    }

    pub(crate) fn with_arguments(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(ToString::to_string));
        self
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.directory.path().join("project")
    }

    /// Returns the directory that contains the runs of the project.
    fn runs(&self) -> PathBuf {
        let state = ralph::store::StateDirectory::at(self.directory.path().join("state"));
        state.project(&self.project()).runs()
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(self.project())
            .stdin(Stdio::null());
        command
    }

    /// Starts `ralph run` with this prompt in PROMPT.md.
    pub(crate) fn start(&self, prompt: &[u8]) -> Running<'_> {
        fs::write(self.project().join("PROMPT.md"), prompt).expect("a prompt");
        fs::write(self.project().join("ralph.yml"), &self.config).expect("a configuration");
        let limits: &[&str] = if self.arguments.iter().any(|argument| argument == "-n") {
            &[]
        } else {
            &["-n", "3"]
        };
        let arguments = ["run", "--agent", &self.backend]
            .into_iter()
            .chain(limits.iter().copied());
        let arguments: Vec<&str> = arguments
            .chain(self.arguments.iter().map(String::as_str))
            .collect();
        self.start_ralph(&arguments)
    }

    fn start_ralph(&self, arguments: &[&str]) -> Running<'_> {
        let out = |name: &str| File::create(self.directory.path().join(name)).expect("a file for output");
        let mut command = self.command(ralph());
        command
            .args(arguments)
            .stdout(out("stdout"))
            .stderr(out("stderr"));
        let child = with_default_signals(&mut command).spawn().expect("ralph starts");
        Running { fixture: self, child }
    }

    /// Runs another command of ralph until it exits.
    pub(crate) fn ralph(&self, arguments: &[&str]) -> Ended {
        self.start_ralph(arguments).end()
    }

    pub(crate) fn run(&self, prompt: impl AsRef<[u8]>) -> Ended {
        self.start(prompt.as_ref()).end()
    }

    /// Returns the command lines of the processes of this fixture, which have its HOME.
    pub(crate) fn processes(&self) -> Vec<String> {
        let home = format!("HOME={}", self.home().display());
        let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
        pids.filter_map(|entry| {
            let environment = fs::read(entry.path().join("environ")).ok()?;
            environment
                .split(|byte| *byte == 0)
                .any(|variable| variable == home.as_bytes())
                .then(|| fs::read(entry.path().join("cmdline")).unwrap_or_default())
                .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        })
        .collect()
    }

    pub(crate) fn assert_nothing_survives(&self) {
        let deadline = Instant::now() + PROMPTLY;
        while !self.processes().is_empty() {
            assert!(
                Instant::now() < deadline,
                "still running: {:#?}",
                self.processes()
            );
            thread::sleep(Duration::from_millis(20));
        }
    }
}

pub(crate) struct Running<'a> {
    fixture: &'a Fixture,
    child: Child,
}

impl Running<'_> {
    pub(crate) fn wait_until(&self, what: &str, condition: impl Fn() -> bool) {
        self.wait_for(what, Duration::from_secs(90), condition);
    }

    fn wait_for(&self, what: &str, limit: Duration, condition: impl Fn() -> bool) {
        let deadline = Instant::now() + limit;
        while !condition() {
            assert!(
                Instant::now() < deadline,
                "timed out waiting for {what}: {:#?}",
                self.fixture.processes()
            );
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for a text in the journal.
    pub(crate) fn wait_until_journal_contains(&self, text: &str) {
        let runs = self.fixture.runs();
        self.wait_for(text, Duration::from_secs(300), || {
            let runs = fs::read_dir(&runs).into_iter().flatten().flatten();
            runs.map(|run| read(&run.path().join("events.jsonl")))
                .any(|journal| journal.contains(text))
        });
    }

    pub(crate) fn interrupt(&self) {
        let pid = i32::try_from(self.child.id()).expect("a process id");
        let pid = rustix::process::Pid::from_raw(pid).expect("a process id");
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("ralph can be signaled");
    }

    pub(crate) fn end(mut self) -> Ended {
        let start = Instant::now();
        let code = loop {
            if let Some(status) = self.child.try_wait().expect("ralph can be waited for") {
                break status.code();
            }
            if start.elapsed() > DEADLINE {
                let _ = self.child.kill();
                let _ = self.child.wait();
                panic!(
                    "ralph did not exit; output:\n{}",
                    read(&self.fixture.directory.path().join("stdout"))
                );
            }
            thread::sleep(Duration::from_millis(20));
        };
        let journals = fs::read_dir(self.fixture.runs()).into_iter().flatten().flatten();
        let run = journals.map(|entry| entry.path()).next();
        let journal = run.as_ref().map(|run| read(&run.join("events.jsonl")));
        Ended {
            code,
            stdout: read(&self.fixture.directory.path().join("stdout")),
            stderr: read(&self.fixture.directory.path().join("stderr")),
            records: journal
                .unwrap_or_default()
                .lines()
                .map(|line| serde_json::from_str(line).expect("a record of the journal"))
                .collect(),
            run,
        }
    }
}

fn read(path: &Path) -> String {
    let bytes = fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Output, exit code and records of a finished run.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) records: Vec<Record>,
    pub(crate) run: Option<PathBuf>,
}

impl Ended {
    pub(crate) fn assert_code(&self, code: i32) {
        assert_eq!(self.code, Some(code), "{}", self.describe());
    }

    pub(crate) fn transcript(&self) -> impl Iterator<Item = &TranscriptEvent> {
        self.records.iter().filter_map(|record| match &record.event {
            RunEvent::Transcript { event, .. } => Some(event),
            _ => None,
        })
    }

    pub(crate) fn outcomes(&self) -> Vec<&IterationOutcome> {
        let ended = self.records.iter().filter_map(|record| match &record.event {
            RunEvent::IterationEnded { outcome, .. } => Some(outcome),
            _ => None,
        });
        ended.collect()
    }

    /// Describes the run for the message of a failed assertion.
    pub(crate) fn describe(&self) -> String {
        let mut outcomes = String::new();
        for record in &self.records {
            if !matches!(record.event, RunEvent::Transcript { .. }) {
                outcomes.push_str(&format!("{:.600}\n", format!("{:?}", record.event)));
            }
        }
        let shown: String = self.stdout.chars().take(4000).collect();
        format!(
            "exit {:?}\n{shown}\n--- stderr\n{:.2000}\n--- journal\n{outcomes}",
            self.code, self.stderr
        )
    }
}

/// Returns the binary that was built with this suite, or the one that `RALPH_UNDER_TEST` names.
fn ralph() -> PathBuf {
    let named = std::env::var_os("RALPH_UNDER_TEST");
    named.map_or_else(|| env!("CARGO_BIN_EXE_ralph").into(), PathBuf::from)
}

/// Returns the directory of the programs, after asserting that loopback is the only network.
fn programs() -> PathBuf {
    let directory = std::env::var_os("RALPH_REAL_AGENTS").expect("these tests are run by `just real-agents`");
    let interfaces = fs::read_to_string("/proc/net/dev").expect("a list of network interfaces");
    let others: Vec<&str> = interfaces
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, _)| name.trim())
        .filter(|name| *name != "lo")
        .collect();
    assert!(
        others.is_empty(),
        "these tests need a network namespace with loopback only, found {others:?}"
    );
    PathBuf::from(directory)
}
