//! What the whole bench may still cost, and how much of it a cell is given. Decides; spends nothing.

use std::collections::BTreeMap;

/// Less than this is nothing.
const NOTHING: f64 = 1e-9;

/// The money of one bench.
#[derive(Debug, Default)]
pub(super) struct Budget {
    limit: Option<f64>,
    spent: f64,
    /// What cells that run now may spend at most, by slot.
    reserved: BTreeMap<usize, f64>,
}

/// What a cell may cost.
#[derive(Debug, Clone, Copy, PartialEq)]
#[must_use]
pub(super) enum Grant {
    /// What its task allows.
    Own(Option<f64>),
    /// Less than its task allows, because no more is left: if that ends it, it is not judged.
    Rest(f64),
    /// Others must end first.
    Wait,
    /// There is nothing left.
    Spent,
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

    /// Sets aside what a cell may cost. `children` are free, this cell's included.
    pub(super) fn grant(&mut self, slot: usize, own: Option<f64>, children: usize) -> Grant {
        let Some(limit) = self.limit else {
            return Grant::Own(own);
        };
        let left = limit - self.spent - self.reserved.values().sum::<f64>();
        let others_run = !self.reserved.is_empty();
        if left < NOTHING {
            return if others_run { Grant::Wait } else { Grant::Spent };
        }
        let (grant, set_aside) = match own {
            Some(own) if own <= left => (Grant::Own(Some(own)), own),
            // What the others leave over may yet be enough.
            Some(_) if others_run => return Grant::Wait,
            Some(_) => (Grant::Rest(left), left),
            None => {
                let share = left / children.max(1) as f64;
                (Grant::Rest(share), share)
            }
        };
        self.reserved.insert(slot, set_aside);
        grant
    }

    /// A cell has ended, and this is what it cost.
    pub(super) fn settle(&mut self, slot: usize, cost: f64) {
        self.reserved.remove(&slot);
        self.spent += cost;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_limit_every_cell_has_its_own() {
        let mut budget = Budget::new(None, 0.0);
        assert_eq!(budget.grant(0, Some(2.0), 1), Grant::Own(Some(2.0)));
        assert_eq!(budget.grant(1, None, 1), Grant::Own(None));
    }

    #[test]
    fn what_runs_at_the_same_time_can_never_exceed_the_limit_together() {
        let mut budget = Budget::new(Some(5.0), 0.0);
        assert_eq!(budget.grant(0, Some(2.0), 3), Grant::Own(Some(2.0)));
        assert_eq!(budget.grant(1, Some(2.0), 2), Grant::Own(Some(2.0)));
        assert_eq!(budget.grant(2, Some(2.0), 1), Grant::Wait);
        budget.settle(0, 0.5);
        assert_eq!(budget.grant(2, Some(2.0), 1), Grant::Own(Some(2.0)));
    }

    #[test]
    fn cells_without_a_limit_share_what_is_left() {
        let mut budget = Budget::new(Some(4.0), 1.0);
        assert_eq!(budget.grant(0, None, 2), Grant::Rest(1.5));
        assert_eq!(budget.grant(1, None, 1), Grant::Rest(1.5));
        assert_eq!(budget.grant(2, None, 1), Grant::Wait);
        budget.settle(0, 1.5);
        budget.settle(1, 1.5);
        assert_eq!(budget.grant(2, None, 2), Grant::Spent);
    }

    #[test]
    fn the_last_cell_gets_the_rest() {
        let mut budget = Budget::new(Some(3.0), 2.0);
        assert_eq!(budget.grant(0, Some(2.0), 1), Grant::Rest(1.0));
        budget.settle(0, 1.25);
        assert_eq!(budget.grant(0, Some(2.0), 1), Grant::Spent);
        assert_eq!(budget.spent(), 3.25);
    }
}
