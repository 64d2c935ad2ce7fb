//! What tokens cost by the user's own price list. Nothing is guessed: where a price is missing, there are no dollars.

use std::fmt;

use crate::event::Usage;

/// US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    pub cache_read: Option<f64>,
    pub cache_write: Option<f64>,
}

/// Prices by model: names, or patterns in which `*` stands for anything.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prices {
    rows: Vec<(String, Price)>,
}

/// Why there is no figure.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NoPrice {
    /// Nobody says which model it was.
    UnnamedModel,
    UnlistedModel {
        model: String,
    },
    /// The model is listed, but not what it charges for this.
    MissingPart {
        model: String,
        part: &'static str,
    },
    /// The agent does not tell input from output.
    OnlyTotal,
}

impl fmt::Display for NoPrice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnnamedModel => {
                f.write_str("the agent does not say which model it used; name it with `cli.model`")
            }
            Self::UnlistedModel { model } => write!(f, "the price list has no model `{model}`"),
            Self::MissingPart { model, part } => {
                write!(f, "the price list has no `{part}` price for model `{model}`")
            }
            Self::OnlyTotal => f.write_str("the agent does not tell input tokens from output tokens"),
        }
    }
}

const MILLION: f64 = 1e6;

impl Prices {
    /// The most specific pattern first: the one that says most before its first `*`, then the one that says most.
    pub fn new(rows: impl IntoIterator<Item = (String, Price)>) -> Self {
        let mut rows: Vec<(String, Price)> = rows.into_iter().collect();
        let literal = |pattern: &str| pattern.find('*').unwrap_or(usize::MAX);
        let letters = |pattern: &str| pattern.len() - pattern.matches('*').count();
        rows.sort_by_cached_key(|(pattern, _)| {
            std::cmp::Reverse((literal(pattern), letters(pattern), pattern.clone()))
        });
        Self { rows }
    }

    /// What this usage costs, in dollars.
    pub(crate) fn cost(&self, model: Option<&str>, usage: &Usage) -> Result<f64, NoPrice> {
        let model = model.ok_or(NoPrice::UnnamedModel)?;
        let unlisted = || NoPrice::UnlistedModel {
            model: model.to_owned(),
        };
        let row = self.rows.iter().find(|(pattern, _)| matches(pattern, model));
        let (_, price) = row.ok_or_else(unlisted)?;
        let (Some(prompt), Some(completion)) = (usage.prompt_tokens, usage.completion_tokens) else {
            return Err(NoPrice::OnlyTotal);
        };
        let cached = usage.cached_tokens.unwrap_or(0);
        let written = usage.cache_write_tokens.unwrap_or(0);
        let fresh = prompt.saturating_sub(cached).saturating_sub(written);
        let part = |tokens: u64, price: Option<f64>, part: &'static str| match price {
            #[expect(clippy::cast_precision_loss, reason = "sums of money, not identifiers")]
            Some(price) => Ok(tokens as f64 * price / MILLION),
            None if tokens == 0 => Ok(0.0),
            None => Err(NoPrice::MissingPart {
                model: model.to_owned(),
                part,
            }),
        };
        Ok(part(fresh, Some(price.input), "input")?
            + part(completion, Some(price.output), "output")?
            + part(cached, price.cache_read, "cache_read")?
            + part(written, price.cache_write, "cache_write")?)
    }
}

/// Whether a name is one of those that a pattern stands for.
fn matches(pattern: &str, name: &str) -> bool {
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

    /// Which row of the list counts, from 1.
    fn row(patterns: &[&str], model: &str) -> Option<f64> {
        list(patterns).cost(Some(model), &usage(1_000_000, 0)).ok()
    }

    #[test]
    fn patterns_match_from_end_to_end() {
        for (pattern, model, fits) in [
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
            assert_eq!(matches(pattern, model), fits, "{pattern} {model}");
        }
    }

    #[test]
    fn the_most_specific_pattern_counts() {
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
    fn every_kind_of_token_has_its_own_price() {
        let mut usage = usage(1_000_000, 100_000);
        usage.cached_tokens = Some(400_000);
        let cost = list(&["m"]).cost(Some("m"), &usage);
        assert!((cost.unwrap() - (0.6 + 0.04 + 1.0)).abs() < 1e-9);
    }

    #[test]
    fn what_has_no_price_costs_no_guess() {
        let prices = list(&["m"]);
        let mut written = usage(10, 10);
        written.cache_write_tokens = Some(5);
        let missing = prices.cost(Some("m"), &written).unwrap_err();
        assert_eq!(
            missing.to_string(),
            "the price list has no `cache_write` price for model `m`"
        );
        assert_eq!(prices.cost(None, &usage(1, 1)), Err(NoPrice::UnnamedModel));
        assert_eq!(
            prices.cost(Some("other"), &usage(1, 1)).unwrap_err().to_string(),
            "the price list has no model `other`"
        );
        let total = Usage {
            total_tokens: Some(7),
            ..Usage::default()
        };
        assert_eq!(prices.cost(Some("m"), &total), Err(NoPrice::OnlyTotal));
    }
}
