//! Token and cost figures, and their arithmetic.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Usd;
use super::money::optional_usd;

/// Tokens and cost. A figure that the agent did not report is absent; it is never estimated.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// All input tokens, including cached ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_tokens: Option<u64>,
    /// All output tokens, including reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// The part of `prompt_tokens` that was read from the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// The part of `prompt_tokens` that was written to the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// The part of `completion_tokens` that was used for reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// Cost in US dollars.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "optional_usd"
    )]
    pub cost_usd: Option<Usd>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_source: Option<CostSource>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "UsageScope::is_step")]
    pub scope: UsageScope,
}

/// The source of a cost figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CostSource {
    /// Reported by the agent.
    Reported,
    /// Calculated from the user's price list.
    Priced,
}

/// The period that a usage figure covers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UsageScope {
    /// One step; it is added to the previous steps.
    #[default]
    Step,
    /// The whole iteration; it replaces the sum of the steps.
    Iteration,
    /// The agent's whole session, including earlier iterations. A run records the part of the iteration instead.
    Session,
}

/// What the usage covers that an agent reports with the answer to an ACP prompt. Agents disagree about it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UsageMeaning {
    /// The prompt, with all its requests. This includes figures for the session, which begin at zero in each process.
    #[default]
    Prompt,
    /// Each request, reported while the prompt is worked on.
    Requests,
    /// The last request only. It is not used, because it would be too little.
    LastRequest,
    /// Nothing is reported.
    None,
}

impl UsageScope {
    fn is_step(&self) -> bool {
        *self == Self::Step
    }
}

impl Usage {
    /// True if neither tokens nor cost are known.
    pub fn is_empty(&self) -> bool {
        self.tokens().is_none() && self.cost_usd.is_none()
    }

    /// The reported total, or else the sum of the known figures.
    pub fn tokens(&self) -> Option<u64> {
        self.total_tokens
            .or_else(|| match (self.prompt_tokens, self.completion_tokens) {
                (None, None) => None,
                (prompt, completion) => Some(prompt.unwrap_or(0).saturating_add(completion.unwrap_or(0))),
            })
    }

    /// Adds other usage to this one.
    pub fn add(&mut self, other: &Self) {
        let tokens = combine(self.tokens(), other.tokens(), u64::saturating_add);
        self.merge(other, u64::saturating_add, Usd::saturating_add);
        self.total_tokens = tokens;
    }

    /// Adds a report to the iteration's total. A report that covers more than a step raises the total to its figures.
    pub fn accumulate(&mut self, report: &Self) {
        match report.scope {
            UsageScope::Step => self.add(report),
            UsageScope::Iteration | UsageScope::Session => self.raise_to(report),
        }
        self.scope = UsageScope::Step;
    }

    /// Subtracts an earlier figure of the same session.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut rest = self.clone();
        let tokens = combine(self.tokens(), earlier.tokens(), u64::saturating_sub);
        rest.merge(earlier, u64::saturating_sub, Usd::saturating_sub);
        rest.total_tokens = if self.tokens().is_some() { tokens } else { None };
        rest
    }

    /// Replaces this usage with a later total of the same attempt. No figure falls below what was already reported: an
    /// agent cannot take back what it has spent.
    fn raise_to(&mut self, total: &Self) {
        let least = self.tokens().max(total.tokens());
        let before = std::mem::replace(self, total.clone());
        let source = match total.cost_usd < before.cost_usd {
            true => before.cost_source,
            false => total.cost_source,
        };
        self.merge(&before, u64::max, Usd::max);
        self.cost_source = source;
        // The highest figures of two reports may add up to more than either of them.
        if self.tokens() != least {
            self.total_tokens = least;
        }
    }

    fn merge(&mut self, other: &Self, tokens: fn(u64, u64) -> u64, money: fn(Usd, Usd) -> Usd) {
        self.prompt_tokens = combine(self.prompt_tokens, other.prompt_tokens, tokens);
        self.completion_tokens = combine(self.completion_tokens, other.completion_tokens, tokens);
        self.cached_tokens = combine(self.cached_tokens, other.cached_tokens, tokens);
        self.cache_write_tokens = combine(self.cache_write_tokens, other.cache_write_tokens, tokens);
        self.reasoning_tokens = combine(self.reasoning_tokens, other.reasoning_tokens, tokens);
        self.cost_usd = combine(self.cost_usd, other.cost_usd, money);
        self.cost_source = match (self.cost_source, other.cost_source) {
            (Some(CostSource::Priced), _) | (_, Some(CostSource::Priced)) => Some(CostSource::Priced),
            (own, other) => own.or(other),
        };
        if self.model.is_none() {
            self.model.clone_from(&other.model);
        }
    }
}

/// Combines two figures. An unknown figure counts as zero, unless both are unknown.
fn combine<T: Default + Copy>(a: Option<T>, b: Option<T>, op: fn(T, T) -> T) -> Option<T> {
    match (a, b) {
        (None, None) => None,
        (a, b) => Some(op(a.unwrap_or_default(), b.unwrap_or_default())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(prompt: u64, completion: u64) -> Usage {
        Usage {
            prompt_tokens: Some(prompt),
            completion_tokens: Some(completion),
            ..Usage::default()
        }
    }

    #[test]
    fn unknown_figures_stay_unknown() {
        let mut sum = Usage::default();
        sum.add(&Usage {
            cost_usd: Usd::new(0.5),
            ..Usage::default()
        });
        assert_eq!(sum.tokens(), None);
        assert_eq!(sum.cost_usd, Usd::new(0.5));
    }

    #[test]
    fn add_sums_totals_when_only_one_side_reports_a_total() {
        let mut sum = tokens(10, 5);
        sum.add(&Usage {
            total_tokens: Some(100),
            ..Usage::default()
        });
        assert_eq!(sum.tokens(), Some(115));
    }

    #[test]
    fn since_subtracts_the_earlier_session_figure() {
        let new = tokens(2400, 200).since(&tokens(1200, 150));
        assert_eq!(
            (new.prompt_tokens, new.completion_tokens, new.tokens()),
            (Some(1200), Some(50), Some(1250))
        );
    }

    #[test]
    fn a_later_total_raises_figures_and_never_lowers_them() {
        let mut used = Usage {
            cost_usd: Usd::new(2.0),
            ..tokens(100, 50)
        };
        used.raise_to(&Usage {
            cost_usd: Usd::new(0.5),
            ..tokens(120, 10)
        });
        assert_eq!(
            (
                used.prompt_tokens,
                used.completion_tokens,
                used.tokens(),
                used.cost_usd
            ),
            (Some(120), Some(50), Some(150), Usd::new(2.0))
        );
        used.raise_to(&Usage::default());
        assert_eq!((used.tokens(), used.cost_usd), (Some(150), Usd::new(2.0)));
    }

    #[test]
    fn an_invalid_cost_in_a_record_is_absent() {
        for cost in ["-5", "-0.001", "null"] {
            let usage: Usage = serde_json::from_str(&format!(r#"{{"cost_usd":{cost}}}"#)).expect("usage");
            assert_eq!(usage.cost_usd, None, "{cost}");
        }
    }

    #[test]
    fn sum_with_one_priced_part_is_priced() {
        let mut sum = Usage {
            cost_usd: Usd::new(1.0),
            cost_source: Some(CostSource::Reported),
            ..Usage::default()
        };
        sum.add(&Usage {
            cost_usd: Usd::new(1.0),
            cost_source: Some(CostSource::Priced),
            ..Usage::default()
        });
        assert_eq!(sum.cost_source, Some(CostSource::Priced));
    }
}
