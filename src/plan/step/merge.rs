//! The merge queue: which tasks are merged together, and what happens to those that cannot be merged.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Action, MAX_REJECTIONS, ParkReason, Plan, PlanEvent, Rejection, TaskState};

/// Gates that take longer than this run once for several tasks.
const SLOW_GATES: Duration = Duration::from_secs(30);

/// Tasks that are merged with one commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Batch {
    tasks: Vec<String>,
    /// Part of a batch that failed; other tasks are not added to it.
    is_part: bool,
}

impl Batch {
    pub(super) fn of(task: String) -> Self {
        Self {
            tasks: vec![task],
            is_part: false,
        }
    }

    /// Whether the batch consists of this task.
    pub(super) fn is(&self, task: &str) -> bool {
        self.tasks == [task]
    }

    fn part(tasks: &[String]) -> Self {
        Self {
            tasks: tasks.to_vec(),
            is_part: true,
        }
    }
}

impl Plan {
    /// Starts the next merge.
    pub(super) fn merge_next(&mut self, actions: &mut Vec<Action>) {
        if self.merging.is_some() || self.ending.is_some() {
            return;
        }
        let Some(mut batch) = self.queue.pop_front() else {
            return;
        };
        while self.gates_are_slow
            && !batch.is_part
            && let Some(next) = self.queue.pop_front_if(|next| !next.is_part)
        {
            batch.tasks.extend(next.tasks);
        }
        for id in &batch.tasks {
            if let Some(task) = self.task_mut(id) {
                task.state = TaskState::Merging;
            }
        }
        actions.push(Action::Merge {
            tasks: batch.tasks.clone(),
        });
        self.merging = Some(batch);
    }

    pub(super) fn merged(
        &mut self,
        tasks: &[String],
        commit: &str,
        gates: Duration,
        actions: &mut Vec<Action>,
    ) {
        self.merging = None;
        self.gates_are_slow = gates >= SLOW_GATES;
        for id in tasks {
            let (task, commit) = (id.clone(), commit.to_owned());
            actions.push(Action::Emit(PlanEvent::TaskMerged { task, commit }));
            self.finish(id.clone(), actions);
        }
    }

    pub(super) fn merge_rejected(
        &mut self,
        tasks: Vec<String>,
        why: Rejection,
        gates: Duration,
        actions: &mut Vec<Action>,
    ) {
        self.merging = None;
        for id in &tasks {
            if let Some(task) = self.task_mut(id) {
                task.state = TaskState::Verified;
            }
        }
        match &why {
            Rejection::Moved | Rejection::Stopped => {
                let is_part = true;
                self.queue.push_front(Batch { tasks, is_part });
            }
            Rejection::Conflict { task, .. } => {
                let task = task.clone();
                let others = tasks.iter().filter(|other| **other != task);
                let others: Vec<String> = others.cloned().collect();
                if !others.is_empty() {
                    self.queue.push_front(Batch::part(&others));
                }
                self.reject(task, why, actions);
            }
            Rejection::GateFailed { .. } => {
                self.gates_are_slow = gates >= SLOW_GATES;
                match tasks.as_slice() {
                    [task] => self.reject(task.clone(), why, actions),
                    several => {
                        let (first, second) = several.split_at(several.len() / 2);
                        self.queue.push_front(Batch::part(second));
                        self.queue.push_front(Batch::part(first));
                    }
                }
            }
            Rejection::Failed { reason } => {
                for task in tasks {
                    let reason = reason.clone();
                    self.park(task, ParkReason::Failed { reason }, 0.0, actions);
                }
            }
        }
    }

    /// Runs a task again on the new head of the integration branch, or parks it.
    fn reject(&mut self, id: String, rejection: Rejection, actions: &mut Vec<Action>) {
        let Some(task) = self.task_mut(&id) else { return };
        task.rejections += 1;
        task.starts_over = true;
        if task.rejections > MAX_REJECTIONS {
            return self.park(id, ParkReason::Rejected { rejection }, 0.0, actions);
        }
        task.state = TaskState::Waiting;
        task.rejection = Some(rejection.clone());
        let rejections = task.rejections;
        actions.push(Action::Emit(PlanEvent::TaskRejected {
            task: id,
            rejections,
            rejection,
        }));
    }
}
