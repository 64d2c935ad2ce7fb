//! Tokens and money.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a piece of work used. A figure that the agent did not give is absent, never zero and never guessed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// All input tokens, those read from a cache included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_tokens: Option<u64>,
    /// All output tokens, reasoning included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// The part of `prompt_tokens` that was read from a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// The part of `prompt_tokens` that was written to a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// The part of `completion_tokens` that was spent on reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_source: Option<CostSource>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "UsageScope::is_step")]
    pub scope: UsageScope,
}

/// Where a dollar figure comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CostSource {
    /// The agent said so.
    Reported,
    /// From the user's own price list.
    Priced,
}

/// What a usage figure covers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UsageScope {
    /// One step; adds to what came before.
    #[default]
    Step,
    /// The whole iteration; replaces what was added up so far.
    Iteration,
    /// The agent's whole session, earlier iterations included; their part must be taken off.
    Session,
}

impl UsageScope {
    fn is_step(&self) -> bool {
        *self == Self::Step
    }
}

impl Usage {
    /// Nothing is known.
    pub fn is_empty(&self) -> bool {
        self.tokens().is_none() && self.cost_usd.is_none()
    }

    /// The total as given, or else the sum of what is known.
    pub fn tokens(&self) -> Option<u64> {
        self.total_tokens
            .or_else(|| match (self.prompt_tokens, self.completion_tokens) {
                (None, None) => None,
                (prompt, completion) => Some(prompt.unwrap_or(0).saturating_add(completion.unwrap_or(0))),
            })
    }

    /// Adds another piece of work to this one.
    pub fn add(&mut self, other: &Self) {
        let tokens = sum(self.tokens(), other.tokens(), u64::saturating_add);
        self.merge(other, u64::saturating_add, |a, b| a + b);
        self.total_tokens = tokens;
    }

    /// What is left of a session's figure when an earlier reading of the same session is taken off.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut rest = self.clone();
        let tokens = sum(self.tokens(), earlier.tokens(), u64::saturating_sub);
        rest.merge(earlier, u64::saturating_sub, |a, b| (a - b).max(0.0));
        rest.total_tokens = if self.tokens().is_some() { tokens } else { None };
        rest
    }

    fn merge(&mut self, other: &Self, tokens: fn(u64, u64) -> u64, money: fn(f64, f64) -> f64) {
        self.prompt_tokens = sum(self.prompt_tokens, other.prompt_tokens, tokens);
        self.completion_tokens = sum(self.completion_tokens, other.completion_tokens, tokens);
        self.cached_tokens = sum(self.cached_tokens, other.cached_tokens, tokens);
        self.cache_write_tokens = sum(self.cache_write_tokens, other.cache_write_tokens, tokens);
        self.reasoning_tokens = sum(self.reasoning_tokens, other.reasoning_tokens, tokens);
        self.cost_usd = sum(self.cost_usd, other.cost_usd, money);
        self.cost_source = match (self.cost_source, other.cost_source) {
            (Some(CostSource::Priced), _) | (_, Some(CostSource::Priced)) => Some(CostSource::Priced),
            (mine, theirs) => mine.or(theirs),
        };
        if self.model.is_none() {
            self.model.clone_from(&other.model);
        }
    }
}

/// Unknown stays unknown; a known figure and an unknown one give the known one.
fn sum<T: Default + Copy>(a: Option<T>, b: Option<T>, op: fn(T, T) -> T) -> Option<T> {
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
            cost_usd: Some(0.5),
            ..Usage::default()
        });
        assert_eq!(sum.tokens(), None);
        assert_eq!(sum.cost_usd, Some(0.5));
    }

    #[test]
    fn totals_add_up_even_when_only_one_side_states_a_total() {
        let mut sum = tokens(10, 5);
        sum.add(&Usage {
            total_tokens: Some(100),
            ..Usage::default()
        });
        assert_eq!(sum.tokens(), Some(115));
    }

    #[test]
    fn a_session_figure_minus_its_earlier_reading_is_the_new_work() {
        let new = tokens(2400, 200).since(&tokens(1200, 150));
        assert_eq!(
            (new.prompt_tokens, new.completion_tokens, new.tokens()),
            (Some(1200), Some(50), Some(1250))
        );
    }

    #[test]
    fn one_priced_part_makes_the_sum_priced() {
        let mut sum = Usage {
            cost_usd: Some(1.0),
            cost_source: Some(CostSource::Reported),
            ..Usage::default()
        };
        sum.add(&Usage {
            cost_usd: Some(1.0),
            cost_source: Some(CostSource::Priced),
            ..Usage::default()
        });
        assert_eq!(sum.cost_source, Some(CostSource::Priced));
    }
}
