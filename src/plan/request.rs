//! Requests of the user to run a plan: starting and resuming it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::driver::{DriverParts, History, PlanDriver};
use super::error::PlanError;
use super::git::Repository;
use super::integration::{Integrated, below, branch_of, tracked_file};
use super::job::RunTask;
use super::merge::{MergeStyle, relative_gate};
use super::plan_file::{NewGates, PlanFile};
use super::read::PlanText;
use super::screen::PlanScreen;
use super::source::{Source, close_command};
use super::step::{Integration, PlanCommand, PlanEvent, PlanHeader, PlanOptions, PlanOutcome, PlanRecord};
use super::worktree::Worktrees;
use crate::event::Interrupt;
use crate::policy::{CommitPolicy, Gate, Worktree};
use crate::run::Host;
use crate::store::{PlanFiles, Project};

/// The version of the journal.
const VERSION: u32 = 1;

/// A command in the inbox of a plan.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PlanCommandFile {
    pub(crate) id: String,
    #[serde(flatten)]
    pub(crate) command: PlanCommand,
}

/// Whether a plan is started or resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanStart {
    New,
    Resume,
}

/// A request to run a plan.
pub struct PlanRequest {
    pub source: Source,
    pub text: PlanText,
    /// As given on the command line.
    pub shown_source: String,
    pub project: Project,
    /// The directory in which agents run.
    pub workspace: PathBuf,
    /// `None` runs the tasks one after the other in the workspace.
    pub jobs: Option<usize>,
    pub only: Vec<String>,
    pub max_cost_usd: Option<f64>,
    pub start: PlanStart,
    pub new_gates: NewGates,
    /// Close the tasks in their tracker.
    pub close: bool,
    /// Merge the result into the user's branch.
    pub merge: bool,
    pub gates: Vec<Gate>,
    pub worktree: Worktree,
    pub git: Option<PathBuf>,
    pub run_task: Arc<dyn RunTask>,
}

/// How a plan ended, for the exit code and the last lines.
#[derive(Debug)]
pub struct PlanEnd {
    pub(crate) outcome: PlanOutcome,
    /// The integration branch with new work, and whether the user's branch contains it now.
    pub(crate) branch: Option<(String, Merge)>,
    pub(crate) has_checkout_changed: bool,
}

/// Whether the user's branch contains the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Merge {
    Open,
    Merged,
}

impl PlanRequest {
    pub(super) fn options(&self) -> PlanOptions {
        PlanOptions {
            jobs: self.jobs.unwrap_or(1),
            integration: match self.jobs {
                None => Integration::InPlace,
                Some(_) => Integration::MergeQueue,
            },
            max_cost_usd: self.max_cost_usd,
            only: self.only.iter().cloned().collect(),
        }
    }

    pub(super) fn close_command(&self, id: &str) -> Option<Vec<String>> {
        match &self.source {
            Source::Command(command) if self.close => close_command(command, id),
            _ => None,
        }
    }

    /// Runs the plan to its end.
    pub fn run(&self, host: &Host, screen: PlanScreen) -> Result<PlanEnd, PlanError> {
        let name = self.source.plan_name();
        self.check_only()?;
        let now = Timestamp::now();
        let (files, mut history) = self.files(&name, now)?;
        let _lock = files.lock(now)?;
        let header = history.header().cloned();
        let integrated = self.integrated(&name, header.as_ref(), host)?;
        let mut plan_file = self.plan_file(&name, header.as_ref(), host)?;
        let mut first = self.first_events(&name, integrated.as_ref(), &plan_file, header.as_ref());
        if let Some(integrated) = &integrated {
            first.extend(history.add_merged_without_record(integrated, now));
        }
        if integrated
            .as_ref()
            .is_none_or(|integrated| !integrated.tracks_plan())
        {
            plan_file
                .mark(&history.done())
                .map_err(|why| PlanError::Mark { why })?;
        }
        let before = integrated
            .as_ref()
            .and_then(|integrated| integrated.repository.checkout_state());
        let parts = DriverParts {
            files,
            integrated,
            plan_file,
            screen,
        };
        let (outcome, integrated) = PlanDriver::new(host, self, parts, &history).run(first)?;
        let after = integrated
            .as_ref()
            .and_then(|integrated| integrated.repository.checkout_state());
        Ok(PlanEnd {
            branch: self.conclude(&outcome, integrated.as_ref())?,
            has_checkout_changed: after != before,
            outcome,
        })
    }

    /// The files of a new execution, or those of the newest one with its history.
    fn files(&self, name: &str, now: Timestamp) -> Result<(PlanFiles, History), PlanError> {
        if self.start == PlanStart::New {
            let files = PlanFiles::create(&self.project, name, now)?;
            return Ok((files, History::default()));
        }
        let plan = name.to_owned();
        let files = PlanFiles::newest(&self.project, name).ok_or(PlanError::NothingToResume { plan })?;
        let records = files.records()?;
        Ok((files, History { records }))
    }

    fn plan_file(&self, name: &str, header: Option<&PlanHeader>, host: &Host) -> Result<PlanFile, PlanError> {
        let done_before = match header {
            Some(header) => Some(header.done_before.iter().cloned().collect()),
            None => self.done_before_interruption(name)?,
        };
        let place = (host.supervisors(), self.workspace.as_path());
        let (source, text) = (self.source.clone(), self.text.clone());
        Ok(PlanFile::new(source, text, done_before, self.new_gates, place))
    }

    /// If the last execution was killed while it ran in place, its agents may have marked tasks, and only the tasks that its
    /// journal knows count as done.
    fn done_before_interruption(&self, name: &str) -> Result<Option<BTreeSet<String>>, PlanError> {
        let Some(files) = PlanFiles::newest(&self.project, name) else {
            return Ok(None);
        };
        let history = History {
            records: files.records()?,
        };
        let has_ended = history
            .records
            .iter()
            .rev()
            .find_map(|record| match &record.event {
                PlanEvent::PlanEnded { .. } => Some(true),
                PlanEvent::PlanStarted(_) | PlanEvent::PlanResumed => Some(false),
                _ => None,
            });
        let header = history
            .header()
            .filter(|header| header.branch.is_none() && has_ended == Some(false));
        Ok(header.map(|header| {
            let mut done = history.done();
            done.extend(header.done_before.iter().cloned());
            done
        }))
    }

    /// Merges the result if requested.
    fn conclude(
        &self,
        outcome: &PlanOutcome,
        integrated: Option<&Integrated>,
    ) -> Result<Option<(String, Merge)>, PlanError> {
        let Some(integrated) = integrated else {
            return Ok(None);
        };
        let repository = &integrated.repository;
        if *outcome == PlanOutcome::Complete {
            integrated.finish();
        }
        let head = format!("refs/heads/{}", integrated.branch);
        if repository.is_ancestor(&head, "HEAD") {
            return Ok(None);
        }
        if !self.merge || *outcome != PlanOutcome::Complete {
            return Ok(Some((integrated.branch.clone(), Merge::Open)));
        }
        repository.merge_into_checkout(&integrated.branch)?;
        Ok(Some((integrated.branch.clone(), Merge::Merged)))
    }

    /// A task that is selected must not need one that is neither selected nor done.
    fn check_only(&self) -> Result<(), PlanError> {
        let ids: BTreeSet<&str> = self.text.tasks.iter().map(|task| task.task.id.as_str()).collect();
        match self.only.iter().find(|id| !ids.contains(id.as_str())) {
            None => Ok(()),
            Some(id) => Err(PlanError::UnknownTask {
                name: id.clone(),
                known: ids.into_iter().map(str::to_owned).collect(),
            }),
        }
    }

    fn integrated(
        &self,
        name: &str,
        header: Option<&PlanHeader>,
        host: &Host,
    ) -> Result<Option<Integrated>, PlanError> {
        if self.jobs.is_none() {
            return Ok(None);
        }
        let git = self.git.clone().ok_or(PlanError::NoRepository)?;
        let repository = Repository::open(git, host.supervisors().clone(), &self.workspace);
        let repository = repository.ok_or(PlanError::NoRepository)?;
        let head = repository.commit_of("HEAD").ok_or(PlanError::NoCommit)?;
        let project = self
            .project
            .directory()
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let worktrees = Worktrees::new(repository.clone(), &project, name, self.worktree.setup.clone())
            .map_err(PlanError::Worktrees)?;
        worktrees.remove_incomplete();
        let branch = branch_of(name);
        let integrated = Integrated {
            worktrees: Arc::new(worktrees),
            base: header
                .and_then(|header| header.base.clone())
                .unwrap_or_else(|| head.clone()),
            below: below(&self.workspace, &repository),
            gates: self
                .gates
                .iter()
                .map(|gate| relative_gate(gate, repository.root(), &self.workspace))
                .collect(),
            style: match self.worktree.commit {
                CommitPolicy::Squash => MergeStyle::Squash,
                CommitPolicy::Agent | CommitPolicy::Ralph => MergeStyle::Merge,
            },
            tracked: tracked_file(&self.source, &repository),
            repository,
            branch,
        };
        if header.is_none() {
            let name = format!("refs/heads/{}", integrated.branch);
            let is_unmerged = integrated
                .repository
                .commit_of(&name)
                .is_some_and(|_| !integrated.repository.is_ancestor(&name, "HEAD"));
            if is_unmerged {
                let branch = integrated.branch;
                return Err(PlanError::Unmerged { branch });
            }
            integrated.start_over()?;
        }
        Ok(Some(integrated))
    }

    fn first_events(
        &self,
        name: &str,
        integrated: Option<&Integrated>,
        plan_file: &PlanFile,
        header: Option<&PlanHeader>,
    ) -> Vec<PlanEvent> {
        if header.is_some() {
            return vec![PlanEvent::PlanResumed];
        }
        vec![PlanEvent::PlanStarted(Box::new(PlanHeader {
            version: VERSION,
            ralph: env!("CARGO_PKG_VERSION").to_owned(),
            plan: name.to_owned(),
            source: self.shown_source.clone(),
            root: self.project.root().display().to_string(),
            jobs: self.jobs.unwrap_or(1),
            branch: integrated.map(|integrated| integrated.branch.clone()),
            base: integrated.map(|integrated| integrated.base.clone()),
            done_before: plan_file.done_before().iter().cloned().collect(),
            max_cost_usd: self.max_cost_usd,
            only: self.only.clone(),
        }))]
    }
}

impl History {
    pub(super) fn header(&self) -> Option<&PlanHeader> {
        self.records.iter().find_map(|record| match &record.event {
            PlanEvent::PlanStarted(header) => Some(&**header),
            _ => None,
        })
    }

    fn done(&self) -> BTreeSet<String> {
        let done = self.records.iter().filter_map(|record| match &record.event {
            PlanEvent::TaskDone { task } => Some(task.clone()),
            _ => None,
        });
        done.collect()
    }

    /// Adds the events of tasks whose merge was completed by a process that was killed before it could record it.
    fn add_merged_without_record(&mut self, integrated: &Integrated, at: Timestamp) -> Vec<PlanEvent> {
        let mut done = self.done();
        let head = format!("refs/heads/{}", integrated.branch);
        let mut events = Vec::new();
        for record in &self.records {
            let PlanEvent::MergePrepared { tasks, commit, .. } = &record.event else {
                continue;
            };
            if tasks.iter().all(|task| done.contains(task))
                || !integrated.repository.is_ancestor(commit, &head)
            {
                continue;
            }
            for task in tasks {
                if done.insert(task.clone()) {
                    let (task, commit) = (task.clone(), commit.clone());
                    events.push(PlanEvent::TaskMerged {
                        task: task.clone(),
                        commit,
                    });
                    events.push(PlanEvent::TaskDone { task });
                }
            }
        }
        let seq = self.records.last().map_or(0, |record| record.seq);
        let records = events.iter().cloned().map(|event| PlanRecord { seq, at, event });
        self.records.extend(records);
        events
    }
}

impl PlanEnd {
    pub fn is_complete(&self) -> bool {
        self.outcome == PlanOutcome::Complete
    }

    pub fn is_out_of_budget(&self) -> bool {
        self.outcome == PlanOutcome::OutOfBudget
    }

    pub fn interrupt(&self) -> Option<Interrupt> {
        match self.outcome {
            PlanOutcome::Interrupted { by } => Some(by),
            PlanOutcome::Complete | PlanOutcome::Incomplete | PlanOutcome::OutOfBudget => None,
        }
    }

    /// What the user can do now.
    pub fn next_step(&self) -> Option<String> {
        let take = match &self.branch {
            Some((branch, Merge::Merged)) => Some(format!("Your branch contains the work of {branch}.")),
            Some((branch, Merge::Open)) => Some(format!("To take the result: git merge {branch}")),
            None => None,
        };
        let resume = match self.outcome {
            PlanOutcome::Complete => None,
            PlanOutcome::Incomplete => {
                Some("To run a parked task again: ralph plan retry TASK, then ralph plan run --continue")
            }
            PlanOutcome::OutOfBudget => {
                Some("To resume with a higher limit: ralph plan run --continue --max-cost USD")
            }
            PlanOutcome::Interrupted { .. } => Some("To resume: ralph plan run --continue"),
        };
        let changed = self.has_checkout_changed.then(|| {
            "Your checkout changed while the plan was running; the plan did not use these changes.".to_owned()
        });
        let take = changed.into_iter().chain(take);
        let lines: Vec<String> = take.chain(resume.map(str::to_owned)).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}
