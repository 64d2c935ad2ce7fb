//! The cost budget of several loops: how much each of them may spend.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Amounts below this count as zero.
const EPSILON: f64 = 1e-9;

/// The budget of a plan or a bench. `Key` identifies a loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Budget<Key: Ord> {
    limit: Option<f64>,
    spent: f64,
    /// Maximum cost of each running loop.
    reserved: BTreeMap<Key, f64>,
}

/// How much a loop may cost.
#[derive(Debug, Clone, Copy, PartialEq)]
#[must_use]
pub enum Grant {
    /// The limit of its task.
    TaskLimit(Option<f64>),
    /// Less than the task's limit, because the budget is low. A loop that reaches it has no result.
    Remainder(f64),
    /// Running loops must end first.
    Wait,
    /// The budget is exhausted.
    Exhausted,
}

impl<Key: Ord> Budget<Key> {
    pub fn new(limit: Option<f64>, spent: f64) -> Self {
        Self {
            limit,
            spent,
            reserved: BTreeMap::new(),
        }
    }

    pub fn spent(&self) -> f64 {
        self.spent
    }

    pub fn limit(&self) -> Option<f64> {
        self.limit
    }

    /// Reserves the cost of a loop. `free_slots` includes this loop's.
    pub fn grant(&mut self, key: Key, task_limit: Option<f64>, free_slots: usize) -> Grant {
        let Some(limit) = self.limit else {
            return Grant::TaskLimit(task_limit);
        };
        let left = limit - self.spent - self.reserved.values().sum::<f64>();
        let others_run = !self.reserved.is_empty();
        if left < EPSILON {
            return if others_run { Grant::Wait } else { Grant::Exhausted };
        }
        let (grant, reserved) = match task_limit {
            Some(limit) if limit <= left => (Grant::TaskLimit(Some(limit)), limit),
            // Running loops may cost less than reserved.
            Some(_) if others_run => return Grant::Wait,
            Some(_) => (Grant::Remainder(left), left),
            None => {
                let share = left / free_slots.max(1) as f64;
                (Grant::Remainder(share), share)
            }
        };
        self.reserved.insert(key, reserved);
        grant
    }

    /// Records the cost of a loop that has ended.
    pub fn settle(&mut self, key: &Key, cost: f64) {
        self.reserved.remove(key);
        self.spent += cost;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_budget_every_loop_gets_its_task_limit() {
        let mut budget = Budget::<usize>::new(None, 0.0);
        assert_eq!(budget.grant(0, Some(2.0), 1), Grant::TaskLimit(Some(2.0)));
        assert_eq!(budget.grant(1, None, 1), Grant::TaskLimit(None));
    }

    #[test]
    fn parallel_loops_never_exceed_the_budget() {
        let mut budget = Budget::new(Some(5.0), 0.0);
        assert_eq!(budget.grant(0, Some(2.0), 3), Grant::TaskLimit(Some(2.0)));
        assert_eq!(budget.grant(1, Some(2.0), 2), Grant::TaskLimit(Some(2.0)));
        assert_eq!(budget.grant(2, Some(2.0), 1), Grant::Wait);
        budget.settle(&0, 0.5);
        assert_eq!(budget.grant(2, Some(2.0), 1), Grant::TaskLimit(Some(2.0)));
    }

    #[test]
    fn loops_without_a_limit_share_the_remainder() {
        let mut budget = Budget::new(Some(4.0), 1.0);
        assert_eq!(budget.grant(0, None, 2), Grant::Remainder(1.5));
        assert_eq!(budget.grant(1, None, 1), Grant::Remainder(1.5));
        assert_eq!(budget.grant(2, None, 1), Grant::Wait);
        budget.settle(&0, 1.5);
        budget.settle(&1, 1.5);
        assert_eq!(budget.grant(2, None, 2), Grant::Exhausted);
    }

    #[test]
    fn the_last_loop_gets_the_remainder() {
        let mut budget = Budget::new(Some(3.0), 2.0);
        assert_eq!(budget.grant(0, Some(2.0), 1), Grant::Remainder(1.0));
        budget.settle(&0, 1.25);
        assert_eq!(budget.grant(0, Some(2.0), 1), Grant::Exhausted);
        assert_eq!(budget.spent(), 3.25);
    }
}
