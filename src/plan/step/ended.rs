//! What follows the end of a task's run.

use super::merge::Batch;
use super::{Action, Integration, ParkReason, Plan, PlanCommand, PlanEvent, PlanOutcome, TaskEnd, TaskState};

impl Plan {
    pub(super) fn run_ended(&mut self, id: &str, end: TaskEnd, cost_usd: f64, actions: &mut Vec<Action>) {
        self.budget.settle(&id.to_owned(), cost_usd);
        let Some(task) = self.task_mut(id).filter(|task| task.is_running()) else {
            return;
        };
        task.cost_usd += cost_usd;
        let stop = task.stop.take();
        let agent = task.agent().to_owned();
        let id = id.to_owned();
        match (end, stop) {
            (TaskEnd::Verified, _) => self.verified(id, cost_usd, actions),
            (_, Some(PlanCommand::Skip { .. })) => {
                self.open_again(&id, cost_usd, actions);
                self.skip(id, actions);
            }
            (_, Some(_)) => self.park(id, ParkReason::Stopped, cost_usd, actions),
            (TaskEnd::Stopped, None) => {
                self.open_again(&id, cost_usd, actions);
                // Something else than this plan stopped it.
                if self.ending.is_none() {
                    self.park(id, ParkReason::Stopped, 0.0, actions);
                }
            }
            (TaskEnd::OutOfBudget, None) => {
                self.open_again(&id, cost_usd, actions);
                self.ending.get_or_insert(PlanOutcome::OutOfBudget);
            }
            (TaskEnd::Failed { reason }, None) => {
                self.park(id, ParkReason::Failed { reason }, cost_usd, actions);
            }
            (TaskEnd::AgentUnusable { reason }, None) => {
                self.park(
                    id,
                    ParkReason::Failed {
                        reason: reason.clone(),
                    },
                    cost_usd,
                    actions,
                );
                self.park_all_of(&agent, &reason, actions);
            }
        }
    }

    fn verified(&mut self, id: String, cost_usd: f64, actions: &mut Vec<Action>) {
        let task = id.clone();
        actions.push(Action::Emit(PlanEvent::TaskVerified { task, cost_usd }));
        match self.options.integration {
            Integration::InPlace => self.finish(id, actions),
            Integration::MergeQueue => {
                if let Some(task) = self.task_mut(&id) {
                    task.state = TaskState::Verified;
                    task.rejection = None;
                }
                self.queue.push_back(Batch::of(id));
            }
        }
    }

    fn open_again(&mut self, id: &str, cost_usd: f64, actions: &mut Vec<Action>) {
        if let Some(task) = self.task_mut(id) {
            task.state = TaskState::Waiting;
        }
        let task = id.to_owned();
        actions.push(Action::Emit(PlanEvent::TaskStopped { task, cost_usd }));
    }

    /// Parks the waiting tasks of an agent that cannot be used.
    fn park_all_of(&mut self, agent: &str, reason: &str, actions: &mut Vec<Action>) {
        let waiting = self.tasks.iter().filter(|task| task.state == TaskState::Waiting);
        let others = waiting
            .filter(|task| task.agent() == agent)
            .map(|task| task.task.id.clone());
        for id in others.collect::<Vec<_>>() {
            let reason = reason.to_owned();
            self.park(id, ParkReason::Failed { reason }, 0.0, actions);
        }
    }
}
