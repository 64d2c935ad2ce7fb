//! The bill of one iteration: what the agent says it cost, or else what its tokens cost by the price list.

use std::collections::BTreeSet;

use crate::event::{CostSource, Usage, UsageScope};

use super::policy::CostRules;
use super::prices::NoPrice;

#[derive(Debug, Default)]
pub(crate) struct CostTracker {
    /// The model that the session named.
    session_model: Option<String>,
    /// The models that steps named.
    step_models: BTreeSet<String>,
    /// Why parts of this iteration have no price.
    unpriced: BTreeSet<NoPrice>,
}

impl CostTracker {
    pub(crate) fn note_model(&mut self, model: &str) {
        self.session_model = Some(model.to_owned());
    }

    /// Puts a price on a usage figure, if it has none of its own. `so_far` is what the iteration has used before.
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
        let several = is_total && usage.model.is_none() && self.step_models.len() > 1;
        if several && so_far.cost_usd.is_some() {
            return take_over(so_far, usage);
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
                    take_over(so_far, usage);
                }
            }
        }
    }

    /// Why parts of it have no price.
    pub(crate) fn unpriced(self) -> BTreeSet<NoPrice> {
        self.unpriced
    }

    fn model_of<'a>(&'a self, usage: &'a Usage, rules: &'a CostRules) -> Option<&'a str> {
        let said = usage.model.as_ref().or(self.step_models.first());
        let named = said.or(self.session_model.as_ref());
        named.or(rules.model.as_ref()).map(String::as_str)
    }
}

/// What the steps cost is known, even where the total has no price of its own.
fn take_over(so_far: &Usage, total: &mut Usage) {
    total.cost_usd = so_far.cost_usd;
    total.cost_source = so_far.cost_source;
}

#[cfg(test)]
mod tests {
    use super::super::policy::CostFigures;
    use super::super::prices::{Price, Prices};
    use super::*;

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
            figures: CostFigures::Possible,
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

    fn priced(bill: &mut CostTracker, mut usage: Usage, so_far: &Usage) -> (Option<f64>, Option<CostSource>) {
        bill.price(&mut usage, so_far, &rules());
        (usage.cost_usd, usage.cost_source)
    }

    const NOTHING: Option<f64> = None;

    #[test]
    fn the_model_is_the_steps_or_the_sessions_or_the_one_asked_for() {
        let mut bill = CostTracker::default();
        let step = |model| usage(model, UsageScope::Step);
        let none = Usage::default();
        let by_list = |cost| (Some(cost), Some(CostSource::Priced));
        assert_eq!(priced(&mut bill, step(None), &none), by_list(1.0));
        bill.note_model("dear");
        assert_eq!(priced(&mut bill, step(None), &none), by_list(10.0));
        assert_eq!(priced(&mut bill, step(Some("cheap")), &none), by_list(1.0));
        assert!(bill.unpriced().is_empty());
    }

    #[test]
    fn a_figure_of_the_agents_own_is_kept() {
        let mut reported = usage(Some("dear"), UsageScope::Iteration);
        reported.cost_usd = Some(0.25);
        let figure = priced(&mut CostTracker::default(), reported, &Usage::default());
        assert_eq!(figure, (Some(0.25), Some(CostSource::Reported)));
    }

    #[test]
    fn an_unlisted_model_has_no_figure_until_the_agent_reports_one() {
        let mut bill = CostTracker::default();
        let unlisted = usage(Some("new"), UsageScope::Step);
        assert_eq!(priced(&mut bill, unlisted, &Usage::default()).0, NOTHING);
        assert_eq!(bill.unpriced.len(), 1);
        let mut total = usage(None, UsageScope::Iteration);
        total.cost_usd = Some(1.0);
        let _ = priced(&mut bill, total, &Usage::default());
        assert!(bill.unpriced().is_empty());
    }

    #[test]
    fn a_total_over_several_models_costs_what_its_steps_cost() {
        let mut bill = CostTracker::default();
        let mut so_far = Usage::default();
        for model in ["cheap", "dear"] {
            let mut step = usage(Some(model), UsageScope::Step);
            bill.price(&mut step, &so_far, &rules());
            so_far.add(&step);
        }
        let total = priced(&mut bill, usage(None, UsageScope::Iteration), &so_far);
        assert_eq!(total, (Some(11.0), Some(CostSource::Priced)));
    }
}
