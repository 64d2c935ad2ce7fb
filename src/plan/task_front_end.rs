//! The front end of a task's run: it passes the run's progress to the plan.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::job::add_cost;
use crate::event::{Record, RunEvent, RunOutcome, Sink, Usd, WaitReason};
use crate::ui::{FrontEnd, Interest};

/// What a run reports to its plan.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RunNews {
    /// The directory of the run.
    Started(PathBuf),
    Iteration(u64),
    /// The cost so far.
    Cost(Usd),
    /// Waits for a usage limit.
    Limited(Duration),
}

/// What is known at the end of a run.
#[derive(Debug, Default)]
pub(super) struct TaskTotals {
    pub(super) outcome: Option<RunOutcome>,
    pub(super) cost: Option<Usd>,
}

pub(super) struct TaskFrontEnd {
    news: Arc<dyn Fn(RunNews) + Send + Sync>,
    totals: Arc<Mutex<TaskTotals>>,
}

impl TaskFrontEnd {
    pub(super) fn new(news: Arc<dyn Fn(RunNews) + Send + Sync>, totals: Arc<Mutex<TaskTotals>>) -> Self {
        Self { news, totals }
    }
}

impl Sink for TaskFrontEnd {
    fn accept(&mut self, record: &Record) -> io::Result<()> {
        let mut totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        match &record.event {
            RunEvent::RunStarted(header) => {
                if let Some(directory) = &header.directory {
                    (self.news)(RunNews::Started(PathBuf::from(directory)));
                }
            }
            RunEvent::IterationStarted { iteration, .. } => (self.news)(RunNews::Iteration(*iteration)),
            RunEvent::IterationEnded { usage, .. } => {
                totals.cost = add_cost(totals.cost, usage.cost_usd);
                if let Some(cost) = totals.cost {
                    (self.news)(RunNews::Cost(cost));
                }
            }
            RunEvent::Waiting {
                why: WaitReason::RateLimit,
                wait_ms,
                ..
            } => (self.news)(RunNews::Limited(Duration::from_millis(*wait_ms))),
            RunEvent::RunEnded { outcome, usage, .. } => {
                totals.outcome = Some(outcome.clone());
                totals.cost = usage.cost_usd.or(totals.cost);
            }
            _ => {}
        }
        Ok(())
    }
}

impl FrontEnd for TaskFrontEnd {
    fn interest(&self) -> Interest {
        Interest::ExceptOutput
    }
}
