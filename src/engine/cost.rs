//! Computes the cost of an iteration: the agent's own report, or else its tokens by the price list.

use std::collections::BTreeSet;

use crate::event::{CostSource, Usage, UsageScope};

use crate::policy::{CostRules, MissingPrice};

#[derive(Debug, Default)]
pub(crate) struct CostTracker {
    /// The model reported for the session.
    session_model: Option<String>,
    /// The models reported for steps.
    step_models: BTreeSet<String>,
    /// Why parts of this iteration have no cost.
    unpriced: BTreeSet<MissingPrice>,
}

impl CostTracker {
    pub(crate) fn note_model(&mut self, model: &str) {
        self.session_model = Some(model.to_owned());
    }

    /// Adds a cost to a usage report without one. `so_far` is the iteration's usage before it.
    pub(crate) fn price(&mut self, usage: &mut Usage, so_far: &Usage, rules: &CostRules) {
        let is_total = usage.scope != UsageScope::Step;
        if usage.cost_usd.is_some() {
            usage.cost_source = usage.cost_source.or(Some(CostSource::Reported));
            if is_total {
                self.unpriced.clear();
            }
            return;
        }
        let Some(prices) = rules.prices.as_ref().filter(|_| usage.tokens() > Some(0)) else {
            return;
        };
        if let (Some(model), false) = (&usage.model, is_total) {
            self.step_models.insert(model.clone());
        }
        let mixed_models = is_total && usage.model.is_none() && self.step_models.len() > 1;
        if mixed_models && so_far.cost_usd.is_some() {
            return use_step_costs(so_far, usage);
        }
        match prices.cost(self.model_of(usage, rules), usage) {
            Ok(cost) => {
                usage.cost_usd = Some(cost);
                usage.cost_source = Some(CostSource::Priced);
                if is_total {
                    self.unpriced.clear();
                }
            }
            Err(why) => {
                self.unpriced.insert(why);
                if is_total {
                    use_step_costs(so_far, usage);
                }
            }
        }
    }

    pub(crate) fn unpriced(self) -> BTreeSet<MissingPrice> {
        self.unpriced
    }

    fn model_of<'a>(&'a self, usage: &'a Usage, rules: &'a CostRules) -> Option<&'a str> {
        let reported = usage.model.as_ref().or(self.step_models.first());
        let named = reported.or(self.session_model.as_ref());
        named.or(rules.model.as_ref()).map(String::as_str)
    }
}

/// Uses the summed cost of the steps for a total that cannot be priced itself.
fn use_step_costs(so_far: &Usage, total: &mut Usage) {
    total.cost_usd = so_far.cost_usd;
    total.cost_source = so_far.cost_source;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Usd;
    use crate::policy::{CostAvailability, Price, Prices};

    fn rules() -> CostRules {
        let price = |input| Price {
            input,
            output: input,
            cache_read: None,
            cache_write: None,
        };
        CostRules {
            prices: Some(Prices::new([
                ("cheap".into(), price(1.0)),
                ("dear".into(), price(10.0)),
            ])),
            model: Some("cheap".into()),
            availability: CostAvailability::Available,
        }
    }

    fn usage(model: Option<&str>, scope: UsageScope) -> Usage {
        Usage {
            prompt_tokens: Some(1_000_000),
            completion_tokens: Some(0),
            model: model.map(Into::into),
            scope,
            ..Usage::default()
        }
    }

    fn priced(
        costs: &mut CostTracker,
        mut usage: Usage,
        so_far: &Usage,
    ) -> (Option<Usd>, Option<CostSource>) {
        costs.price(&mut usage, so_far, &rules());
        (usage.cost_usd, usage.cost_source)
    }

    const NOTHING: Option<Usd> = None;

    #[test]
    fn model_comes_from_step_then_session_then_config() {
        let mut costs = CostTracker::default();
        let step = |model| usage(model, UsageScope::Step);
        let none = Usage::default();
        let by_list = |cost| (Usd::new(cost), Some(CostSource::Priced));
        assert_eq!(priced(&mut costs, step(None), &none), by_list(1.0));
        costs.note_model("dear");
        assert_eq!(priced(&mut costs, step(None), &none), by_list(10.0));
        assert_eq!(priced(&mut costs, step(Some("cheap")), &none), by_list(1.0));
        assert!(costs.unpriced().is_empty());
    }

    #[test]
    fn reported_cost_is_kept() {
        let mut reported = usage(Some("dear"), UsageScope::Iteration);
        reported.cost_usd = Usd::new(0.25);
        let figure = priced(&mut CostTracker::default(), reported, &Usage::default());
        assert_eq!(figure, (Usd::new(0.25), Some(CostSource::Reported)));
    }

    #[test]
    fn unlisted_model_has_no_cost_until_the_agent_reports_one() {
        let mut costs = CostTracker::default();
        let unlisted = usage(Some("new"), UsageScope::Step);
        assert_eq!(priced(&mut costs, unlisted, &Usage::default()).0, NOTHING);
        assert_eq!(costs.unpriced.len(), 1);
        let mut total = usage(None, UsageScope::Iteration);
        total.cost_usd = Usd::new(1.0);
        let _ = priced(&mut costs, total, &Usage::default());
        assert!(costs.unpriced().is_empty());
    }

    #[test]
    fn total_over_several_models_costs_the_sum_of_its_steps() {
        let mut costs = CostTracker::default();
        let mut so_far = Usage::default();
        for model in ["cheap", "dear"] {
            let mut step = usage(Some(model), UsageScope::Step);
            costs.price(&mut step, &so_far, &rules());
            so_far.add(&step);
        }
        let total = priced(&mut costs, usage(None, UsageScope::Iteration), &so_far);
        assert_eq!(total, (Usd::new(11.0), Some(CostSource::Priced)));
    }
}
