//! A directory with a script for the fake agent, and a running child on it. Whatever could hang has a deadline.

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

/// Far more than anything here takes, even on a busy machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);
/// What the specification allows between the end of an agent, or of ralph, and the end of its last process.
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

/// How the fake agent is to be started on a directory.
pub(crate) fn spec_on(directory: &Path) -> ProcessSpec {
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
    }
}

pub(crate) struct Stage {
    directory: TempDir,
    pub(crate) spec: ProcessSpec,
}

impl Stage {
    /// Every invocation of the fake agent plays this script.
    pub(crate) fn playing(script: &str) -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        fs::write(directory.path().join("default.script"), script).expect("a script");
        let spec = spec_on(directory.path());
        Self { directory, spec }
    }

    pub(crate) fn on(mut self, transport: Transport) -> Self {
        self.spec.stdout = transport;
        self
    }

    pub(crate) fn reading(mut self, stdin: Stdin) -> Self {
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
        fs::read(self.path(name)).expect("a file of the stage")
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
            // A test that has seen enough may have gone.
            let _ = sender.send(report);
        })?;
        Ok(Running { child, reports })
    }

    /// The fake agent and all that it left behind.
    pub(crate) fn pids(&self) -> Vec<i32> {
        let pids = fs::read_to_string(self.path("pids")).unwrap_or_default();
        pids.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Waits until so many processes of the play are at work.
    pub(crate) fn wait_for_processes(&self, count: usize) {
        wait_until("the processes of the play", DEADLINE, || {
            self.pids().len() >= count
        });
    }

    pub(crate) fn assert_all_are_gone(&self) {
        let alive: Vec<i32> = self.pids().into_iter().filter(|pid| is_alive(*pid)).collect();
        assert!(alive.is_empty(), "still alive: {alive:?}");
    }
}

/// A failed test leaves nothing behind either.
impl Drop for Stage {
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
    /// Everything up to the end, and the certainty that nothing comes after it.
    pub(crate) fn finish(self) -> Finished {
        self.finish_after(Vec::new())
    }

    fn finish_after(self, mut stdout: Vec<u8>) -> Finished {
        let mut stderr = Vec::new();
        let ended = loop {
            match self.reports.recv_timeout(DEADLINE).expect("the child ends") {
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
        let silence = self.reports.recv_timeout(DEADLINE);
        assert!(silence.is_err(), "a report after the end: {silence:?}");
        Finished {
            stdout,
            stderr,
            ended,
        }
    }

    /// Waits for a line of stdout, so that the script is known to have come this far.
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
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Whoever writes there now has to wait.
pub(crate) fn takes_no_more(fd: impl AsFd) -> bool {
    let mut fds = [PollFd::new(&fd, PollFlags::OUT)];
    poll(&mut fds, Some(&Timespec::default())).expect("a look") == 0
}

/// A zombie is not alive: all that is left of it is a number.
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
