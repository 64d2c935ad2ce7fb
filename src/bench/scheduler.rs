//! Schedules the cells of a bench: starts them as slots and budget allow, records results, and stops on signals.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use signal_hook::consts::{SIGHUP, SIGINT};

use crate::event::Interrupt;
use crate::plan::{Budget, ChildProcesses, Grant};
use crate::run::Host;
use crate::signals::STOP_SIGNALS;
use crate::store::BenchFiles;
use crate::ui::{LiveLines, Tone, units};

use super::Bench;
use super::cell::{CellJob, CellStep, CostLimit};
use super::error::BenchError;
use super::plan::BenchPlan;
use super::report::{cell_figures, cell_name, mark};
use super::results::{BenchHistory, CellId, CellResult, CellStarted, CellVerdict, ResultEntry, VERSION};

/// How often the live lines are drawn.
const TICK: Duration = Duration::from_millis(250);
/// Wait timeout when nothing is drawn.
const IDLE: Duration = Duration::from_secs(30);

/// Why no more cells are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum StopReason {
    /// All cells have ended.
    Done,
    Interrupted(Interrupt),
    OutOfBudget,
}

enum SchedulerMessage {
    Step {
        slot: usize,
        step: CellStep,
    },
    Ended {
        slot: usize,
        result: Option<Box<CellResult>>,
    },
    Signal(i32),
}

/// A running cell.
struct RunningCell {
    cell: CellId,
    since: Instant,
    step: CellStep,
}

/// Reports the end of a cell when dropped, even if its thread panics.
struct EndNotifier {
    slot: usize,
    sender: Sender<SchedulerMessage>,
    result: Option<Box<CellResult>>,
}

impl Drop for EndNotifier {
    fn drop(&mut self) {
        let (slot, result) = (self.slot, self.result.take());
        let _ = self.sender.send(SchedulerMessage::Ended { slot, result });
    }
}

pub(super) struct Scheduler<'a> {
    host: Host,
    plan: &'a BenchPlan,
    files: &'a BenchFiles,
    live_lines: LiveLines<io::Stderr>,
    children: Arc<ChildProcesses>,
    budget: Budget<usize>,
    queue: VecDeque<(CellId, u64)>,
    running: BTreeMap<usize, RunningCell>,
    slots: usize,
    stop_reason: Option<StopReason>,
    /// Number of cells with a verdict, including earlier ones.
    settled: usize,
    passed: usize,
    all: usize,
    began: Instant,
    sender: Sender<SchedulerMessage>,
    inbox: Receiver<SchedulerMessage>,
}

impl<'a> Scheduler<'a> {
    pub(super) fn new(
        host: &Host,
        bench: &'a Bench,
        history: &BenchHistory,
        live_lines: LiveLines<io::Stderr>,
    ) -> Self {
        let Bench { files, plan } = bench;
        let cells = plan.cells();
        let all = cells.len();
        let (done, left): (Vec<CellId>, Vec<CellId>) =
            cells.into_iter().partition(|cell| history.is_settled(cell));
        let has_passed = |cell: &&CellId| history.results[*cell].verdict == CellVerdict::Passed;
        let (sender, inbox) = mpsc::channel();
        Self {
            host: host.clone(),
            plan,
            files,
            live_lines,
            children: Arc::new(ChildProcesses::new(host.supervisors().clone())),
            budget: Budget::new(plan.max_cost_usd, bench.total_cost(history)),
            passed: done.iter().filter(has_passed).count(),
            settled: done.len(),
            queue: left
                .into_iter()
                .map(|cell| (history.next_attempt(&cell), cell))
                .map(|(attempt, cell)| (cell, attempt))
                .collect(),
            running: BTreeMap::new(),
            slots: 0,
            stop_reason: None,
            all,
            began: Instant::now(),
            sender,
            inbox,
        }
    }

    /// Runs all cells, and returns when no child is running.
    pub(super) fn run(&mut self) -> Result<StopReason, BenchError> {
        let sender = self.sender.clone();
        let on_signal = move |signal| drop(sender.send(SchedulerMessage::Signal(signal)));
        let signals = self.host.signals().subscribe(STOP_SIGNALS, on_signal);
        let signals = signals.map_err(BenchError::Signals)?;
        let result = self.run_cells();
        drop(signals);
        if result.is_err() {
            self.children.stop();
            self.wait_for_running_cells();
        }
        let _ = self.live_lines.clear();
        result
    }

    fn run_cells(&mut self) -> Result<StopReason, BenchError> {
        loop {
            self.start_cells()?;
            if self.running.is_empty() {
                return Ok(self.stop_reason.unwrap_or(StopReason::Done));
            }
            self.draw();
            let timeout = if self.live_lines.is_live() { TICK } else { IDLE };
            match self.inbox.recv_timeout(timeout) {
                Ok(SchedulerMessage::Step { slot, step }) => {
                    if let Some(running) = self.running.get_mut(&slot) {
                        running.step = step;
                    }
                }
                Ok(SchedulerMessage::Ended { slot, result }) => self.finish_cell(slot, result)?,
                Ok(SchedulerMessage::Signal(signal)) => self.interrupt(signal),
                Err(_) => {}
            }
        }
    }

    /// Waits for all running cells before an error is returned.
    fn wait_for_running_cells(&mut self) {
        while !self.running.is_empty() {
            match self.inbox.recv_timeout(IDLE) {
                Ok(SchedulerMessage::Ended { slot, .. }) => drop(self.running.remove(&slot)),
                Ok(SchedulerMessage::Step { .. } | SchedulerMessage::Signal(_)) | Err(_) => {}
            }
        }
    }

    fn start_cells(&mut self) -> Result<(), BenchError> {
        let jobs = usize::try_from(self.plan.jobs).unwrap_or(usize::MAX);
        while self.stop_reason.is_none() && self.running.len() < jobs {
            let Some((cell, attempt)) = self.queue.front().cloned() else {
                return Ok(());
            };
            let (Some(task), Some(agent)) = (self.plan.task(&cell.task), self.plan.agent(&cell.agent)) else {
                self.queue.pop_front();
                continue;
            };
            let slot = self.slots;
            let free = (jobs - self.running.len()).min(self.queue.len());
            let cost_limit = match self.budget.grant(slot, task.limits.max_cost_usd, free) {
                Grant::TaskLimit(limit) => CostLimit::Task(limit),
                Grant::Remainder(rest) => CostLimit::Remainder(rest),
                Grant::Wait => return Ok(()),
                Grant::Exhausted => {
                    self.stop_reason = Some(StopReason::OutOfBudget);
                    return Ok(());
                }
            };
            self.queue.pop_front();
            self.slots += 1;
            let directory = self.directory_of(&cell, attempt);
            let job = CellJob {
                path: self.files.directory().join(&directory),
                cell,
                attempt,
                directory,
                task: task.clone(),
                config: agent.config.clone(),
                base: self.plan.base().to_owned(),
                workspaces: self.plan.workspaces,
                cost_limit,
            };
            self.start_cell(slot, job)?;
        }
        Ok(())
    }

    fn start_cell(&mut self, slot: usize, job: CellJob) -> Result<(), BenchError> {
        let started = ResultEntry::Started(CellStarted {
            version: VERSION,
            at: Timestamp::now(),
            cell: job.cell.clone(),
            attempt: job.attempt,
            directory: job.directory.clone(),
        });
        self.files.append(&started)?;
        let running = RunningCell {
            cell: job.cell.clone(),
            since: Instant::now(),
            step: CellStep::Preparing,
        };
        self.running.insert(slot, running);
        let (children, sender) = (Arc::clone(&self.children), self.sender.clone());
        let steps = sender.clone();
        // Created here, so that it also reports a thread that could not be started.
        let notifier = EndNotifier {
            slot,
            sender,
            result: None,
        };
        let run_cell = move || {
            let mut notifier = notifier;
            let result = job.run(&children, move |step| {
                // The scheduler may have ended.
                let _ = steps.send(SchedulerMessage::Step { slot, step });
            });
            notifier.result = result.map(Box::new);
        };
        self.host
            .panics()
            .spawn("cell", run_cell)
            .map_err(BenchError::Thread)?;
        Ok(())
    }

    fn finish_cell(&mut self, slot: usize, result: Option<Box<CellResult>>) -> Result<(), BenchError> {
        self.running.remove(&slot);
        let Some(result) = result else {
            self.budget.settle(&slot, 0.0);
            return Ok(());
        };
        self.budget.settle(&slot, result.cost_usd.unwrap_or(0.0));
        self.files.append(&ResultEntry::Ended(result.clone()))?;
        match result.verdict {
            CellVerdict::Passed => self.passed += 1,
            CellVerdict::OutOfBudget => self.stop_reason = self.stop_reason.or(Some(StopReason::OutOfBudget)),
            CellVerdict::Failed | CellVerdict::Broken => {}
        }
        self.settled += 1;
        let (mark, tone) = mark(result.verdict);
        let why = result.why.as_ref().map(|why| format!(" · {why}"));
        let line = format!(
            "{} · {}{}",
            cell_name(&result.cell, self.plan.repeat),
            cell_figures(&result),
            why.unwrap_or_default()
        );
        self.print_line(mark, tone, &line);
        Ok(())
    }

    /// Stops all cells; a second signal kills them.
    fn interrupt(&mut self, signal: i32) {
        if self.children.are_stopping() {
            self.children.kill();
            return;
        }
        self.stop_reason = Some(StopReason::Interrupted(match signal {
            SIGINT => Interrupt::Int,
            SIGHUP => Interrupt::Hup,
            _ => Interrupt::Term,
        }));
        self.children.stop();
        self.print_line("·", Tone::Warning, "stopping; press Ctrl-C again to kill");
    }

    fn directory_of(&self, cell: &CellId, attempt: u64) -> String {
        let position =
            |names: &[String], name: &str| names.iter().position(|one| one == name).map_or(0, |at| at + 1);
        let agents: Vec<String> = self.plan.agents.iter().map(|agent| agent.name.clone()).collect();
        // A model's name can contain any character; the number keeps names unique after replacement.
        let agent: String = cell
            .agent
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || "._-@".contains(c) {
                    c
                } else {
                    '_'
                }
            })
            .collect();
        let suffix = if attempt > 1 {
            format!(".{attempt}")
        } else {
            String::new()
        };
        let number = position(&agents, &cell.agent);
        format!("cells/{}/{number}-{agent}/{}{suffix}", cell.task, cell.repeat)
    }

    /// Prints a line. Errors are ignored, because the results are recorded in a file.
    fn print_line(&mut self, mark: &str, tone: Tone, text: &str) {
        let _ = self.live_lines.print_line(mark, tone, text);
    }

    fn draw(&mut self) {
        let mut lines: Vec<String> = self
            .running
            .values()
            .map(|running| {
                let doing = match running.step {
                    CellStep::Preparing => "preparing".to_owned(),
                    CellStep::Running(0) => "starting".to_owned(),
                    CellStep::Running(iteration) => format!("iteration {iteration}"),
                    CellStep::Verifying => "verifying".to_owned(),
                };
                format!(
                    "  {} · {doing} · {}",
                    cell_name(&running.cell, self.plan.repeat),
                    units::countdown(running.since.elapsed())
                )
            })
            .collect();
        let cost = match (self.budget.spent(), self.budget.limit()) {
            (spent, Some(limit)) => {
                format!(" · {} of {}", units::dollars(spent), units::dollars(limit))
            }
            (spent, None) if spent > 0.0 => format!(" · {}", units::dollars(spent)),
            (_, None) => String::new(),
        };
        lines.push(format!(
            "{}/{} · {} passed{cost} · {} · Ctrl-C to stop",
            self.settled,
            self.all,
            self.passed,
            units::countdown(self.began.elapsed())
        ));
        let _ = self.live_lines.show(&lines);
    }
}
