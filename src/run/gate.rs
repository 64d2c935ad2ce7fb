//! A gate: how its command is started, in a run and by hand alike; and one gate run by hand.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::agent::NESTED_SESSION;
use crate::engine::GateRule;
use crate::event::GateResult;
use crate::process::{Child, ChildEvent, Environment, ProcessSpec, Stdin, Supervisors, Transport};

use super::session::Excerpt;

/// How one gate ended.
#[derive(Debug)]
pub struct GateReport {
    pub result: GateResult,
    pub took: Duration,
    /// What it printed, its middle left out where it is long; or why it could not be started.
    pub output: String,
}

pub(super) fn spec(gate: &GateRule, mut environment: Environment, workspace: &Path) -> ProcessSpec {
    let own = gate.environment.iter();
    environment
        .set
        .extend(own.map(|(name, value)| (name.into(), value.into())));
    shell_command(
        &gate.command,
        environment,
        gate.cwd.as_deref().unwrap_or(workspace),
    )
}

/// A command of the user's, for a shell; nobody types into it.
pub fn shell_command(command: &str, environment: Environment, cwd: &Path) -> ProcessSpec {
    ProcessSpec {
        program: PathBuf::from("/bin/sh"),
        // One stream for both, so that what is said about an error stands beside it.
        args: vec!["-c".into(), OsString::from(format!("exec 2>&1\n{command}"))],
        environment,
        cwd: cwd.to_owned(),
        stdin: Stdin::Null,
        stdout: Transport::Pipe,
    }
}

/// Runs one gate as a run would, to its end or to the end of its time.
pub fn run_gate(supervisors: &Supervisors, gate: &GateRule, workspace: &Path, grace: Duration) -> GateReport {
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
        let left = gate.timeout.saturating_sub(started.elapsed());
        let next = if out_of_time {
            reports.recv().map_err(|_| mpsc::RecvTimeoutError::Disconnected)
        } else {
            reports.recv_timeout(left)
        };
        match next {
            Ok(ChildEvent::Output { chunk, .. }) => output.take(&chunk),
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
