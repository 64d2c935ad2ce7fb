//! Computes the cost of tokens from the user's price list. A missing price is an error, never a guess.

use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::event::{Usage, Usd};

/// The prices of one model, in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    pub cache_read: Option<f64>,
    pub cache_write: Option<f64>,
}

/// Prices by model name or pattern, in which `*` matches any text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prices {
    rows: Vec<(String, Price)>,
}

/// Why a cost cannot be computed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MissingPrice {
    /// Neither the agent nor the configuration names the model.
    UnknownModel,
    UnlistedModel {
        model: String,
    },
    /// The model is listed without a price for this kind of token.
    MissingRate {
        model: String,
        part: &'static str,
    },
    /// The agent reports only the total number of tokens.
    NoTokenSplit,
}

impl fmt::Display for MissingPrice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownModel => f.write_str("the agent does not report its model; set `cli.model`"),
            Self::UnlistedModel { model } => write!(f, "the price list has no model `{model}`"),
            Self::MissingRate { model, part } => {
                write!(f, "the price list has no `{part}` price for model `{model}`")
            }
            Self::NoTokenSplit => f.write_str("the agent does not report input and output tokens separately"),
        }
    }
}

const MILLION: f64 = 1e6;

impl Prices {
    /// Sorts patterns by specificity: by the length before the first `*`, then by the number of literal characters.
    pub fn new(rows: impl IntoIterator<Item = (String, Price)>) -> Self {
        let mut rows: Vec<(String, Price)> = rows.into_iter().collect();
        let literal = |pattern: &str| pattern.find('*').unwrap_or(usize::MAX);
        let literals = |pattern: &str| pattern.len() - pattern.matches('*').count();
        rows.sort_by_cached_key(|(pattern, _)| {
            std::cmp::Reverse((literal(pattern), literals(pattern), pattern.clone()))
        });
        Self { rows }
    }

    /// The cost of a usage report in US dollars.
    pub(crate) fn cost(&self, model: Option<&str>, usage: &Usage) -> Result<Usd, MissingPrice> {
        let model = model.ok_or(MissingPrice::UnknownModel)?;
        let unlisted = || MissingPrice::UnlistedModel {
            model: model.to_owned(),
        };
        let row = self
            .rows
            .iter()
            .find(|(pattern, _)| pattern_matches(pattern, model));
        let (_, price) = row.ok_or_else(unlisted)?;
        let (Some(prompt), Some(completion)) = (usage.prompt_tokens, usage.completion_tokens) else {
            return Err(MissingPrice::NoTokenSplit);
        };
        let cached = usage.cached_tokens.unwrap_or(0);
        let cache_written = usage.cache_write_tokens.unwrap_or(0);
        let fresh = prompt.saturating_sub(cached).saturating_sub(cache_written);
        let part = |tokens: u64, price: Option<f64>, part: &'static str| match price {
            #[expect(clippy::cast_precision_loss, reason = "sums of money, not identifiers")]
            Some(price) => Ok(tokens as f64 * price / MILLION),
            None if tokens == 0 => Ok(0.0),
            None => Err(MissingPrice::MissingRate {
                model: model.to_owned(),
                part,
            }),
        };
        let cost = part(fresh, Some(price.input), "input")?
            + part(completion, Some(price.output), "output")?
            + part(cached, price.cache_read, "cache_read")?
            + part(cache_written, price.cache_write, "cache_write")?;
        Ok(Usd::new(cost).unwrap_or(Usd::MAX))
    }
}

/// Whether a model name matches a pattern.
fn pattern_matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(input: f64) -> Price {
        Price {
            input,
            output: 10.0 * input,
            cache_read: Some(input / 10.0),
            cache_write: None,
        }
    }

    fn usage(prompt: u64, completion: u64) -> Usage {
        Usage {
            prompt_tokens: Some(prompt),
            completion_tokens: Some(completion),
            ..Usage::default()
        }
    }

    fn list(patterns: &[&str]) -> Prices {
        let rows = patterns.iter().zip(1_u32..);
        Prices::new(rows.map(|(pattern, number)| ((*pattern).to_owned(), price(f64::from(number)))))
    }

    /// The 1-based number of the row that applies.
    fn row(patterns: &[&str], model: &str) -> Option<f64> {
        list(patterns)
            .cost(Some(model), &usage(1_000_000, 0))
            .ok()
            .map(f64::from)
    }

    #[test]
    fn patterns_match_the_whole_name() {
        for (pattern, model, expected) in [
            ("claude-opus-*", "claude-opus-4-5", true),
            ("claude-opus-*", "claude-opus-", true),
            ("claude-opus-*", "claude-opus", false),
            ("gpt-5", "gpt-5", true),
            ("gpt-5", "gpt-5-mini", false),
            ("*", "", true),
            ("*-mini", "gpt-5-mini", true),
            ("*-mini", "gpt-5-mini-2", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c", false),
            ("ab*ba", "aba", false),
            ("anthropic/*:*", "anthropic/claude:free", true),
        ] {
            assert_eq!(pattern_matches(pattern, model), expected, "{pattern} {model}");
        }
    }

    #[test]
    fn most_specific_pattern_wins() {
        assert_eq!(
            row(&["*", "claude-*", "claude-opus-*"], "claude-opus-4"),
            Some(3.0)
        );
        assert_eq!(
            row(&["claude-opus-4*", "claude-opus-4"], "claude-opus-4"),
            Some(2.0)
        );
        assert_eq!(
            row(
                &["claude-*", "*-opus-latest-version"],
                "claude-opus-latest-version"
            ),
            Some(1.0)
        );
        assert_eq!(row(&["gpt-*", "gpt-*-mini"], "gpt-5-mini"), Some(2.0));
        assert_eq!(row(&["gpt-*"], "gemini"), None);
    }

    #[test]
    fn each_kind_of_token_has_its_own_price() {
        let mut usage = usage(1_000_000, 100_000);
        usage.cached_tokens = Some(400_000);
        let cost = list(&["m"]).cost(Some("m"), &usage);
        assert!((cost.unwrap().get() - (0.6 + 0.04 + 1.0)).abs() < 1e-9);
    }

    #[test]
    fn missing_price_is_an_error() {
        let prices = list(&["m"]);
        let mut cache_written = usage(10, 10);
        cache_written.cache_write_tokens = Some(5);
        let missing = prices.cost(Some("m"), &cache_written).unwrap_err();
        assert_eq!(
            missing.to_string(),
            "the price list has no `cache_write` price for model `m`"
        );
        assert_eq!(prices.cost(None, &usage(1, 1)), Err(MissingPrice::UnknownModel));
        assert_eq!(
            prices.cost(Some("other"), &usage(1, 1)).unwrap_err().to_string(),
            "the price list has no model `other`"
        );
        let total = Usage {
            total_tokens: Some(7),
            ..Usage::default()
        };
        assert_eq!(prices.cost(Some("m"), &total), Err(MissingPrice::NoTokenSplit));
    }
}
