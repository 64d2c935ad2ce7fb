//! Where a bench is worked off: cells begin as children and money allow, results are written down as they come, a signal
//! stops everything.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use signal_hook::consts::{SIGHUP, SIGINT};

use crate::event::Interrupt;
use crate::process::Supervisors;
use crate::run::stop_signals;
use crate::store::BenchFiles;
use crate::ui::{LiveLines, Tone, units};

use super::budget::{Budget, Grant};
use super::cell::{Allowance, Job, Step};
use super::children::Children;
use super::error::BenchError;
use super::plan::Plan;
use super::report::{called, mark, taken};
use super::results::{CellId, CellResult, Entry, History, Started, VERSION, Verdict};
use crate::cli::error::CliError;

/// How often the lines that change are drawn.
const TICK: Duration = Duration::from_millis(250);
/// How often somebody looks when nothing is drawn.
const REST: Duration = Duration::from_secs(30);

/// Why no more cells begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(super) enum Halt {
    /// There are none left.
    Done,
    Interrupted(Interrupt),
    OutOfBudget,
}

enum Message {
    Step {
        slot: usize,
        step: Step,
    },
    Ended {
        slot: usize,
        result: Option<Box<CellResult>>,
    },
    Signal(i32),
}

/// A cell at work.
struct Running {
    cell: CellId,
    since: Instant,
    step: Step,
}

/// Says that a cell has ended, even if its thread falls over: nobody waits for ever.
struct LastWord {
    slot: usize,
    sender: Sender<Message>,
    result: Option<Box<CellResult>>,
}

impl Drop for LastWord {
    fn drop(&mut self) {
        let (slot, result) = (self.slot, self.result.take());
        let _ = self.sender.send(Message::Ended { slot, result });
    }
}

pub(super) struct Scheduler<'a> {
    plan: &'a Plan,
    files: &'a BenchFiles,
    board: LiveLines<io::Stderr>,
    children: Arc<Children>,
    budget: Budget,
    queue: VecDeque<(CellId, u64)>,
    running: BTreeMap<usize, Running>,
    slots: usize,
    halt: Option<Halt>,
    /// Of all cells, those that were settled before included.
    settled: usize,
    passed: usize,
    all: usize,
    began: Instant,
    sender: Sender<Message>,
    inbox: Receiver<Message>,
}

impl<'a> Scheduler<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        files: &'a BenchFiles,
        history: &History,
        spent: f64,
        board: LiveLines<io::Stderr>,
    ) -> Self {
        let cells = plan.cells();
        let all = cells.len();
        let (done, left): (Vec<CellId>, Vec<CellId>) =
            cells.into_iter().partition(|cell| history.is_settled(cell));
        let has_passed = |cell: &&CellId| history.results[*cell].verdict == Verdict::Passed;
        let (sender, inbox) = mpsc::channel();
        Self {
            plan,
            files,
            board,
            children: Arc::new(Children::new(Supervisors::current())),
            budget: Budget::new(plan.max_cost_usd, spent),
            passed: done.iter().filter(has_passed).count(),
            settled: done.len(),
            queue: left
                .into_iter()
                .map(|cell| (history.next_attempt(&cell), cell))
                .map(|(attempt, cell)| (cell, attempt))
                .collect(),
            running: BTreeMap::new(),
            slots: 0,
            halt: None,
            all,
            began: Instant::now(),
            sender,
            inbox,
        }
    }

    /// Works until nothing is left, or nothing more may be done. Then nothing runs any more.
    pub(super) fn work(&mut self) -> Result<Halt, CliError> {
        let mut signals = stop_signals().map_err(BenchError::Signals)?;
        let handle = signals.handle();
        let sender = self.sender.clone();
        thread::spawn(move || {
            for signal in signals.forever() {
                if sender.send(Message::Signal(signal)).is_err() {
                    break;
                }
            }
        });
        let worked = self.until_all_have_ended();
        handle.close();
        if worked.is_err() {
            self.children.stop();
            self.wait_for_the_rest();
        }
        let _ = self.board.clear();
        worked
    }

    fn until_all_have_ended(&mut self) -> Result<Halt, CliError> {
        loop {
            self.begin_what_may()?;
            if self.running.is_empty() {
                return Ok(self.halt.unwrap_or(Halt::Done));
            }
            self.draw();
            let rest = if self.board.is_live() { TICK } else { REST };
            match self.inbox.recv_timeout(rest) {
                Ok(Message::Step { slot, step }) => {
                    if let Some(running) = self.running.get_mut(&slot) {
                        running.step = step;
                    }
                }
                Ok(Message::Ended { slot, result }) => self.end(slot, result)?,
                Ok(Message::Signal(signal)) => self.interrupt(signal),
                Err(_) => {}
            }
        }
    }

    /// What has been begun ends before an error is told.
    fn wait_for_the_rest(&mut self) {
        while !self.running.is_empty() {
            match self.inbox.recv_timeout(REST) {
                Ok(Message::Ended { slot, .. }) => drop(self.running.remove(&slot)),
                Ok(Message::Step { .. } | Message::Signal(_)) | Err(_) => {}
            }
        }
    }

    fn begin_what_may(&mut self) -> Result<(), CliError> {
        let jobs = usize::try_from(self.plan.jobs).unwrap_or(usize::MAX);
        while self.halt.is_none() && self.running.len() < jobs {
            let Some((cell, attempt)) = self.queue.front().cloned() else {
                return Ok(());
            };
            let (Some(task), Some(agent)) = (self.plan.task(&cell.task), self.plan.agent(&cell.agent)) else {
                self.queue.pop_front();
                continue;
            };
            let slot = self.slots;
            let free = (jobs - self.running.len()).min(self.queue.len());
            let allowance = match self.budget.grant(slot, task.limits.max_cost_usd, free) {
                Grant::Own(own) => Allowance::Tasks(own),
                Grant::Rest(rest) => Allowance::Rest(rest),
                Grant::Wait => return Ok(()),
                Grant::Spent => {
                    self.halt = Some(Halt::OutOfBudget);
                    return Ok(());
                }
            };
            self.queue.pop_front();
            self.slots += 1;
            let directory = self.directory_of(&cell, attempt);
            let job = Job {
                place: self.files.directory().join(&directory),
                cell,
                attempt,
                directory,
                task: task.clone(),
                config: agent.config.clone(),
                base: self.plan.base().to_owned(),
                workspaces: self.plan.workspaces,
                allowance,
            };
            self.begin(slot, job)?;
        }
        Ok(())
    }

    fn begin(&mut self, slot: usize, job: Job) -> Result<(), CliError> {
        let started = Entry::Started(Started {
            version: VERSION,
            at: Timestamp::now(),
            cell: job.cell.clone(),
            attempt: job.attempt,
            directory: job.directory.clone(),
        });
        self.files.append(&started)?;
        let running = Running {
            cell: job.cell.clone(),
            since: Instant::now(),
            step: Step::Preparing,
        };
        self.running.insert(slot, running);
        let (children, sender) = (Arc::clone(&self.children), self.sender.clone());
        thread::spawn(move || {
            let steps = sender.clone();
            let mut last_word = LastWord {
                slot,
                sender,
                result: None,
            };
            let result = job.perform(&children, move |step| {
                // Whoever does not listen any more is not told.
                let _ = steps.send(Message::Step { slot, step });
            });
            last_word.result = result.map(Box::new);
        });
        Ok(())
    }

    fn end(&mut self, slot: usize, result: Option<Box<CellResult>>) -> Result<(), CliError> {
        self.running.remove(&slot);
        let Some(result) = result else {
            self.budget.settle(slot, 0.0);
            return Ok(());
        };
        self.budget.settle(slot, result.cost_usd.unwrap_or(0.0));
        self.files.append(&Entry::Ended(result.clone()))?;
        match result.verdict {
            Verdict::Passed => self.passed += 1,
            Verdict::OutOfBudget => self.halt = self.halt.or(Some(Halt::OutOfBudget)),
            Verdict::Failed | Verdict::Broken => {}
        }
        self.settled += 1;
        let (mark, tone) = mark(result.verdict);
        let why = result.why.as_ref().map(|why| format!(" · {why}"));
        let line = format!(
            "{} · {}{}",
            called(&result.cell, self.plan.repeat),
            taken(&result),
            why.unwrap_or_default()
        );
        self.say(mark, tone, &line);
        Ok(())
    }

    /// First all are asked to end; a second time they are ended.
    fn interrupt(&mut self, signal: i32) {
        if self.children.are_stopping() {
            self.children.kill();
            return;
        }
        self.halt = Some(Halt::Interrupted(match signal {
            SIGINT => Interrupt::Int,
            SIGHUP => Interrupt::Hup,
            _ => Interrupt::Term,
        }));
        self.children.stop();
        self.say("·", Tone::Warning, "stopping; Ctrl-C again kills");
    }

    fn directory_of(&self, cell: &CellId, attempt: u64) -> String {
        let place = |of: &[String], name: &str| of.iter().position(|one| one == name).map_or(0, |at| at + 1);
        let agents: Vec<String> = self.plan.agents.iter().map(|agent| agent.name.clone()).collect();
        // A model's name can hold anything; the number keeps two of them apart.
        let agent: String = cell
            .agent
            .chars()
            .map(|sign| {
                if sign.is_ascii_alphanumeric() || "._-@".contains(sign) {
                    sign
                } else {
                    '_'
                }
            })
            .collect();
        let again = if attempt > 1 {
            format!(".{attempt}")
        } else {
            String::new()
        };
        let number = place(&agents, &cell.agent);
        format!("cells/{}/{number}-{agent}/{}{again}", cell.task, cell.repeat)
    }

    /// A board that cannot be drawn on is no reason to stop: the results are written down.
    fn say(&mut self, mark: &str, tone: Tone, text: &str) {
        let _ = self.board.say(mark, tone, text);
    }

    fn draw(&mut self) {
        let mut lines: Vec<String> = self
            .running
            .values()
            .map(|running| {
                let doing = match running.step {
                    Step::Preparing => "preparing".to_owned(),
                    Step::Working(0) => "starting".to_owned(),
                    Step::Working(iteration) => format!("iteration {iteration}"),
                    Step::Verifying => "verifying".to_owned(),
                };
                format!(
                    "  {} · {doing} · {}",
                    called(&running.cell, self.plan.repeat),
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
            "{}/{} · {} passed{cost} · {} · Ctrl-C stops",
            self.settled,
            self.all,
            self.passed,
            units::countdown(self.began.elapsed())
        ));
        let _ = self.board.show(&lines);
    }
}
