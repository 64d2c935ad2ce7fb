//! The cost budget of a bench: how much each cell may spend.

use std::collections::BTreeMap;

/// Amounts below this count as zero.
const EPSILON: f64 = 1e-9;

/// The budget of one bench.
#[derive(Debug, Default)]
pub(super) struct Budget {
    limit: Option<f64>,
    spent: f64,
    /// Maximum cost of each running cell, by slot.
    reserved: BTreeMap<usize, f64>,
}

/// How much a cell may cost.
#[derive(Debug, Clone, Copy, PartialEq)]
#[must_use]
pub(super) enum Grant {
    /// The limit of its task.
    TaskLimit(Option<f64>),
    /// Less than the task's limit, because the budget is low. A cell that reaches it gets no verdict.
    Remainder(f64),
    /// Running cells must end first.
    Wait,
    /// The budget is exhausted.
    Exhausted,
}

impl Budget {
    pub(super) fn new(limit: Option<f64>, spent: f64) -> Self {
        Self {
            limit,
            spent,
            reserved: BTreeMap::new(),
        }
    }

    pub(super) fn spent(&self) -> f64 {
        self.spent
    }

    pub(super) fn limit(&self) -> Option<f64> {
        self.limit
    }

    /// Reserves the cost of a cell. `free_slots` includes this cell's.
    pub(super) fn grant(&mut self, slot: usize, task_limit: Option<f64>, free_slots: usize) -> Grant {
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
            // Running cells may cost less than reserved.
            Some(_) if others_run => return Grant::Wait,
            Some(_) => (Grant::Remainder(left), left),
            None => {
                let share = left / free_slots.max(1) as f64;
                (Grant::Remainder(share), share)
            }
        };
        self.reserved.insert(slot, reserved);
        grant
    }

    /// Records the cost of a finished cell.
    pub(super) fn settle(&mut self, slot: usize, cost: f64) {
        self.reserved.remove(&slot);
        self.spent += cost;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_budget_every_cell_gets_its_task_limit() {
        let mut budget = Budget::new(None, 0.0);
        assert_eq!(budget.grant(0, Some(2.0), 1), Grant::TaskLimit(Some(2.0)));
        assert_eq!(budget.grant(1, None, 1), Grant::TaskLimit(None));
    }

    #[test]
    fn parallel_cells_never_exceed_the_budget() {
        let mut budget = Budget::new(Some(5.0), 0.0);
        assert_eq!(budget.grant(0, Some(2.0), 3), Grant::TaskLimit(Some(2.0)));
        assert_eq!(budget.grant(1, Some(2.0), 2), Grant::TaskLimit(Some(2.0)));
        assert_eq!(budget.grant(2, Some(2.0), 1), Grant::Wait);
        budget.settle(0, 0.5);
        assert_eq!(budget.grant(2, Some(2.0), 1), Grant::TaskLimit(Some(2.0)));
    }

    #[test]
    fn cells_without_a_limit_share_the_remainder() {
        let mut budget = Budget::new(Some(4.0), 1.0);
        assert_eq!(budget.grant(0, None, 2), Grant::Remainder(1.5));
        assert_eq!(budget.grant(1, None, 1), Grant::Remainder(1.5));
        assert_eq!(budget.grant(2, None, 1), Grant::Wait);
        budget.settle(0, 1.5);
        budget.settle(1, 1.5);
        assert_eq!(budget.grant(2, None, 2), Grant::Exhausted);
    }

    #[test]
    fn the_last_cell_gets_the_remainder() {
        let mut budget = Budget::new(Some(3.0), 2.0);
        assert_eq!(budget.grant(0, Some(2.0), 1), Grant::Remainder(1.0));
        budget.settle(0, 1.25);
        assert_eq!(budget.grant(0, Some(2.0), 1), Grant::Exhausted);
        assert_eq!(budget.spent(), 3.25);
    }
}
