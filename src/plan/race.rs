//! Runs forks of a run side by side. The first one that its gates verify wins, and the others are stopped.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use super::children::{ChildOutcome, ChildProcesses};
use super::error::PlanError;
use crate::agent::NESTED_SESSION;
use crate::event::{Record, RunEvent, RunOutcome, StreamName, Usage};
use crate::process::{Environment, LineSplitter, ProcessSpec, Stdin, Transport};
use crate::run::Host;
use crate::signals::STOP_SIGNALS;

/// The limits of the runs apply; this is longer than any of them.
const TIMEOUT: Duration = Duration::from_secs(366 * 24 * 3600);
/// Longer records contain output, which is not needed here.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// A fork that takes part in a race.
#[derive(Debug, Clone)]
pub(crate) struct Contender {
    pub(crate) agent: String,
    /// The id of its run.
    pub(crate) run: String,
    pub(crate) workspace: PathBuf,
    /// The arguments of `ralph`.
    pub(crate) arguments: Vec<String>,
}

/// What happens during a race. The number is that of the contender.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RaceNews {
    Iteration(usize, u64),
    Ended(usize, Box<RaceEnd>),
}

/// How a contender ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RaceEnd {
    /// Absent if the run did not end by itself.
    pub(crate) outcome: Option<RunOutcome>,
    /// Its gates passed.
    pub(crate) verified: bool,
    pub(crate) iterations: u64,
    pub(crate) duration_ms: u64,
    pub(crate) usage: Usage,
    /// Why there is no outcome.
    pub(crate) problem: Option<String>,
}

/// The result of a race, with an end for each contender.
#[derive(Debug)]
pub(crate) struct RaceResult {
    pub(crate) ends: Vec<RaceEnd>,
    pub(crate) winner: Option<usize>,
    /// The signal that stopped it.
    pub(crate) signal: Option<i32>,
}

enum RaceMessage {
    News(RaceNews),
    Signal(i32),
}

/// Runs the contenders to their ends.
pub(crate) fn race(
    host: &Host,
    contenders: &[Contender],
    mut on_news: impl FnMut(&RaceNews),
) -> Result<RaceResult, PlanError> {
    let children = Arc::new(ChildProcesses::new(host.supervisors().separate()));
    let (sender, messages) = mpsc::channel();
    let signals = sender.clone();
    let on_signal = move |signal| drop(signals.send(RaceMessage::Signal(signal)));
    let subscription = host.signals().subscribe(STOP_SIGNALS, on_signal);
    let _subscription = subscription.map_err(PlanError::Signals)?;
    for (number, contender) in contenders.iter().enumerate() {
        let (children, sender, contender) = (Arc::clone(&children), sender.clone(), contender.clone());
        let run = move || run_contender(number, &contender, &children, &sender);
        host.panics()
            .for_run()
            .spawn("contender", run)
            .map_err(PlanError::Thread)?;
    }
    let mut result = RaceResult {
        ends: vec![RaceEnd::default(); contenders.len()],
        winner: None,
        signal: None,
    };
    let mut running: BTreeSet<usize> = (0..contenders.len()).collect();
    while !running.is_empty() {
        // The sender above is never dropped.
        let Ok(message) = messages.recv() else { break };
        match message {
            RaceMessage::Signal(signal) => {
                if result.signal.replace(signal).is_some() {
                    children.kill();
                }
                children.stop();
            }
            RaceMessage::News(news) => {
                on_news(&news);
                if let RaceNews::Ended(number, end) = news {
                    running.remove(&number);
                    if end.verified && result.winner.is_none() {
                        result.winner = Some(number);
                        children.stop();
                    }
                    result.ends[number] = *end;
                }
            }
        }
    }
    children.shut_down();
    Ok(result)
}

fn run_contender(
    number: usize,
    contender: &Contender,
    children: &ChildProcesses,
    sender: &mpsc::Sender<RaceMessage>,
) {
    let spec = ProcessSpec {
        program: children.ralph(),
        args: contender.arguments.iter().map(Into::into).collect(),
        environment: Environment {
            remove: NESTED_SESSION.iter().map(Into::into).collect(),
            set: Vec::new(),
        },
        cwd: contender.workspace.clone(),
        stdin: Stdin::Null,
        stdout: Transport::Pipe,
        confinement: None,
    };
    let end = Arc::new(Mutex::new(RaceEnd::default()));
    let output = Mutex::new(LineSplitter::new(MAX_LINE_BYTES));
    let (facts, news) = (Arc::clone(&end), sender.clone());
    let last_error = Arc::new(Mutex::new(String::new()));
    let errors = Arc::clone(&last_error);
    let outcome = children.run(&spec, TIMEOUT, move |stream, bytes| match stream {
        StreamName::Stderr => {
            let text = String::from_utf8_lossy(bytes);
            if let Some(line) = text.lines().rev().find(|line| line.starts_with("error")) {
                line.clone_into(&mut errors.lock().unwrap_or_else(PoisonError::into_inner));
            }
        }
        StreamName::Stdout => {
            let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
            output.feed(bytes, |line| {
                let mut end = facts.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(iteration) = apply(&mut end, line.bytes) {
                    // The race may have ended.
                    drop(news.send(RaceMessage::News(RaceNews::Iteration(number, iteration))));
                }
            });
        }
    });
    let mut end = end.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let is_complete = matches!(end.outcome, Some(RunOutcome::Complete { .. }));
    end.verified &= is_complete && matches!(&outcome, ChildOutcome::Ended(end) if end.success());
    if end.outcome.is_none() {
        let error = last_error.lock().unwrap_or_else(PoisonError::into_inner).clone();
        end.problem = Some(match outcome {
            ChildOutcome::Stopped | ChildOutcome::TimedOut => "stopped".to_owned(),
            ChildOutcome::CouldNotStart(why) => why,
            ChildOutcome::Ended(end) if error.is_empty() => end.to_string(),
            ChildOutcome::Ended(_) => error.trim_start_matches("error: ").to_owned(),
        });
    }
    drop(sender.send(RaceMessage::News(RaceNews::Ended(number, Box::new(end)))));
}

/// Adds a record; returns the iteration that it starts.
fn apply(end: &mut RaceEnd, line: &[u8]) -> Option<u64> {
    let record: Record = serde_json::from_slice(line).ok()?;
    match record.event {
        RunEvent::IterationStarted { iteration, .. } => {
            end.verified = false;
            return Some(iteration);
        }
        RunEvent::Verification { verified, .. } => end.verified = verified,
        RunEvent::RunEnded {
            outcome,
            iterations,
            duration_ms,
            usage,
        } => {
            end.outcome = Some(outcome);
            (end.iterations, end.duration_ms, end.usage) = (iterations, duration_ms, *usage);
        }
        _ => {}
    }
    None
}
