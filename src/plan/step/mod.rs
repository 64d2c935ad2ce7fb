//! `Plan::step`: every decision of a plan. Pure: it reads no clock, file or process, and its state can be serialized.

mod budget;
mod choose;
mod ended;
mod event;
mod merge;
mod restore;
mod state;
#[cfg(test)]
mod tests;
mod touches;

pub use budget::{Budget, Grant};
pub use event::{
    Action, Input, ListedTask, ParkReason, PlanCommand, PlanEvent, PlanHeader, PlanOutcome, PlanRecord,
    ReadTask, Rejection, TaskEnd, TaskStart,
};
pub use state::{PlannedTask, TaskState};

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::event::Interrupt;

use merge::Batch;

/// How often a task is run again after a conflict or a red gate.
const MAX_REJECTIONS: u64 = 2;

/// What the user chose for a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanOptions {
    pub jobs: usize,
    pub integration: Integration,
    pub max_cost_usd: Option<f64>,
    /// All tasks if empty.
    pub only: BTreeSet<String>,
}

/// How the work of a task reaches the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Integration {
    /// Tasks run one after the other in the user's workspace.
    InPlace,
    /// Each task runs in a worktree and is merged.
    MergeQueue,
}

/// The state of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    options: PlanOptions,
    /// In the order of the source.
    tasks: Vec<PlannedTask>,
    /// The positions of the tasks.
    positions: BTreeMap<String, usize>,
    budget: Budget<String>,
    queue: VecDeque<Batch>,
    merging: Option<Batch>,
    /// The last gates on a merged tree took long, so tasks are merged together.
    gates_are_slow: bool,
    /// Agents that wait for a usage limit, and until when. The default agent has an empty name.
    limited: BTreeMap<String, Duration>,
    ending: Option<PlanOutcome>,
    ended: bool,
}

impl Plan {
    pub fn new(options: PlanOptions) -> Self {
        Self {
            budget: Budget::new(options.max_cost_usd, 0.0),
            options,
            tasks: Vec::new(),
            positions: BTreeMap::new(),
            queue: VecDeque::new(),
            merging: None,
            gates_are_slow: false,
            limited: BTreeMap::new(),
            ending: None,
            ended: false,
        }
    }

    /// `at` is the time since the plan started.
    #[must_use]
    pub fn step(&mut self, at: Duration, input: Input) -> Vec<Action> {
        let mut actions = Vec::new();
        if self.ended {
            return actions;
        }
        match input {
            Input::TasksRead { tasks } => self.read(tasks, &mut actions),
            Input::RunStarted { task, run } => {
                if let Some(attempt) = self.task(&task).map(|task| task.attempts) {
                    actions.push(Action::Emit(PlanEvent::TaskRun { task, attempt, run }));
                }
            }
            Input::Limited { task, wait } => {
                if let Some(task) = self.task(&task) {
                    let agent = task.agent().to_owned();
                    let until = self.limited.entry(agent).or_default();
                    *until = (*until).max(at + wait);
                }
            }
            Input::RunEnded { task, end, cost_usd } => self.run_ended(&task, end, cost_usd, &mut actions),
            Input::Merged { tasks, commit, gates } => self.merged(&tasks, &commit, gates, &mut actions),
            Input::MergeRejected { tasks, why, gates } => {
                self.merge_rejected(tasks, why, gates, &mut actions)
            }
            Input::Commands { commands } => {
                commands
                    .into_iter()
                    .for_each(|command| self.command(command, &mut actions));
            }
            Input::Interrupted { by } => self.stop_all(PlanOutcome::Interrupted { by }, &mut actions),
            Input::Tick => {}
        }
        self.park_dependents(&mut actions);
        self.merge_next(&mut actions);
        self.choose(at, &mut actions);
        self.end_if_idle(&mut actions);
        actions
    }

    /// When `Input::Tick` is due.
    pub fn deadline(&self) -> Option<Duration> {
        let waits = !self.ended && self.tasks.iter().any(|task| task.state == TaskState::Waiting);
        self.limited.values().min().copied().filter(|_| waits)
    }

    /// All tasks in the order of the source.
    pub fn tasks(&self) -> &[PlannedTask] {
        &self.tasks
    }

    pub fn task(&self, id: &str) -> Option<&PlannedTask> {
        self.positions.get(id).map(|position| &self.tasks[*position])
    }

    fn task_mut(&mut self, id: &str) -> Option<&mut PlannedTask> {
        self.positions.get(id).map(|position| &mut self.tasks[*position])
    }

    pub fn spent(&self) -> f64 {
        self.budget.spent()
    }

    /// The ids of the tasks that are done.
    pub fn done(&self) -> BTreeSet<String> {
        let done = self.tasks.iter().filter(|task| task.state == TaskState::Done);
        done.map(|task| task.task.id.clone()).collect()
    }

    fn read(&mut self, tasks: Vec<ReadTask>, actions: &mut Vec<Action>) {
        let listed = tasks.iter().map(|read| ListedTask {
            id: read.task.id.clone(),
            title: read.task.title.clone(),
        });
        let listed: Vec<ListedTask> = listed.collect();
        let mut known: BTreeMap<String, PlannedTask> = self
            .tasks
            .drain(..)
            .map(|task| (task.task.id.clone(), task))
            .collect();
        for read in tasks {
            let task = match known.remove(&read.task.id) {
                Some(task) => task.updated(read.task),
                None => PlannedTask::new(read),
            };
            self.tasks.push(task);
        }
        for (id, mut task) in known {
            if !matches!(task.state, TaskState::Waiting | TaskState::Removed) {
                // A task that has been started is finished.
                self.tasks.push(task);
                continue;
            }
            if task.state == TaskState::Waiting {
                actions.push(Action::Emit(PlanEvent::TaskRemoved { task: id }));
            }
            task.state = TaskState::Removed;
            self.tasks.push(task);
        }
        let ids_in_order = self.tasks.iter().map(|task| task.task.id.clone());
        self.positions = ids_in_order
            .enumerate()
            .map(|(position, id)| (id, position))
            .collect();
        actions.push(Action::Emit(PlanEvent::TasksRead { tasks: listed }));
    }

    /// A plan whose tasks are known and whose journal has these events. The next step starts tasks.
    pub fn restored<'a>(
        options: PlanOptions,
        tasks: Vec<ReadTask>,
        events: impl IntoIterator<Item = &'a PlanEvent>,
    ) -> Self {
        let mut plan = Self::new(options);
        plan.read(tasks, &mut Vec::new());
        events.into_iter().for_each(|event| plan.restore(event));
        plan
    }

    fn finish(&mut self, id: String, actions: &mut Vec<Action>) {
        if let Some(task) = self.task_mut(&id) {
            task.state = TaskState::Done;
        }
        let task = id.clone();
        // Recorded first: marks are set again when a plan is resumed.
        actions.push(Action::Emit(PlanEvent::TaskDone { task }));
        actions.push(Action::Mark { task: id });
    }

    fn park(&mut self, id: String, why: ParkReason, cost_usd: f64, actions: &mut Vec<Action>) {
        if let Some(task) = self.task_mut(&id) {
            task.state = TaskState::Parked { why: why.clone() };
        }
        actions.push(Action::Emit(PlanEvent::TaskParked {
            task: id,
            why,
            cost_usd,
        }));
    }

    /// Parks the open tasks that need a parked task.
    fn park_dependents(&mut self, actions: &mut Vec<Action>) {
        loop {
            let blocked = self.tasks.iter().find_map(|task| {
                let need = self.impossible_need(task)?;
                Some((task.task.id.clone(), need))
            });
            let Some((id, need)) = blocked else { return };
            self.park(id, ParkReason::Need { need }, 0.0, actions);
        }
    }

    fn impossible_need(&self, task: &PlannedTask) -> Option<String> {
        if task.state != TaskState::Waiting {
            return None;
        }
        let is_impossible = |need: &&String| match self.task(need) {
            Some(need) => matches!(need.state, TaskState::Parked { .. } | TaskState::Removed),
            None => true,
        };
        task.task.needs.iter().find(is_impossible).cloned()
    }

    fn command(&mut self, command: PlanCommand, actions: &mut Vec<Action>) {
        match &command {
            PlanCommand::Retry { task } => self.reopen(&task.clone(), actions),
            PlanCommand::Stop { task: None } => {
                let by = Interrupt::Quit;
                self.stop_all(PlanOutcome::Interrupted { by }, actions);
            }
            PlanCommand::Skip { task: id } | PlanCommand::Stop { task: Some(id) } => {
                let id = id.clone();
                let is_skip = matches!(command, PlanCommand::Skip { .. });
                let Some(task) = self.task_mut(&id) else { return };
                match task.state {
                    TaskState::Running => {
                        task.stop = Some(command);
                        actions.push(Action::Stop { task: id });
                    }
                    TaskState::Waiting | TaskState::Parked { .. } if is_skip => self.skip(id, actions),
                    TaskState::Waiting => self.park(id, ParkReason::Stopped, 0.0, actions),
                    // It is about to be done, or it is not open.
                    TaskState::Verified
                    | TaskState::Merging
                    | TaskState::Done
                    | TaskState::Parked { .. }
                    | TaskState::Skipped
                    | TaskState::Removed => {}
                }
            }
        }
    }

    fn skip(&mut self, id: String, actions: &mut Vec<Action>) {
        if let Some(task) = self.task_mut(&id) {
            task.state = TaskState::Skipped;
        }
        actions.push(Action::Emit(PlanEvent::TaskSkipped { task: id }));
        self.reopen_dependents(actions);
    }

    fn reopen(&mut self, id: &str, actions: &mut Vec<Action>) {
        let Some(task) = self.task_mut(id) else { return };
        if !matches!(task.state, TaskState::Parked { .. } | TaskState::Skipped) {
            return;
        }
        task.state = TaskState::Waiting;
        task.rejections = 0;
        let id = id.to_owned();
        actions.push(Action::Emit(PlanEvent::TaskReopened { task: id }));
        self.reopen_dependents(actions);
    }

    /// Opens the tasks that were parked because of a task that is not parked any more.
    fn reopen_dependents(&mut self, actions: &mut Vec<Action>) {
        loop {
            let is_free = |task: &&PlannedTask| match &task.state {
                TaskState::Parked {
                    why: ParkReason::Need { need },
                } => self
                    .task(need)
                    .is_some_and(|need| !matches!(need.state, TaskState::Parked { .. } | TaskState::Removed)),
                _ => false,
            };
            let Some(id) = self.tasks.iter().find(is_free).map(|task| task.task.id.clone()) else {
                return;
            };
            if let Some(task) = self.task_mut(&id) {
                task.state = TaskState::Waiting;
            }
            actions.push(Action::Emit(PlanEvent::TaskReopened { task: id }));
        }
    }

    /// Stops every run and the merge; the plan ends when all have ended.
    fn stop_all(&mut self, outcome: PlanOutcome, actions: &mut Vec<Action>) {
        self.ending.get_or_insert(outcome);
        let running = self.tasks.iter().filter(|task| task.is_running());
        actions.extend(running.map(|task| Action::Stop {
            task: task.task.id.clone(),
        }));
        if self.merging.is_some() {
            actions.push(Action::StopMerge);
        }
    }

    fn end_if_idle(&mut self, actions: &mut Vec<Action>) {
        let is_busy = self.merging.is_some() || self.tasks.iter().any(PlannedTask::is_running);
        // Nothing is known before the source has been read.
        if is_busy || self.tasks.is_empty() && self.ending.is_none() {
            return;
        }
        let selected = || self.tasks.iter().filter(|task| self.is_selected(task));
        let waits = selected().any(|task| task.state == TaskState::Waiting);
        let outcome = match &self.ending {
            Some(outcome) => outcome.clone(),
            None if waits && !self.limited.is_empty() && self.has_ready_task() => return,
            None if selected().all(|task| task.state.is_settled()) => PlanOutcome::Complete,
            None => PlanOutcome::Incomplete,
        };
        self.ended = true;
        actions.push(Action::Emit(PlanEvent::PlanEnded {
            outcome: outcome.clone(),
        }));
        actions.push(Action::End { outcome });
    }

    fn is_selected(&self, task: &PlannedTask) -> bool {
        self.options.only.is_empty() || self.options.only.contains(&task.task.id)
    }
}
