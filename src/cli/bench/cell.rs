//! One cell: a workspace is made ready, `ralph run` works in it as it would anywhere, and then the task's own command
//! says whether the work is done. What the agent says about it is noted, and decides nothing.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use crate::agent::NESTED_SESSION;
use crate::config::Task;
use crate::event::{Limit, ProcessEnd, RunOutcome, StreamName, Usage};
use crate::process::{Environment, LineSplitter, ProcessSpec, Stdin, Transport};
use crate::run::shell_command;
use crate::store::{Ending, RunIndex, State, StoreError};
use crate::ui::{PassedGates, run_verdict};

use super::children::{Children, Ran};
use super::layout::spent_in;
use super::log::Log;
use super::plan::Workspaces;
use super::results::{CellId, CellResult, VERSION, Verdict};
use crate::cli::context::ALONE;

/// What a loop may take beyond its own limit, to stop and to tidy up, before it is taken for hung.
const TIDYING: Duration = Duration::from_secs(120);
/// No line of the journal that matters here is longer.
const LINE_BYTES: usize = 64 * 1024;

/// All that a cell needs to know.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) cell: CellId,
    pub(super) attempt: u64,
    /// Below the bench's, and where that is.
    pub(super) directory: String,
    pub(super) place: PathBuf,
    pub(super) task: Task,
    /// The `ralph.yml` of the agent.
    pub(super) config: String,
    /// Where the tasks file is.
    pub(super) base: PathBuf,
    pub(super) workspaces: Workspaces,
    pub(super) allowance: Allowance,
}

/// Whose limit a cell's cost is held against.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Allowance {
    Tasks(Option<f64>),
    /// What the bench has left.
    Rest(f64),
}

/// What a cell is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Preparing,
    /// In this iteration.
    Working(u64),
    Verifying,
}

/// Why there is no verdict of the verification.
pub(super) enum Cut {
    /// The bench is being stopped: nothing is recorded.
    Stopped,
    Broken(String),
}

impl From<StoreError> for Cut {
    fn from(error: StoreError) -> Self {
        use std::error::Error;

        let cause = error.source().map(|cause| format!(": {cause}"));
        Self::Broken(format!("{error}{}", cause.unwrap_or_default()))
    }
}

impl Job {
    /// Does all of it; nothing if the bench was stopped meanwhile.
    pub(super) fn perform(
        &self,
        children: &Children,
        tell: impl Fn(Step) + Send + Sync + 'static,
    ) -> Option<CellResult> {
        let mut result = CellResult {
            version: VERSION,
            at: Timestamp::now(),
            cell: self.cell.clone(),
            attempt: self.attempt,
            directory: self.directory.clone(),
            verdict: Verdict::Broken,
            done: false,
            ended: None,
            why: None,
            iterations: 0,
            duration_ms: 0,
            tokens: None,
            cost_usd: None,
        };
        match self.work(children, Arc::new(tell), &mut result) {
            Ok(()) => {}
            Err(Cut::Stopped) => return None,
            Err(Cut::Broken(why)) => {
                result.why = Some(why);
                result.cost_usd = result.cost_usd.or_else(|| spent_in(&self.place));
            }
        }
        if self.workspaces == Workspaces::Discard
            && let Err(error) = self.discard()
        {
            let why = format!("the workspace could not be removed: {error}");
            result.why = Some(result.why.map_or(why.clone(), |first| format!("{first}; {why}")));
        }
        result.at = Timestamp::now();
        Some(result)
    }

    fn work(
        &self,
        children: &Children,
        tell: Arc<dyn Fn(Step) + Send + Sync>,
        result: &mut CellResult,
    ) -> Result<(), Cut> {
        tell(Step::Preparing);
        self.prepare(children)?;
        tell(Step::Working(0));
        let ending = self.run_loop(children, &tell)?;
        result.note(&ending);
        match &ending.outcome {
            RunOutcome::LimitReached {
                limit: Limit::Cost { .. },
            } if matches!(self.allowance, Allowance::Rest(_)) => {
                result.verdict = Verdict::OutOfBudget;
                result.why = Some("the bench's money ran out in the middle of it".to_owned());
                return Ok(());
            }
            RunOutcome::AuthRequired { .. } | RunOutcome::Interrupted { .. } => {
                return Err(Cut::Broken(
                    run_verdict(&ending.outcome, &PassedGates::default()).sentence,
                ));
            }
            RunOutcome::Complete { .. } | RunOutcome::Failed { .. } | RunOutcome::LimitReached { .. } => {}
        }
        tell(Step::Verifying);
        match self.command("verify", &self.task.verify, children)? {
            Ok(()) => result.verdict = Verdict::Passed,
            Err(why) => {
                result.verdict = Verdict::Failed;
                let loop_end = match ending.outcome {
                    RunOutcome::Complete { .. } => "said done, but ".to_owned(),
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

    /// Runs the real loop: this same program, told where to work and by which file alone.
    fn run_loop(&self, children: &Children, tell: &Arc<dyn Fn(Step) + Send + Sync>) -> Result<Ending, Cut> {
        let config = self.place.join("ralph.yml").into_os_string();
        let mut environment = self.environment();
        environment.set.push((ALONE.into(), "1".into()));
        let spec = ProcessSpec {
            program: children.ralph(),
            // Whether all this may run was asked before the first cell.
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
        };
        let limit = self
            .task
            .limits
            .max_runtime_seconds
            .unwrap_or(u64::from(u32::MAX));
        let complaints = self.log("ralph.log")?;
        let (heard, tell) = (complaints.clone(), Arc::clone(tell));
        let lines = Mutex::new(LineSplitter::new(LINE_BYTES));
        let ran = children.run(
            &spec,
            Duration::from_secs(limit) + TIDYING,
            move |stream, bytes| match stream {
                StreamName::Stderr => heard.take(bytes),
                StreamName::Stdout => {
                    let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
                    lines.feed(bytes, |line| {
                        if let Some(iteration) = iteration_begun(line.bytes) {
                            tell(Step::Working(iteration));
                        }
                    });
                }
            },
        );
        if ran == Ran::Stopped {
            return Err(Cut::Stopped);
        }
        let index = RunIndex::of(&self.workspace());
        let newest = index.newest_first().next().map(|id| index.entry(id).state);
        match (newest, ran) {
            (Some(State::Ended(ending)), _) => Ok(*ending),
            (_, ran) => Err(Cut::Broken(format!(
                "the loop has no end: {}",
                complaints.why(&told(&ran))
            ))),
        }
    }

    /// Runs a command of the task's; `Err` says why it failed.
    pub(super) fn command(
        &self,
        name: &str,
        command: &str,
        children: &Children,
    ) -> Result<Result<(), String>, Cut> {
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
        self.captured(&format!("{name}.log"), &spec, children)
    }

    pub(super) fn captured(
        &self,
        log: &str,
        spec: &ProcessSpec,
        children: &Children,
    ) -> Result<Result<(), String>, Cut> {
        let log = self.log(log)?;
        let heard = log.clone();
        let timeout = Duration::from_secs(self.task.timeout);
        match children.run(spec, timeout, move |_, bytes| heard.take(bytes)) {
            Ran::Ended(end) if end.success() => Ok(Ok(())),
            Ran::Stopped => Err(Cut::Stopped),
            Ran::TimedOut => Ok(Err(format!("stopped after {} s", self.task.timeout))),
            ran @ (Ran::Ended(_) | Ran::CouldNotStart(_)) => Ok(Err(log.why(&told(&ran)))),
        }
    }

    fn log(&self, name: &str) -> Result<Log, Cut> {
        let path = self.place.join(name);
        Log::append(&path).map_err(unwritable(&path))
    }

    /// The user's own, without what would make one cell unlike another, or lead out of it.
    pub(super) fn environment(&self) -> Environment {
        let names = std::env::vars_os().map(|(name, _)| name);
        let ours = names.filter(|name| {
            let name = name.to_string_lossy();
            name.starts_with("RALPH_") && name != "RALPH_RUN_ID"
        });
        let nested = NESTED_SESSION.iter().map(OsString::from);
        let git = ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"].map(OsString::from);
        Environment {
            remove: ours.chain(nested).chain(git).collect(),
            // A workspace without a repository of its own is in none.
            set: vec![("GIT_CEILING_DIRECTORIES".into(), self.place.clone().into())],
        }
    }
}

impl CellResult {
    fn note(&mut self, ending: &Ending) {
        self.done = matches!(ending.outcome, RunOutcome::Complete { .. });
        self.ended = Some(outcome_word(&ending.outcome).to_owned());
        self.iterations = ending.iterations;
        self.duration_ms = ending.duration_ms;
        self.tokens = tokens(&ending.usage);
        self.cost_usd = ending.usage.cost_usd;
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
        RunOutcome::AuthRequired { .. } => "auth",
        RunOutcome::LimitReached { .. } => "limit",
        RunOutcome::Interrupted { .. } => "interrupted",
    }
}

fn told(ran: &Ran) -> String {
    match ran {
        Ran::Ended(ProcessEnd::Exited { code }) => format!("exit code {code}"),
        Ran::Ended(end) => end.to_string(),
        Ran::TimedOut => "it took too long".to_owned(),
        Ran::Stopped => "stopped".to_owned(),
        Ran::CouldNotStart(why) => why.clone(),
    }
}

/// The number of the iteration that a line of the journal begins.
fn iteration_begun(line: &[u8]) -> Option<u64> {
    memchr::memmem::find(&line[..line.len().min(128)], b"\"type\":\"iteration_started\"")?;
    let record: serde_json::Value = serde_json::from_slice(line).ok()?;
    record["iteration"].as_u64()
}

pub(super) fn unwritable(path: &Path) -> impl FnOnce(io::Error) -> Cut {
    let path = path.display().to_string();
    move |error| Cut::Broken(format!("cannot write {path}: {error}"))
}
