//! Runs one cell: prepares a workspace, starts `ralph run` in it, then runs the task's verify command, which alone decides
//! the verdict.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use crate::agent::NESTED_SESSION;
use crate::config::{CONFIG_ALONE, SuiteTask};
use crate::event::{ProcessEnd, RunLimit, RunOutcome, StreamName, Usage};
use crate::plan::{ChildOutcome, ChildProcesses};
use crate::process::{Environment, LineSplitter, ProcessSpec, Stdin, Transport};
use crate::run::shell_command;
use crate::store::{RunEnd, RunState, STATE_VARIABLE, StoreError};
use crate::ui::{PassedGates, run_verdict};

use super::layout::cost_in;
use super::layout::{newest_state, state_of_cell};
use super::log::ChildLog;
use super::plan::Workspaces;
use super::results::{CellId, CellResult, CellVerdict, VERSION};

/// Time that a loop may exceed its limit, to stop and clean up, before it is killed.
const SHUTDOWN_TIME: Duration = Duration::from_secs(120);
/// Maximum length of the journal lines that are parsed here.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// Everything that is needed to run a cell.
#[derive(Debug, Clone)]
pub(super) struct CellJob {
    pub(super) cell: CellId,
    pub(super) attempt: u64,
    /// Relative to the bench's directory.
    pub(super) directory: String,
    /// The absolute path of `directory`.
    pub(super) path: PathBuf,
    pub(super) task: SuiteTask,
    /// The `ralph.yml` of the agent.
    pub(super) config: String,
    /// The directory of the tasks file.
    pub(super) base: PathBuf,
    pub(super) workspaces: Workspaces,
    pub(super) cost_limit: CostLimit,
}

/// The cost limit of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum CostLimit {
    Task(Option<f64>),
    /// The rest of the bench's budget.
    Remainder(f64),
}

/// The current step of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CellStep {
    Preparing,
    /// The iteration.
    Running(u64),
    Verifying,
}

/// Why a cell has no verdict.
pub(super) enum CellError {
    /// The bench is being stopped; nothing is recorded.
    Stopped,
    Broken(String),
}

impl From<StoreError> for CellError {
    fn from(error: StoreError) -> Self {
        use std::error::Error;

        let cause = error.source().map(|cause| format!(": {cause}"));
        Self::Broken(format!("{error}{}", cause.unwrap_or_default()))
    }
}

impl CellJob {
    /// Runs the cell; returns `None` if the bench was stopped.
    pub(super) fn run(
        &self,
        children: &ChildProcesses,
        on_step: impl Fn(CellStep) + Send + Sync + 'static,
    ) -> Option<CellResult> {
        let mut result = CellResult {
            version: VERSION,
            at: Timestamp::now(),
            cell: self.cell.clone(),
            attempt: self.attempt,
            directory: self.directory.clone(),
            verdict: CellVerdict::Broken,
            done: false,
            ended: None,
            why: None,
            iterations: 0,
            duration_ms: 0,
            tokens: None,
            cost_usd: None,
        };
        match self.execute(children, Arc::new(on_step), &mut result) {
            Ok(()) => {}
            Err(CellError::Stopped) => return None,
            Err(CellError::Broken(why)) => {
                result.why = Some(why);
                result.cost_usd = result.cost_usd.or_else(|| cost_in(&self.path));
            }
        }
        if self.workspaces == Workspaces::Discard
            && let Err(error) = self.discard()
        {
            let why = format!("cannot remove the workspace: {error}");
            result.why = Some(result.why.map_or(why.clone(), |first| format!("{first}; {why}")));
        }
        result.at = Timestamp::now();
        Some(result)
    }

    fn execute(
        &self,
        children: &ChildProcesses,
        on_step: Arc<dyn Fn(CellStep) + Send + Sync>,
        result: &mut CellResult,
    ) -> Result<(), CellError> {
        on_step(CellStep::Preparing);
        self.prepare(children)?;
        on_step(CellStep::Running(0));
        let ending = self.run_loop(children, &on_step)?;
        result.set_ending(&ending);
        match &ending.outcome {
            RunOutcome::LimitReached {
                limit: RunLimit::Cost { .. },
            } if matches!(self.cost_limit, CostLimit::Remainder(_)) => {
                result.verdict = CellVerdict::OutOfBudget;
                result.why = Some("the bench's budget ran out during this attempt".to_owned());
                return Ok(());
            }
            RunOutcome::AuthRequired { .. }
            | RunOutcome::Misconfigured { .. }
            | RunOutcome::RateLimited { .. }
            | RunOutcome::CheckpointRefused { .. }
            | RunOutcome::Interrupted { .. } => {
                return Err(CellError::Broken(
                    run_verdict(&ending.outcome, &PassedGates::default()).sentence,
                ));
            }
            RunOutcome::Complete { .. }
            | RunOutcome::Failed { .. }
            | RunOutcome::Unreviewed { .. }
            | RunOutcome::LimitReached { .. } => {}
        }
        on_step(CellStep::Verifying);
        match self.command("verify", &self.task.verify, children)? {
            Ok(()) => result.verdict = CellVerdict::Passed,
            Err(why) => {
                result.verdict = CellVerdict::Failed;
                let loop_end = match ending.outcome {
                    RunOutcome::Complete { .. } => "claimed done, but ".to_owned(),
                    _ => format!(
                        "{} ",
                        run_verdict(&ending.outcome, &PassedGates::default()).sentence
                    ),
                };
                result.why = Some(format!("{loop_end}verify failed: {why}"));
            }
        }
        Ok(())
    }

    /// Runs `ralph run` as a child process, with only the cell's configuration file.
    fn run_loop(
        &self,
        children: &ChildProcesses,
        on_step: &Arc<dyn Fn(CellStep) + Send + Sync>,
    ) -> Result<RunEnd, CellError> {
        let config = self.path.join("ralph.yml").into_os_string();
        let mut environment = self.environment();
        environment.set.push((CONFIG_ALONE.into(), "1".into()));
        let state = state_of_cell(&self.path).path().to_owned();
        environment.set.push((STATE_VARIABLE.into(), state.into()));
        let spec = ProcessSpec {
            program: children.ralph(),
            // Trust was checked before the first cell.
            args: vec![
                "run".into(),
                "--config".into(),
                config,
                "--trust".into(),
                "--json".into(),
            ],
            environment,
            cwd: self.workspace(),
            stdin: Stdin::Null,
            stdout: Transport::Pipe,
            confinement: None,
        };
        let limit = self
            .task
            .limits
            .max_runtime_seconds
            .map_or(u64::from(u32::MAX), u64::from);
        let log = self.log("ralph.log")?;
        let (stderr_log, on_step) = (log.clone(), Arc::clone(on_step));
        let lines = Mutex::new(LineSplitter::new(MAX_LINE_BYTES));
        let outcome = children.run(
            &spec,
            Duration::from_secs(limit) + SHUTDOWN_TIME,
            move |stream, bytes| match stream {
                StreamName::Stderr => stderr_log.write(bytes),
                StreamName::Stdout => {
                    let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
                    lines.feed(bytes, |line| {
                        if let Some(iteration) = started_iteration(line.bytes) {
                            on_step(CellStep::Running(iteration));
                        }
                    });
                }
            },
        );
        if outcome == ChildOutcome::Stopped {
            return Err(CellError::Stopped);
        }
        match (newest_state(&self.path), outcome) {
            (Some(RunState::Ended(ending)), _) => Ok(*ending),
            (_, outcome) => Err(CellError::Broken(format!(
                "the loop did not finish: {}",
                log.reason(&describe(&outcome))
            ))),
        }
    }

    /// Runs a command of the task; `Err` has the reason of a failure.
    pub(super) fn command(
        &self,
        name: &str,
        command: &str,
        children: &ChildProcesses,
    ) -> Result<Result<(), String>, CellError> {
        let mut environment = self.environment();
        for (name, value) in [
            ("RALPH_BENCH_DIR", self.base.as_os_str().to_owned()),
            ("RALPH_BENCH_TASK", OsString::from(&self.cell.task)),
            ("RALPH_BENCH_AGENT", OsString::from(&self.cell.agent)),
            ("RALPH_BENCH_REPEAT", OsString::from(self.cell.repeat.to_string())),
        ] {
            environment.set.push((name.into(), value));
        }
        let spec = shell_command(command, environment, &self.workspace());
        self.run_logged(&format!("{name}.log"), &spec, children)
    }

    pub(super) fn run_logged(
        &self,
        log: &str,
        spec: &ProcessSpec,
        children: &ChildProcesses,
    ) -> Result<Result<(), String>, CellError> {
        let log = self.log(log)?;
        let output_log = log.clone();
        let timeout = self.task.timeout.duration();
        match children.run(spec, timeout, move |_, bytes| output_log.write(bytes)) {
            ChildOutcome::Ended(end) if end.success() => Ok(Ok(())),
            ChildOutcome::Stopped => Err(CellError::Stopped),
            ChildOutcome::TimedOut => Ok(Err(format!("timed out after {}", self.task.timeout))),
            outcome @ (ChildOutcome::Ended(_) | ChildOutcome::CouldNotStart(_)) => {
                Ok(Err(log.reason(&describe(&outcome))))
            }
        }
    }

    fn log(&self, name: &str) -> Result<ChildLog, CellError> {
        let path = self.path.join(name);
        ChildLog::open(&path).map_err(unwritable(&path))
    }

    /// The user's environment, without variables that would make cells differ or point outside the workspace.
    pub(super) fn environment(&self) -> Environment {
        let names = std::env::vars_os().map(|(name, _)| name);
        let ralph_variables = names.filter(|name| {
            let name = name.to_string_lossy();
            name.starts_with("RALPH_") && name != "RALPH_RUN_ID"
        });
        let nested = NESTED_SESSION.iter().map(OsString::from);
        let git = ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"].map(OsString::from);
        Environment {
            remove: ralph_variables.chain(nested).chain(git).collect(),
            // Without its own repository, a workspace is outside of any repository.
            set: vec![("GIT_CEILING_DIRECTORIES".into(), self.path.clone().into())],
        }
    }
}

impl CellResult {
    fn set_ending(&mut self, ending: &RunEnd) {
        self.done = matches!(ending.outcome, RunOutcome::Complete { .. });
        self.ended = Some(outcome_word(&ending.outcome).to_owned());
        self.iterations = ending.iterations;
        self.duration_ms = ending.duration_ms;
        self.tokens = tokens(&ending.usage);
        self.cost_usd = ending.usage.cost_usd.map(f64::from);
    }
}

fn tokens(usage: &Usage) -> Option<u64> {
    let parts = || Some(usage.prompt_tokens? + usage.completion_tokens.unwrap_or(0));
    usage.total_tokens.or_else(parts)
}

fn outcome_word(outcome: &RunOutcome) -> &'static str {
    match outcome {
        RunOutcome::Complete { .. } => "complete",
        RunOutcome::Failed { .. } => "failed",
        RunOutcome::Misconfigured { .. } => "misconfigured",
        RunOutcome::AuthRequired { .. } => "auth",
        RunOutcome::Unreviewed { .. } => "unreviewed",
        RunOutcome::LimitReached { .. } => "limit",
        RunOutcome::RateLimited { .. } => "rate_limited",
        RunOutcome::CheckpointRefused { .. } => "checkpoint_refused",
        RunOutcome::Interrupted { .. } => "interrupted",
    }
}

fn describe(outcome: &ChildOutcome) -> String {
    match outcome {
        ChildOutcome::Ended(ProcessEnd::Exited { code }) => format!("exit code {code}"),
        ChildOutcome::Ended(end) => end.to_string(),
        ChildOutcome::TimedOut => "timed out".to_owned(),
        ChildOutcome::Stopped => "stopped".to_owned(),
        ChildOutcome::CouldNotStart(why) => why.clone(),
    }
}

/// Returns the iteration if the journal line starts one.
fn started_iteration(line: &[u8]) -> Option<u64> {
    memchr::memmem::find(&line[..line.len().min(128)], b"\"type\":\"iteration_started\"")?;
    let record: serde_json::Value = serde_json::from_slice(line).ok()?;
    record["iteration"].as_u64()
}

pub(super) fn unwritable(path: &Path) -> impl FnOnce(io::Error) -> CellError {
    let path = path.display().to_string();
    move |error| CellError::Broken(format!("cannot write {path}: {error}"))
}
