//! `ChildFixture`: a directory with a script for the fake agent, and a child that runs it. Every wait has a deadline.

use std::ffi::OsString;
use std::fs;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use ralph::event::StreamName;
use ralph::process::{
    Child, ChildEvent, Ended, Environment, ProcessError, ProcessSpec, Stdin, Supervisors, Transport,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tempfile::TempDir;

/// Longer than any step of a test takes, even on a busy machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);
/// The time that the specification allows between the exit of an agent, or of ralph, and the exit of its last process.
pub(crate) const PROMPTLY: Duration = Duration::from_secs(2);

pub(crate) const PTY: Transport = Transport::Pty {
    rows: 40,
    columns: 120,
};

pub(crate) fn supervisors() -> Supervisors {
    Supervisors::at(env!("CARGO_BIN_EXE_ralph"))
}

pub(crate) fn fake_agent() -> PathBuf {
    env!("CARGO_BIN_EXE_fake-agent").into()
}

/// Returns a specification that starts the fake agent with the scripts of a directory.
pub(crate) fn fake_agent_spec(directory: &Path) -> ProcessSpec {
    ProcessSpec {
        program: fake_agent(),
        args: Vec::new(),
        environment: Environment {
            remove: Vec::new(),
            set: vec![("FAKE_AGENT".into(), directory.into())],
        },
        cwd: directory.to_path_buf(),
        stdin: Stdin::Null,
        stdout: Transport::Pipe,
        confinement: None,
    }
}

pub(crate) struct ChildFixture {
    directory: TempDir,
    pub(crate) spec: ProcessSpec,
}

impl ChildFixture {
    /// Every invocation of the fake agent runs this script.
    pub(crate) fn with_script(script: &str) -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        fs::write(directory.path().join("default.script"), script).expect("a script");
        let spec = fake_agent_spec(directory.path());
        Self { directory, spec }
    }

    pub(crate) fn with_transport(mut self, transport: Transport) -> Self {
        self.spec.stdout = transport;
        self
    }

    pub(crate) fn with_stdin(mut self, stdin: Stdin) -> Self {
        self.spec.stdin = stdin;
        self
    }

    pub(crate) fn with_args(mut self, args: &[&str]) -> Self {
        self.spec.args = args.iter().map(OsString::from).collect();
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).expect("a file of the fixture")
    }

    pub(crate) fn spawn(&self) -> Running {
        self.try_spawn().expect("the fake agent starts")
    }

    pub(crate) fn try_spawn(&self) -> Result<Running, ProcessError> {
        self.try_spawn_with(&supervisors())
    }

    pub(crate) fn try_spawn_with(&self, supervisors: &Supervisors) -> Result<Running, ProcessError> {
        let (sender, reports) = mpsc::channel();
        let child = Child::spawn(supervisors, &self.spec, move |report| {
            // The test may have ended already.
            let _ = sender.send(report);
        })?;
        Ok(Running { child, reports })
    }

    /// Returns the pids of the fake agent and of the processes that it left behind.
    pub(crate) fn pids(&self) -> Vec<i32> {
        let pids = fs::read_to_string(self.path("pids")).unwrap_or_default();
        pids.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Waits until the script has started this many processes.
    pub(crate) fn wait_for_processes(&self, count: usize) {
        wait_until("the processes of the script", DEADLINE, || {
            self.pids().len() >= count
        });
    }

    pub(crate) fn assert_no_process_is_left(&self) {
        let alive: Vec<i32> = self.pids().into_iter().filter(|pid| is_alive(*pid)).collect();
        assert!(alive.is_empty(), "still alive: {alive:?}");
    }
}

/// A failed test leaves no process behind either.
impl Drop for ChildFixture {
    fn drop(&mut self) {
        for pid in self.pids() {
            if let Some(pid) = rustix::process::Pid::from_raw(pid).filter(|_| is_alive(pid)) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
}

pub(crate) struct Running {
    pub(crate) child: Child,
    pub(crate) reports: Receiver<ChildEvent>,
}

#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) ended: Ended,
}

impl Running {
    /// Reads all events up to the exit and asserts that none follows.
    pub(crate) fn finish(self) -> Finished {
        self.finish_after(Vec::new())
    }

    fn finish_after(self, mut stdout: Vec<u8>) -> Finished {
        let mut stderr = Vec::new();
        let ended = loop {
            match self.reports.recv_timeout(DEADLINE).expect("the child exits") {
                ChildEvent::Output {
                    stream: StreamName::Stdout,
                    chunk,
                } => stdout.extend_from_slice(&chunk),
                ChildEvent::Output {
                    stream: StreamName::Stderr,
                    chunk,
                } => stderr.extend_from_slice(&chunk),
                ChildEvent::Ended(ended) => break ended,
            }
        };
        let after_exit = self.reports.recv_timeout(DEADLINE);
        assert!(after_exit.is_err(), "an event after the exit: {after_exit:?}");
        Finished {
            stdout,
            stderr,
            ended,
        }
    }

    /// Waits until the script has printed this text.
    pub(crate) fn wait_for(&self, text: &str) {
        let mut seen = Vec::new();
        while !String::from_utf8_lossy(&seen).contains(text) {
            match self.reports.recv_timeout(DEADLINE).expect("the awaited text") {
                ChildEvent::Output { chunk, .. } => seen.extend_from_slice(&chunk),
                ChildEvent::Ended(ended) => panic!("{ended:?} before {text}"),
            }
        }
    }
}

pub(crate) fn wait_until(what: &str, limit: Duration, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + limit;
    while !condition() {
        assert!(Instant::now() < deadline, "timed out waiting for {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Returns whether a write to this descriptor would block.
pub(crate) fn write_would_block(fd: impl AsFd) -> bool {
    let mut fds = [PollFd::new(&fd, PollFlags::OUT)];
    poll(&mut fds, Some(&Timespec::default())).expect("poll") == 0
}

/// Returns whether a process is running. A zombie is not.
pub(crate) fn is_alive(pid: i32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    let state = stat
        .rsplit(')')
        .next()
        .and_then(|rest| rest.split_whitespace().next());
    !matches!(state, Some("Z" | "X"))
}
