//! The user's price list: what a million tokens of a model cost. Reads and checks it; what a run costs by it is
//! worked out elsewhere.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::diagnostic::{ConfigError, Problem};
use super::layers::read_text;
use super::partial::may_be_empty;
use super::yaml::Document;

/// One row of the list, in US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelPrice {
    pub input: f64,
    pub output: f64,
    pub cache_read: Option<f64>,
    pub cache_write: Option<f64>,
}

/// Names of models, or patterns of them (`claude-opus-*`), and their prices.
pub type PriceList = BTreeMap<String, ModelPrice>;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PriceFile {
    #[serde(default, deserialize_with = "may_be_empty")]
    models: PriceList,
}

/// Reads a price list; a mistake in it is explained as one in `ralph.yml` is.
pub fn load_prices(path: &Path) -> Result<PriceList, ConfigError> {
    if !path.exists() {
        return Err(ConfigError::Missing {
            path: path.to_owned(),
        });
    }
    let text = read_text(path)?;
    let document = Document::of_prices(path, &text);
    let file: PriceFile = document.read().map_err(ConfigError::Diagnostic)?;
    check(&file.models)
        .map_err(|complaint| ConfigError::Diagnostic(Box::new(document.mistake(complaint))))?;
    Ok(file.models)
}

fn check(models: &PriceList) -> Result<(), Problem> {
    for (model, price) in models {
        if model.trim().is_empty() {
            return Err(Problem::about_name("models", "has a model without a name"));
        }
        let prices = [
            ("input", Some(price.input)),
            ("output", Some(price.output)),
            ("cache_read", price.cache_read),
            ("cache_write", price.cache_write),
        ];
        for (part, price) in prices {
            if let Some(price) = price.filter(|price| !price.is_finite() || *price < 0.0) {
                let key = format!("models.{model}.{part}");
                let problem = format!("must be 0 or more and finite, but is `{price}`");
                return Err(Problem::about_value(key, problem));
            }
        }
    }
    Ok(())
}
