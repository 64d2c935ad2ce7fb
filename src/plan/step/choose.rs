//! Chooses the tasks to start: needs, priority, files that they touch, usage limits and budget.

use std::time::Duration;

use super::budget::Grant;
use super::touches::overlap;
use super::{Action, Plan, PlanEvent, PlanOutcome, PlannedTask, TaskStart, TaskState};

impl Plan {
    /// Starts as many tasks as possible.
    pub(super) fn choose(&mut self, at: Duration, actions: &mut Vec<Action>) {
        self.limited.retain(|_, until| *until > at);
        while self.ending.is_none() {
            let running = self.tasks.iter().filter(|task| task.is_running()).count();
            let free = self.options.jobs.saturating_sub(running);
            let ready: Vec<usize> = self.ready().collect();
            if free == 0 || ready.is_empty() {
                return;
            }
            let is_limited = |index: &usize| self.limited.contains_key(self.tasks[*index].agent());
            let startable: Vec<usize> = ready.iter().copied().filter(|index| !is_limited(index)).collect();
            let first = startable
                .iter()
                .copied()
                .min_by_key(|index| (self.tasks[*index].task.priority(), *index));
            let Some(index) = first else { return };
            let slots = free.min(startable.len());
            let task = &self.tasks[index].task;
            let grant = self
                .budget
                .grant(task.id.clone(), task.limits.max_cost_usd, slots);
            let max_cost_usd = match grant {
                Grant::TaskLimit(limit) => limit,
                Grant::Remainder(rest) => Some(rest),
                Grant::Wait => return,
                Grant::Exhausted => {
                    self.ending = Some(PlanOutcome::OutOfBudget);
                    return;
                }
            };
            actions.extend(self.start(index, max_cost_usd));
        }
    }

    fn start(&mut self, index: usize, max_cost_usd: Option<f64>) -> [Action; 2] {
        let task = &mut self.tasks[index];
        task.state = TaskState::Running;
        if task.attempts == 0 || task.starts_over {
            task.attempts += 1;
            task.starts_over = false;
        }
        let chosen = PlanEvent::TaskChosen {
            task: task.task.id.clone(),
            title: task.task.title.clone(),
            attempt: task.attempts,
        };
        let start = TaskStart {
            task: task.task.clone(),
            attempt: task.attempts,
            rejection: task.rejection.clone(),
            max_cost_usd,
        };
        [Action::Emit(chosen), Action::Start(Box::new(start))]
    }

    /// The open tasks whose needs are done and whose files no other task in progress touches.
    fn ready(&self) -> impl Iterator<Item = usize> {
        let in_progress: Vec<&PlannedTask> = self.tasks.iter().filter(|task| task.is_in_progress()).collect();
        let tasks = self.tasks.iter().enumerate();
        let ready = tasks.filter(move |(_, task)| self.is_ready(task, &in_progress));
        ready.map(|(index, _)| index)
    }

    fn is_ready(&self, task: &PlannedTask, in_progress: &[&PlannedTask]) -> bool {
        let is_met = |need: &String| {
            let need = self.task(need);
            need.is_some_and(|need| matches!(need.state, TaskState::Done | TaskState::Skipped))
        };
        let is_free = |other: &&PlannedTask| !overlap(&task.task.touches, &other.task.touches);
        task.state == TaskState::Waiting
            && self.is_selected(task)
            && task.task.needs.iter().all(is_met)
            && in_progress.iter().all(is_free)
    }

    pub(super) fn has_ready_task(&self) -> bool {
        self.ready().next().is_some()
    }
}
