//! Restores a plan from its journal, for `ralph plan run --continue` and `ralph plan status`.

use super::merge::Batch;
use super::{Integration, ParkReason, Plan, PlanEvent, TaskState};

impl Plan {
    /// Applies a recorded event. The tasks must have been read.
    pub(crate) fn restore(&mut self, event: &PlanEvent) {
        match event {
            PlanEvent::TaskChosen { task, attempt, .. } => self.change(task, |task| {
                task.attempts = *attempt;
                task.starts_over = false;
                task.state = TaskState::Waiting;
            }),
            PlanEvent::TaskVerified { task, cost_usd } => {
                self.add_cost(task, *cost_usd);
                if self.options.integration == Integration::MergeQueue {
                    self.change(task, |task| task.rejection = None);
                }
            }
            PlanEvent::TaskCommitted { task, .. } => self.restore_verified(task.clone()),
            PlanEvent::TaskStopped { task, cost_usd } => self.add_cost(task, *cost_usd),
            PlanEvent::TaskRejected {
                task,
                rejections,
                rejection,
            } => {
                self.unqueue(task);
                self.change(task, |task| {
                    task.rejections = *rejections;
                    task.rejection = Some(rejection.clone());
                    task.starts_over = true;
                    task.state = TaskState::Waiting;
                });
            }
            PlanEvent::TaskDone { task } | PlanEvent::TaskMerged { task, .. } => {
                self.unqueue(task);
                self.change(task, |task| task.state = TaskState::Done);
            }
            PlanEvent::TaskParked { task, why, cost_usd } => {
                self.unqueue(task);
                self.add_cost(task, *cost_usd);
                let why: ParkReason = why.clone();
                self.change(task, |task| {
                    task.starts_over |= matches!(why, ParkReason::Rejected { .. });
                    task.state = TaskState::Parked { why };
                });
            }
            PlanEvent::TaskReopened { task } => self.change(task, |task| {
                task.state = TaskState::Waiting;
                task.rejections = 0;
            }),
            PlanEvent::TaskSkipped { task } => self.change(task, |task| task.state = TaskState::Skipped),
            PlanEvent::TaskRemoved { task } => self.change(task, |task| task.state = TaskState::Removed),
            PlanEvent::PlanStarted(_)
            | PlanEvent::PlanResumed
            | PlanEvent::TasksRead { .. }
            | PlanEvent::TaskRun { .. }
            | PlanEvent::MergePrepared { .. }
            | PlanEvent::CommandReceived { .. }
            | PlanEvent::Warning { .. }
            | PlanEvent::PlanEnded { .. } => {}
        }
    }

    fn change(&mut self, id: &str, change: impl FnOnce(&mut super::PlannedTask)) {
        if let Some(task) = self.task_mut(id) {
            change(task);
        }
    }

    fn restore_verified(&mut self, id: String) {
        self.unqueue(&id);
        self.change(&id, |task| task.state = TaskState::Verified);
        self.queue.push_back(Batch::of(id));
    }

    fn unqueue(&mut self, id: &str) {
        self.queue.retain(|batch| !batch.is(id));
    }

    fn add_cost(&mut self, id: &str, cost_usd: f64) {
        self.budget.settle(&id.to_owned(), cost_usd);
        self.change(id, |task| task.cost_usd += cost_usd);
    }
}
