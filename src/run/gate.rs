//! The command of a gate, and `ralph gates run`, which runs one gate outside a run.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::agent::NESTED_SESSION;
use crate::event::GateResult;
use crate::policy::Gate;
use crate::process::{Child, ChildEvent, Environment, ProcessSpec, Stdin, Supervisors, Transport};

use super::excerpt::Excerpt;

/// How one gate ended.
#[derive(Debug)]
pub struct GateReport {
    pub result: GateResult,
    pub took: Duration,
    /// The output, without the middle if it is long, or the reason why the gate could not be started.
    pub output: String,
}

pub(super) fn spec(gate: &Gate, mut environment: Environment, workspace: &Path) -> ProcessSpec {
    let own = gate.env.iter();
    environment
        .set
        .extend(own.map(|(name, value)| (name.into(), value.into())));
    shell_command(&gate.run, environment, gate.cwd.as_deref().unwrap_or(workspace))
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
    }
}

/// Runs one gate as a run would, until it ends or times out.
pub fn run_gate(supervisors: &Supervisors, gate: &Gate, workspace: &Path, grace: Duration) -> GateReport {
    let environment = Environment {
        remove: NESTED_SESSION.iter().map(OsString::from).collect(),
        set: Vec::new(),
    };
    let started = Instant::now();
    let (sender, reports) = mpsc::channel();
    let spec = spec(gate, environment, workspace);
    let report = move |report: ChildEvent| drop(sender.send(report));
    let child = match Child::spawn(supervisors, &spec, report) {
        Ok(child) => child,
        Err(error) => {
            return GateReport {
                result: GateResult::CouldNotStart,
                took: started.elapsed(),
                output: error.to_string(),
            };
        }
    };
    let mut output = Excerpt::default();
    let mut out_of_time = false;
    let result = loop {
        let left = gate.timeout.duration().saturating_sub(started.elapsed());
        let next = if out_of_time {
            reports.recv().map_err(|_| mpsc::RecvTimeoutError::Disconnected)
        } else {
            reports.recv_timeout(left)
        };
        match next {
            Ok(ChildEvent::Output { chunk, .. }) => output.push(&chunk),
            Ok(ChildEvent::Ended(_)) if out_of_time => break GateResult::TimedOut,
            Ok(ChildEvent::Ended(ended)) if ended.end.success() => break GateResult::Passed,
            Ok(ChildEvent::Ended(ended)) => break GateResult::Failed { end: ended.end },
            Err(mpsc::RecvTimeoutError::Timeout) => {
                out_of_time = true;
                child.stop(grace);
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break GateResult::CouldNotStart,
        }
    };
    GateReport {
        result,
        took: started.elapsed(),
        output: output.text(),
    }
}
