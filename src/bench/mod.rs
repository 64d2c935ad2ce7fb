//! Runs each task of a file with each agent in its own workspace, using the real loop, and verifies the result with the
//! task's command. All files are kept, and an interrupted bench can be resumed.

mod cell;
mod error;
mod layout;
mod list;
mod log;
mod plan;
mod report;
mod results;
mod scheduler;
mod stats;

pub use error::BenchError;
pub use list::{bench_rows, bench_table};
pub use plan::{BenchOptions, BenchPlan, Workspaces, commands_to_run, find_tasks_file};
pub use report::BenchReport;
pub use results::BenchHistory;
pub use scheduler::StopReason;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;

use crate::agent::Probe;
use crate::config::FileCommands;
use crate::run::Host;
use crate::store::{BenchFiles, state_directory};
use crate::ui::{Terminal, Tone, units};

use scheduler::Scheduler;

/// The plan of a bench and its files.
#[derive(Debug)]
pub struct Bench {
    files: BenchFiles,
    plan: BenchPlan,
}

/// How a bench ended, and everything that it has recorded.
#[derive(Debug)]
pub struct BenchEnd {
    pub stop_reason: StopReason,
    pub history: BenchHistory,
}

impl Bench {
    /// Plans a bench of the tasks in `file` and creates its directory in `benches`.
    pub fn create(
        options: &BenchOptions,
        file: &Path,
        benches: &Path,
        probe: &Arc<dyn Probe>,
    ) -> Result<Self, BenchError> {
        let plan = BenchPlan::new(options, file, probe)?;
        let files = BenchFiles::create(benches, plan.began)?;
        Ok(Self { files, plan })
    }

    /// Opens the bench with this name: `latest`, its id, a prefix of the id, or its directory.
    pub fn open(benches: &Path, name: &str) -> Result<Self, BenchError> {
        Self::load(BenchFiles::find(benches, name)?)
    }

    /// Opens the newest bench of this tasks file.
    pub fn newest_of(tasks: &Path, benches: &Path) -> Result<Self, BenchError> {
        let mut all = BenchFiles::all(benches).into_iter().rev();
        let found = all.find(|files| {
            files
                .read_plan()
                .is_ok_and(|plan: BenchPlan| plan.tasks_file == tasks)
        });
        let path = tasks.to_owned();
        Self::load(found.ok_or(BenchError::NoBenchForTasks { path })?)
    }

    fn load(files: BenchFiles) -> Result<Self, BenchError> {
        #[derive(serde::Deserialize)]
        struct Versioned {
            version: u32,
        }

        let Versioned { version } = files.read_plan()?;
        if version > plan::VERSION {
            let id = files.id();
            return Err(BenchError::PlanTooNew { id, version });
        }
        let plan = files.read_plan()?;
        Ok(Self { files, plan })
    }

    /// Returns the commands of the stored plan, which decide the verdicts.
    pub fn commands_to_run(&self) -> FileCommands {
        FileCommands {
            file: self.files.plan_path(),
            text: None,
            commands: self.plan.tasks.iter().map(|task| task.verify.clone()).collect(),
        }
    }

    /// Overrides the plan with the options given when the bench is resumed.
    pub fn override_with(&mut self, options: &BenchOptions) {
        self.plan.override_with(options);
    }

    /// The cost limit of the bench in dollars; 0 without a limit.
    pub fn max_cost(&self) -> f64 {
        self.plan.max_cost_usd.unwrap_or(0.0)
    }

    /// Reads what the bench has recorded so far.
    pub fn history(&self) -> Result<BenchHistory, BenchError> {
        Ok(BenchHistory::of(self.files.entries()?))
    }

    /// Runs all cells that have no verdict yet.
    pub fn run(&self, host: &Host, terminal: &Terminal) -> Result<BenchEnd, BenchError> {
        let _lock = self.files.lock(Timestamp::now())?;
        self.files.write_plan(&self.plan)?;
        let history = self.history()?;
        let live_lines = terminal.live_lines();
        let mut scheduler = Scheduler::new(host, self, &history, live_lines);
        self.announce(&history, terminal)?;
        let stop_reason = scheduler.run()?;
        let history = self.history()?;
        Ok(BenchEnd { stop_reason, history })
    }

    pub fn report<'a>(&'a self, history: &'a BenchHistory) -> BenchReport<'a> {
        let spent = self.total_cost(history);
        BenchReport::of(&self.plan, self.files.directory(), history, spent)
    }

    /// Returns the cost of all attempts, including interrupted ones that have a journal.
    fn total_cost(&self, history: &BenchHistory) -> f64 {
        let interrupted = history.interrupted.iter();
        let interrupted_cost = interrupted
            .filter_map(|started| layout::cost_in(&self.files.directory().join(&started.directory)));
        history.spent + interrupted_cost.sum::<f64>()
    }

    fn announce(&self, history: &BenchHistory, terminal: &Terminal) -> Result<(), BenchError> {
        let plan = &self.plan;
        let agents: Vec<&str> = plan.agents.iter().map(|agent| agent.name.as_str()).collect();
        let all = plan.cells();
        let settled = all.iter().filter(|cell| history.is_settled(cell)).count();
        let done = if settled > 0 {
            format!("; {settled} of {} already done", all.len())
        } else {
            String::new()
        };
        let line = format!(
            "Bench {}: {} × {} ({}) × {}{done}",
            self.files.id(),
            units::count(plan.tasks.len() as u64, "task"),
            units::count(plan.agents.len() as u64, "agent"),
            agents.join(", "),
            units::count(plan.repeat, "repeat"),
        );
        let mut live_lines = terminal.live_lines();
        live_lines
            .print_line("▸", Tone::Accent, &line)
            .map_err(BenchError::Output)
    }
}

/// Returns the default directory for benches: outside of any project, so that agents see no files above their workspace.
pub fn default_directory() -> Result<PathBuf, BenchError> {
    Ok(state_directory()?.path().join("bench"))
}
