//! The state of a plan, from its journal: for `ralph plan status` and for commands to a plan.

use std::path::PathBuf;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::error::PlanError;
use super::request::PlanCommandFile;
use super::screen::{park_text, rejection_text};
use super::step::{
    Integration, ListedTask, Plan, PlanCommand, PlanEvent, PlanHeader, PlanOptions, PlanOutcome, PlanRecord,
    ReadTask, TaskState,
};
use super::task::Task;
use crate::store::{PlanFiles, Project};
use crate::ui::{Cell, Table, Terminal, Tone, units};

/// The state of a plan.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PlanStatus {
    plan: String,
    source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    pub is_running: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<PlanOutcome>,
    cost_usd: f64,
    tasks: Vec<TaskStatus>,
}

/// The state of a task.
#[derive(Debug, Serialize, JsonSchema)]
struct TaskStatus {
    id: String,
    title: String,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    attempt: u64,
    cost_usd: f64,
    /// The directory of the last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
}

/// A plan of this project.
pub struct StoredPlan {
    name: String,
    files: PlanFiles,
    records: Vec<PlanRecord>,
}

impl StoredPlan {
    /// The plan with this name or source; without one, the plan that was started last.
    pub fn find(project: &Project, name: Option<&str>) -> Result<Self, PlanError> {
        let names = PlanFiles::names(project);
        let wanted = match name {
            None => names.first().cloned().ok_or(PlanError::NoPlan)?,
            Some(name) => {
                let by_source = super::Source::of(name, project.root()).plan_name();
                let found = names.iter().find(|known| *known == name || **known == by_source);
                found.cloned().ok_or_else(|| PlanError::NothingToResume {
                    plan: name.to_owned(),
                })?
            }
        };
        let files = PlanFiles::newest(project, &wanted).ok_or(PlanError::NoPlan)?;
        let records = files.records()?;
        Ok(Self {
            name: wanted,
            files,
            records,
        })
    }

    /// All plans of a project, the most recently started first, without those that cannot be read.
    pub fn all(project: &Project) -> Vec<Self> {
        let names = PlanFiles::names(project);
        let plans = names.iter().map(|name| Self::find(project, Some(name)));
        plans.filter_map(Result::ok).collect()
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The times of the first and the last record.
    pub fn times(&self) -> (Option<Timestamp>, Option<Timestamp>) {
        let at = |record: Option<&PlanRecord>| record.map(|record| record.at);
        (at(self.records.first()), at(self.records.last()))
    }

    /// The last records of the journal as JSON, oldest first, without the list of tasks.
    pub fn last_records(&self, limit: usize) -> Vec<serde_json::Value> {
        let is_shown = |record: &&PlanRecord| !matches!(record.event, PlanEvent::TasksRead { .. });
        let newest = self.records.iter().rev().filter(is_shown).take(limit);
        let mut values: Vec<_> = newest.flat_map(serde_json::to_value).collect();
        values.reverse();
        values
    }

    fn header(&self) -> Option<&PlanHeader> {
        self.records.iter().find_map(|record| match &record.event {
            PlanEvent::PlanStarted(header) => Some(&**header),
            _ => None,
        })
    }

    /// The source as given on the command line.
    pub fn source(&self) -> Option<&str> {
        self.header().map(|header| header.source.as_str())
    }

    /// The number of parallel tasks; `None` if the plan runs in place.
    pub fn jobs(&self) -> Option<usize> {
        let header = self.header()?;
        header.branch.as_ref().map(|_| header.jobs)
    }

    /// The tasks that were selected, and the cost limit.
    pub fn limits(&self) -> (Vec<String>, Option<f64>) {
        let header = self.header();
        header
            .map(|header| (header.only.clone(), header.max_cost_usd))
            .unwrap_or_default()
    }

    pub fn is_running(&self) -> bool {
        self.files.holder().is_some()
    }

    /// The directory of the task's last run. `task` may be a prefix that only one task has.
    pub fn run_of(&self, task: &str) -> Result<PathBuf, PlanError> {
        let id = self.task_id(task)?;
        let runs = self.records.iter().rev().find_map(|record| match &record.event {
            PlanEvent::TaskRun { task, run, .. } if *task == id => Some(PathBuf::from(run)),
            _ => None,
        });
        runs.ok_or(PlanError::NoRun { task: id })
    }

    /// The id of a task, which may be shortened.
    pub fn task_id(&self, name: &str) -> Result<String, PlanError> {
        let ids = self.ids();
        let found: Vec<&String> = match ids.iter().find(|id| *id == name) {
            Some(id) => vec![id],
            None => ids
                .iter()
                .filter(|id| !name.is_empty() && id.starts_with(name))
                .collect(),
        };
        match found.as_slice() {
            [id] => Ok((*id).clone()),
            _ => Err(PlanError::UnknownTask {
                name: name.to_owned(),
                known: ids,
            }),
        }
    }

    fn ids(&self) -> Vec<String> {
        self.listed().into_iter().map(|task| task.id).collect()
    }

    /// The tasks as last read.
    fn listed(&self) -> Vec<ListedTask> {
        let read = self.records.iter().rev().find_map(|record| match &record.event {
            PlanEvent::TasksRead { tasks } => Some(tasks.clone()),
            _ => None,
        });
        read.unwrap_or_default()
    }

    /// Adds a command to the plan's inbox.
    pub(crate) fn send(&self, command: PlanCommand) -> Result<(), PlanError> {
        let now = Timestamp::now();
        let id = format!("cli-{}-{}", now.as_nanosecond(), std::process::id());
        Ok(self.files.put_command(&PlanCommandFile { id, command }, now)?)
    }

    pub fn retry(&self, task: &str) -> Result<String, PlanError> {
        let task = self.task_id(task)?;
        self.send(PlanCommand::Retry { task: task.clone() })?;
        Ok(task)
    }

    pub fn skip(&self, task: &str) -> Result<String, PlanError> {
        let task = self.task_id(task)?;
        self.send(PlanCommand::Skip { task: task.clone() })?;
        Ok(task)
    }

    /// Stops a task, or the whole plan.
    pub fn stop(&self, task: Option<&str>) -> Result<Option<String>, PlanError> {
        let task = task.map(|task| self.task_id(task)).transpose()?;
        self.send(PlanCommand::Stop { task: task.clone() })?;
        Ok(task)
    }

    pub fn status(&self) -> PlanStatus {
        let header = self.header();
        let integration = match header.and_then(|header| header.branch.as_ref()) {
            None => Integration::InPlace,
            Some(_) => Integration::MergeQueue,
        };
        let options = PlanOptions {
            jobs: 0,
            integration,
            max_cost_usd: None,
            only: header
                .map(|header| header.only.iter().cloned().collect())
                .unwrap_or_default(),
        };
        let tasks = self.tasks(header);
        let plan = Plan::restored(options, tasks, self.records.iter().map(|record| &record.event));
        let is_running = self.is_running();
        let outcome = self.records.iter().rev().find_map(|record| match &record.event {
            PlanEvent::PlanEnded { outcome } => Some(Some(outcome.clone())),
            PlanEvent::PlanStarted(_) | PlanEvent::PlanResumed => Some(None),
            _ => None,
        });
        PlanStatus {
            plan: self.name.clone(),
            source: header.map(|header| header.source.clone()).unwrap_or_default(),
            branch: header.and_then(|header| header.branch.clone()),
            is_running,
            outcome: outcome.flatten(),
            cost_usd: plan.spent(),
            tasks: plan
                .tasks()
                .iter()
                .map(|task| self.task_status(&task.task, &plan, is_running))
                .collect(),
        }
    }

    /// The tasks that the journal contains.
    fn tasks(&self, header: Option<&PlanHeader>) -> Vec<ReadTask> {
        let done = |id: &String| header.is_some_and(|header| header.done_before.contains(id));
        let tasks = self
            .listed()
            .into_iter()
            .map(|ListedTask { id, title }| ReadTask {
                done: done(&id),
                task: Task {
                    id,
                    title,
                    ..Task::default()
                },
            });
        tasks.collect()
    }

    fn task_status(&self, task: &Task, plan: &Plan, is_running: bool) -> TaskStatus {
        let (mut run, mut commit, mut is_open_run) = (None, None, false);
        for record in &self.records {
            match &record.event {
                PlanEvent::TaskChosen { task: id, .. } if *id == task.id => is_open_run = true,
                PlanEvent::TaskRun {
                    task: id,
                    run: directory,
                    ..
                } if *id == task.id => {
                    run = Some(PathBuf::from(directory));
                }
                PlanEvent::TaskMerged {
                    task: id,
                    commit: merged,
                } if *id == task.id => commit = Some(merged.clone()),
                PlanEvent::TaskStopped { task: id, .. } | PlanEvent::TaskVerified { task: id, .. }
                    if *id == task.id =>
                {
                    is_open_run = false;
                }
                PlanEvent::PlanResumed => is_open_run = false,
                _ => {}
            }
        }
        let planned = plan.task(&task.id);
        let rejection = planned.and_then(|task| task.rejection.as_ref());
        let (state, why) = match planned.map(|task| &task.state) {
            Some(TaskState::Waiting) if is_open_run && is_running => {
                ("running", rejection.map(rejection_text))
            }
            Some(TaskState::Waiting) if is_open_run => ("interrupted", None),
            Some(TaskState::Waiting) => ("waiting", rejection.map(rejection_text)),
            Some(TaskState::Running) => ("running", None),
            Some(TaskState::Verified | TaskState::Merging) => ("merging", None),
            Some(TaskState::Done) => ("done", None),
            Some(TaskState::Parked { why }) => ("parked", Some(park_text(why))),
            Some(TaskState::Skipped) => ("skipped", None),
            Some(TaskState::Removed) | None => ("removed", None),
        };
        TaskStatus {
            id: task.id.clone(),
            title: task.title.clone(),
            state,
            why,
            attempt: planned.map_or(0, |task| task.attempts),
            cost_usd: planned.map_or(0.0, |task| task.cost_usd),
            run,
            commit,
        }
    }
}

impl PlanStatus {
    /// The status as text.
    pub fn text(&self, terminal: &Terminal) -> String {
        let mut table = Table::new(["", "TASK", "STATE", "ATTEMPT", "COST", "TITLE"]);
        for task in &self.tasks {
            let (mark, tone) = match task.state {
                "done" => ("✓", Tone::Good),
                "parked" => ("✗", Tone::Bad),
                "running" | "merging" => ("▸", Tone::Accent),
                _ => ("·", Tone::Faint),
            };
            let state = match &task.why {
                Some(why) => format!("{}: {why}", task.state),
                None => task.state.to_owned(),
            };
            let attempt = if task.attempt > 0 {
                task.attempt.to_string()
            } else {
                String::new()
            };
            let cost = if task.cost_usd > 0.0 {
                units::dollars(task.cost_usd)
            } else {
                String::new()
            };
            table.row([
                Cell::new(mark, tone),
                Cell::new(&task.id, Tone::Accent),
                Cell::new(&state, tone),
                Cell::from(attempt),
                Cell::from(cost),
                Cell::from(task.title.as_str()),
            ]);
        }
        let done = self.tasks.iter().filter(|task| task.state == "done").count();
        let state = match (&self.outcome, self.is_running) {
            (_, true) => "running",
            (Some(PlanOutcome::Complete), false) => "complete",
            (_, false) => "not running",
        };
        let branch = self
            .branch
            .as_ref()
            .map(|branch| format!(" · branch {branch}"))
            .unwrap_or_default();
        let cost = if self.cost_usd > 0.0 {
            format!(" · {}", units::dollars(self.cost_usd))
        } else {
            String::new()
        };
        let count = units::count(self.tasks.len() as u64, "task");
        format!(
            "{} · {state} · {done} of {count} done{cost}{branch}\n\n{}",
            self.source,
            terminal.render(&table)
        )
    }
}
