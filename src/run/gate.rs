//! The command of a gate, and `ralph gates run`, which runs one gate outside a run.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::agent::NESTED_SESSION;
use crate::engine::GateEnd;
use crate::event::{GateResult, ProcessEnd, TestReport};
use crate::files::{self, FileStat, ReadRule};
use crate::policy::Gate;
use crate::process::{
    Child, ChildEvent, Environment, ProcessError, ProcessSpec, Stdin, Supervisors, Transport,
};

use super::clean_gate::PreparedGate;
use super::excerpt::Excerpt;

/// A JUnit report larger than this is not read.
const REPORT_RULE: ReadRule = ReadRule::following(32 << 20);

/// How one gate ended.
#[derive(Debug)]
pub struct GateReport {
    pub result: GateResult,
    pub took: Duration,
    /// The test results in the output or in the report file.
    pub tests: Option<TestReport>,
    /// The protected files that changed while the gate ran.
    pub altered: Vec<String>,
    /// The output, without the middle if it is long, or the reason why the gate could not be started.
    pub output: String,
}

/// A gate and the directory in which it runs.
pub struct GateRun {
    gate: Gate,
    directory: PathBuf,
    /// The state of the report file before the gate started.
    stale_report: Option<FileStat>,
    /// The clean checkout, unless the gate runs in the workspace.
    prepared: Option<PreparedGate>,
}

fn state_of(path: &Path) -> Option<FileStat> {
    path.metadata().ok().map(|metadata| FileStat::of(&metadata))
}

impl GateRun {
    pub fn new(gate: Gate, workspace: &Path) -> Self {
        let directory = gate.cwd.clone().unwrap_or_else(|| workspace.to_owned());
        Self::in_directory(gate, directory, None)
    }

    pub(super) fn clean(gate: Gate, prepared: PreparedGate) -> Self {
        let directory = prepared.directory.clone();
        Self::in_directory(gate, directory, Some(prepared))
    }

    fn in_directory(gate: Gate, directory: PathBuf, prepared: Option<PreparedGate>) -> Self {
        let report = gate.report.as_ref().map(|report| directory.join(report));
        Self {
            stale_report: report.as_deref().and_then(state_of),
            gate,
            directory,
            prepared,
        }
    }

    pub(super) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// The clean checkout, unless the gate runs in the workspace.
    pub(super) fn checkout(&self) -> Option<&Path> {
        self.prepared.as_ref().map(|prepared| &*prepared.directory)
    }

    pub fn spec(&self, mut environment: Environment) -> ProcessSpec {
        let own = self.gate.env.iter();
        environment
            .set
            .extend(own.map(|(name, value)| (name.into(), value.into())));
        shell_command(&self.gate.run, environment, &self.directory)
    }

    /// The report file, if the gate has written it.
    fn read_report(&self) -> Option<String> {
        let path = self.directory.join(self.gate.report.as_ref()?);
        if state_of(&path) == self.stale_report {
            return None;
        }
        let bytes = files::read(&path, REPORT_RULE).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    pub fn ended(&self, end: Option<ProcessEnd>, output: String) -> GateEnd {
        let prepared = self.prepared.as_ref();
        GateEnd {
            end,
            output,
            report: self.read_report(),
            tree: prepared.map(|prepared| prepared.tree.to_string()),
            protected_changes: prepared
                .map(|prepared| prepared.protected_changes.clone())
                .unwrap_or_default(),
            altered: prepared.map(PreparedGate::altered).unwrap_or_default(),
        }
    }
}

/// A shell command of the user, with an empty stdin.
pub fn shell_command(command: &str, environment: Environment, cwd: &Path) -> ProcessSpec {
    ProcessSpec {
        program: PathBuf::from("/bin/sh"),
        // One stream for both, so that an error message stays next to the output that it belongs to.
        args: vec!["-c".into(), OsString::from(format!("exec 2>&1\n{command}"))],
        environment,
        cwd: cwd.to_owned(),
        stdin: Stdin::Null,
        stdout: Transport::Pipe,
        confinement: None,
    }
}

/// Runs one gate as a run would, until it ends or times out.
pub fn run_gate(supervisors: &Supervisors, gate: &Gate, workspace: &Path, grace: Duration) -> GateReport {
    let gate_run = GateRun::new(gate.clone(), workspace);
    gate_run.report(supervisors, own_environment(), grace)
}

/// The environment of a gate outside of a run.
pub(super) fn own_environment() -> Environment {
    Environment {
        remove: NESTED_SESSION.iter().map(OsString::from).collect(),
        set: Vec::new(),
    }
}

impl GateRun {
    /// Runs the gate until it ends or times out.
    pub(super) fn report(
        &self,
        supervisors: &Supervisors,
        environment: Environment,
        grace: Duration,
    ) -> GateReport {
        let gate_run = self;
        let gate = &self.gate;
        let started = Instant::now();
        let mut output = Excerpt::default();
        let (ended, timed_out) =
            match run_to_end(supervisors, &gate_run.spec(environment), gate, grace, &mut output) {
                Ok((end, timed_out)) => (gate_run.ended(end, output.text()), timed_out),
                Err(error) => (
                    GateEnd {
                        output: error.to_string(),
                        ..GateEnd::default()
                    },
                    TimedOut::No,
                ),
            };
        let tests = ended.tests();
        let result = match timed_out {
            TimedOut::Yes => GateResult::TimedOut,
            TimedOut::No => ended.result(gate, tests.as_ref()),
        };
        GateReport {
            result,
            took: started.elapsed(),
            tests,
            altered: ended.altered,
            output: ended.output,
        }
    }
}

/// Whether a gate was stopped because of its timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TimedOut {
    No,
    Yes,
}

/// Runs a command until it ends or times out.
fn run_to_end(
    supervisors: &Supervisors,
    spec: &ProcessSpec,
    gate: &Gate,
    grace: Duration,
    output: &mut Excerpt,
) -> Result<(Option<ProcessEnd>, TimedOut), ProcessError> {
    let started = Instant::now();
    let (sender, reports) = mpsc::channel();
    let report = move |report: ChildEvent| drop(sender.send(report));
    let child = Child::spawn(supervisors, spec, report)?;
    let mut timed_out = TimedOut::No;
    loop {
        let left = gate.timeout.duration().saturating_sub(started.elapsed());
        let next = match timed_out {
            TimedOut::Yes => reports.recv().map_err(|_| mpsc::RecvTimeoutError::Disconnected),
            TimedOut::No => reports.recv_timeout(left),
        };
        match next {
            Ok(ChildEvent::Output { chunk, .. }) => output.push(&chunk),
            Ok(ChildEvent::Ended(ended)) => return Ok((Some(ended.end), timed_out)),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                timed_out = TimedOut::Yes;
                child.stop(grace);
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => return Ok((None, timed_out)),
        }
    }
}
