//! One attempt at a task: its worktree, its prompt, its run, and the commit of its work.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::children::ChildProcesses;
use super::git::Repository;
use super::prompt::prompt;
use super::source::{self, SourceFormat, set_marks};
use super::step::{TaskEnd, TaskStart};
use super::task_front_end::{RunNews, TaskFrontEnd, TaskTotals};
use super::worktree::Worktrees;
use crate::agent;
use crate::config::CellLimits;
use crate::event::{RunLimit, RunOutcome, Usd};
use crate::files::{self, ReadRule};
use crate::policy::{CommitPolicy, Gate};
use crate::run::Host;
use crate::store::{RunEntry, RunState};
use crate::ui::{FrontEnd, PassedGates, run_verdict};

/// What an ordinary run of a task needs.
#[derive(Debug, Clone)]
pub struct TaskJob {
    /// The directory in which the agent runs.
    pub workspace: PathBuf,
    pub prompt: String,
    /// The gates of the task, in addition to those of the project.
    pub gates: Vec<Gate>,
    pub agent: Option<String>,
    pub model: Option<String>,
    pub limits: CellLimits,
    pub max_cost_usd: Option<f64>,
}

/// Why a run could not be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartError {
    /// The agent cannot be used.
    Agent(String),
    Other(String),
}

/// Starts ordinary runs. The command line implements it, because it loads the settings.
pub trait RunTask: Send + Sync {
    /// Runs a task to its end. The front end receives the records.
    fn run(&self, host: &Host, job: &TaskJob, front_end: Box<dyn FrontEnd>) -> Result<(), StartError>;
}

/// The committed work of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommittedWork {
    pub(super) branch: String,
    pub(super) commit: String,
}

/// How an attempt ended.
#[derive(Debug)]
pub(super) struct AttemptEnd {
    pub(super) end: TaskEnd,
    pub(super) cost_usd: f64,
    pub(super) work: Option<CommittedWork>,
}

/// Where an attempt takes place.
pub(super) enum Place {
    /// The user's workspace.
    InPlace(PathBuf),
    Worktree(Box<WorktreePlace>),
}

pub(super) struct WorktreePlace {
    pub(super) repository: Repository,
    pub(super) worktrees: Arc<Worktrees>,
    pub(super) name: String,
    pub(super) branch: String,
    /// The integration branch, and the task's branch without a number.
    pub(super) integration: String,
    /// The directory of the agent, relative to the top of the repository.
    pub(super) below: PathBuf,
    pub(super) commit: CommitPolicy,
    pub(super) co_author: Option<String>,
    /// The plan's file relative to the top of the repository, if it is tracked.
    pub(super) tracked: Option<(String, SourceFormat)>,
    /// The commit of the rejected attempt before this one.
    pub(super) rejected_commit: Option<String>,
}

impl WorktreePlace {
    fn head(&self, worktree: &Path) -> Result<String, String> {
        self.repository
            .head_of(worktree)
            .map_err(|error| error.to_string())
    }
}

/// One attempt at a task.
pub(super) struct Attempt {
    pub(super) start: TaskStart,
    pub(super) plan: String,
    pub(super) place: Place,
    /// The run of this attempt in an earlier process.
    pub(super) earlier_run: Option<PathBuf>,
    pub(super) run_task: Arc<dyn RunTask>,
    pub(super) children: Arc<ChildProcesses>,
}

impl Attempt {
    /// Runs the attempt to its end.
    pub(super) fn run(&self, host: &Host, news: Arc<dyn Fn(RunNews) + Send + Sync>) -> AttemptEnd {
        let totals = Arc::new(Mutex::new(TaskTotals::default()));
        let result = self.execute(host, news, &totals);
        let totals = totals.lock().unwrap_or_else(PoisonError::into_inner);
        let cost_usd = totals.cost.map_or(0.0, f64::from);
        let (end, work) = match result {
            Ok(work) => (TaskEnd::Verified, work),
            Err(end) => (end, None),
        };
        AttemptEnd { end, cost_usd, work }
    }

    fn execute(
        &self,
        host: &Host,
        news: Arc<dyn Fn(RunNews) + Send + Sync>,
        totals: &Arc<Mutex<TaskTotals>>,
    ) -> Result<Option<CommittedWork>, TaskEnd> {
        let workspace = self.workspace()?;
        if !self.is_complete_already() {
            let job = self.job(&workspace);
            let front_end = TaskFrontEnd::new(news, Arc::clone(totals));
            let started = self.run_task.run(host, &job, Box::new(front_end));
            started.map_err(|error| match error {
                _ if self.children.are_stopping() => TaskEnd::Stopped,
                StartError::Agent(reason) => TaskEnd::AgentUnusable { reason },
                StartError::Other(reason) => TaskEnd::Failed { reason },
            })?;
            let outcome = totals
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .outcome
                .clone();
            self.require_completion(outcome)?;
        }
        match &self.place {
            Place::InPlace(_) => Ok(None),
            Place::Worktree(place) => self
                .commit(place)
                .map(Some)
                .map_err(|reason| TaskEnd::Failed { reason }),
        }
    }

    /// A process that was killed after the end of the run has not committed its work.
    fn is_complete_already(&self) -> bool {
        let is_complete = |run: &PathBuf| match RunEntry::read(run).state {
            RunState::Ended(end) => matches!(end.outcome, RunOutcome::Complete { .. }),
            _ => false,
        };
        matches!(self.place, Place::Worktree(_)) && self.earlier_run.as_ref().is_some_and(is_complete)
    }

    fn workspace(&self) -> Result<PathBuf, TaskEnd> {
        let place = match &self.place {
            Place::InPlace(workspace) => return Ok(workspace.clone()),
            Place::Worktree(place) => place,
        };
        let base = place
            .repository
            .commit_of(&format!("refs/heads/{}", place.integration));
        let base = base.ok_or_else(|| TaskEnd::Failed {
            reason: format!("the branch {} does not exist any more", place.integration),
        })?;
        let prepared = place
            .worktrees
            .prepare(&place.name, Some(&place.branch), &base, &self.children);
        let path = prepared.map_err(|reason| match self.children.are_stopping() {
            true => TaskEnd::Stopped,
            false => TaskEnd::Failed { reason },
        })?;
        Ok(path.join(&place.below))
    }

    fn job(&self, workspace: &Path) -> TaskJob {
        let task = &self.start.task;
        let conflict = match &self.place {
            Place::InPlace(_) => None,
            Place::Worktree(place) => place
                .rejected_commit
                .as_ref()
                .map(|commit| Diffs::of(place, commit)),
        };
        TaskJob {
            workspace: workspace.to_owned(),
            prompt: prompt(
                &self.start,
                &self.plan,
                conflict.as_ref(),
                self.earlier_run.is_some(),
            ),
            gates: task_gates(&task.gates),
            agent: task.agent.clone(),
            model: task.model.clone(),
            limits: task.limits,
            max_cost_usd: self.start.max_cost_usd,
        }
    }

    fn require_completion(&self, outcome: Option<RunOutcome>) -> Result<(), TaskEnd> {
        let task_limit = self.start.task.limits.max_cost_usd;
        match outcome {
            Some(RunOutcome::Complete { .. }) => Ok(()),
            Some(RunOutcome::Interrupted { .. }) => Err(TaskEnd::Stopped),
            Some(RunOutcome::LimitReached {
                limit: RunLimit::Cost { .. },
            }) if self.start.max_cost_usd.is_some() && self.start.max_cost_usd != task_limit => {
                Err(TaskEnd::OutOfBudget)
            }
            Some(RunOutcome::AuthRequired { message }) => Err(TaskEnd::AgentUnusable { reason: message }),
            Some(outcome) => Err(TaskEnd::Failed {
                reason: run_verdict(&outcome, &PassedGates::default()).sentence,
            }),
            None => Err(TaskEnd::Failed {
                reason: "the run ended without a result".to_owned(),
            }),
        }
    }

    /// Commits the work on the task's branch, according to the commit policy.
    fn commit(&self, place: &WorktreePlace) -> Result<CommittedWork, String> {
        let worktree = place.worktrees.path(&place.name);
        let repository = &place.repository;
        self.restore_marks(place, &worktree)?;
        let has_changes = repository
            .has_changes(&worktree)
            .map_err(|error| error.to_string())?;
        match (place.commit, has_changes) {
            (CommitPolicy::Agent, true) => {
                return Err(
                    "the agent left uncommitted changes, and `worktree.commit` is `agent`".to_owned(),
                );
            }
            (_, true) => repository
                .commit_all(&worktree, &self.message(place))
                .map_err(|error| error.to_string())?,
            (_, false) => {}
        }
        let mut commit = repository.head_of(&worktree).map_err(|error| error.to_string())?;
        if place.commit == CommitPolicy::Squash
            && let Some(base) = repository.merge_base(&commit, &format!("refs/heads/{}", place.integration))
            && base != commit
        {
            commit = repository
                .squash(&worktree, &base, &self.message(place))
                .map_err(|error| error.to_string())?;
        }
        // The agent may have switched to another branch; its commits must stay reachable.
        let branch = format!("refs/heads/{}", place.branch);
        if repository.commit_of(&branch).as_ref() != Some(&commit) {
            let old = repository.commit_of(&branch).unwrap_or_default();
            repository
                .move_branch(&place.branch, &commit, &old)
                .map_err(|error| error.to_string())?;
        }
        Ok(CommittedWork {
            branch: place.branch.clone(),
            commit,
        })
    }

    /// Restores the marks of the plan in the worktree. Those of the agent do not count, and they would conflict with those
    /// that ralph sets on the integration branch.
    fn restore_marks(&self, place: &WorktreePlace, worktree: &Path) -> Result<(), String> {
        let Some((path, format)) = &place.tracked else {
            return Ok(());
        };
        let repository = &place.repository;
        let parse = |text: &str| source::read(text, *format, path, &agent::names()).ok();
        let integration = format!("refs/heads/{}", place.integration);
        let base = repository
            .merge_base(&place.head(worktree)?, &integration)
            .unwrap_or_default();
        let Some(done) = repository.file_in(&base, path).and_then(|text| parse(&text)) else {
            return Ok(());
        };
        let done = done
            .into_iter()
            .filter(|task| task.done)
            .map(|task| task.task.id)
            .collect();
        let restored = |text: &str| parse(text).map(|tasks| set_marks(text, &tasks, &done));
        let file = worktree.join(path);
        if let Ok(text) = files::read_text(&file, ReadRule::PROMPT)
            && let Some(restored) = restored(&text).filter(|restored| *restored != text)
        {
            std::fs::write(&file, restored)
                .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
        }
        // The agent may have committed its marks.
        let committed = repository.file_in(&place.head(worktree)?, path);
        let is_marked =
            committed.is_some_and(|text| restored(&text).is_some_and(|restored| restored != text));
        if is_marked {
            let message = format!(
                "Restore the marks of {path}\n\n{}",
                trailers(&self.start.task.id, None)
            );
            repository
                .commit_file(worktree, path, &message)
                .map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn message(&self, place: &WorktreePlace) -> String {
        let task = &self.start.task;
        let body = if task.body.is_empty() {
            String::new()
        } else {
            format!("{}\n\n", task.body)
        };
        format!(
            "{}\n\n{body}{}",
            task.title,
            trailers(&task.id, place.co_author.as_deref())
        )
    }
}

/// The trailers of a commit that ralph creates for a task.
pub(super) fn trailers(task: &str, co_author: Option<&str>) -> String {
    let mut trailers = format!("Ralph-Task: {task}\n");
    if let Some(author) = co_author {
        trailers.push_str(&format!("Co-authored-by: {author}\n"));
    }
    trailers
}

/// The gates of a task.
pub(super) fn task_gates(commands: &[String]) -> Vec<Gate> {
    let gates = commands
        .iter()
        .enumerate()
        .map(|(index, command)| Gate::new(format!("task gate {}", index + 1), command));
    gates.collect()
}

/// The changes of a rejected attempt, and those that were merged in the meantime.
pub(super) struct Diffs {
    pub(super) own: String,
    pub(super) others: String,
}

impl Diffs {
    fn of(place: &WorktreePlace, rejected: &str) -> Self {
        let repository = &place.repository;
        let integration = format!("refs/heads/{}", place.integration);
        let base = repository.merge_base(rejected, &integration).unwrap_or_default();
        let diff = |to: &str| repository.diff(&base, to).unwrap_or_default();
        Self {
            own: diff(rejected),
            others: diff(&integration),
        }
    }
}

/// The cost of a run so far.
pub(super) fn add_cost(total: Option<Usd>, cost: Option<Usd>) -> Option<Usd> {
    match (total, cost) {
        (Some(total), Some(cost)) => Some(total.saturating_add(cost)),
        (total, cost) => total.or(cost),
    }
}
