//! Budgets over all runs of a user: what may be spent per day, and per project.

use crate::event::RunLimit;
use crate::policy::section::section;

section! {
    /// Budgets over all runs of the user. A later configuration layer can lower them, but not raise them.
    Budgets, PartialBudgets, "budgets" {
        /// What all runs together may cost per day, in US dollars.
        #[check(extend("exclusiveMinimum" = 0))]
        per_day_usd: f64,
        /// What all runs of one project together may cost, in US dollars.
        #[check(extend("exclusiveMinimum" = 0))]
        per_project_usd: f64,
    }
}

/// What the runs of a user have cost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spend {
    /// All runs, today.
    pub day_usd: f64,
    /// All runs of the project, ever.
    pub project_usd: f64,
}

impl Spend {
    /// Adds the cost of a run of the project.
    pub fn add(&mut self, usd: f64) {
        self.day_usd += usd;
        self.project_usd += usd;
    }
}

impl Budgets {
    pub fn is_set(&self) -> bool {
        self.per_day_usd.is_some() || self.per_project_usd.is_some()
    }

    /// The budget that is used up. `unreported` is what the run has spent in addition.
    pub fn exceeded(&self, spend: Spend, unreported: f64) -> Option<RunLimit> {
        let reached = |max: Option<f64>, spent: f64| max.filter(|max| spent + unreported >= max - 1e-9);
        let day = reached(self.per_day_usd, spend.day_usd);
        let project = reached(self.per_project_usd, spend.project_usd);
        day.map(|max_usd| RunLimit::DayCost { max_usd })
            .or_else(|| project.map(|max_usd| RunLimit::ProjectCost { max_usd }))
    }

    /// Merges a layer, which can only lower the budgets.
    pub(crate) fn lower(&mut self, layer: PartialBudgets) {
        let before = self.clone();
        layer.apply_to(self);
        let lower = |own: &mut Option<f64>, before: Option<f64>| {
            *own = [*own, before].into_iter().flatten().min_by(f64::total_cmp);
        };
        lower(&mut self.per_day_usd, before.per_day_usd);
        lower(&mut self.per_project_usd, before.per_project_usd);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_budget_that_is_used_up_is_named() {
        let budgets = Budgets {
            per_day_usd: Some(10.0),
            per_project_usd: Some(50.0),
        };
        let spend = |day_usd, project_usd| Spend { day_usd, project_usd };
        assert_eq!(budgets.exceeded(spend(9.0, 49.0), 0.5), None);
        let day = RunLimit::DayCost { max_usd: 10.0 };
        assert_eq!(budgets.exceeded(spend(9.0, 49.0), 1.0), Some(day));
        let project = RunLimit::ProjectCost { max_usd: 50.0 };
        assert_eq!(budgets.exceeded(spend(0.0, 50.0), 0.0), Some(project));
        assert_eq!(Budgets::default().exceeded(spend(1e9, 1e9), 0.0), None);
    }

    #[test]
    fn a_layer_can_lower_a_budget_but_not_raise_it() {
        let mut budgets = Budgets::default();
        let day = |usd| PartialBudgets {
            per_day_usd: Some(usd),
            per_project_usd: None,
        };
        for (layer, expected) in [(20.0, 20.0), (50.0, 20.0), (5.0, 5.0)] {
            budgets.lower(day(layer));
            assert_eq!(budgets.per_day_usd, Some(expected));
        }
    }
}
