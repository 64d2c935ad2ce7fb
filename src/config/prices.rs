//! Loads and validates the user's price list (`prices.yml`).

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::policy::Price;

use super::diagnostic::{ConfigError, Problem};
use super::layers::read_text;
use super::partial::null_as_default;
use super::yaml::Document;

/// Prices by model name or pattern (`claude-opus-*`).
pub type PriceList = BTreeMap<String, Price>;

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PriceFile {
    #[serde(default, deserialize_with = "null_as_default")]
    models: PriceList,
}

/// Loads a price list. Errors have the same form as those of `ralph.yml`.
pub fn load_prices(path: &Path) -> Result<PriceList, ConfigError> {
    if !path.exists() {
        return Err(ConfigError::Missing {
            path: path.to_owned(),
        });
    }
    let text = read_text(path)?;
    let document = Document::of_prices(path, &text);
    let file: PriceFile = document.read().map_err(ConfigError::Diagnostic)?;
    check(&file.models).map_err(|problem| ConfigError::Diagnostic(Box::new(document.diagnostic(problem))))?;
    Ok(file.models)
}

fn check(models: &PriceList) -> Result<(), Problem> {
    for (model, price) in models {
        if model.trim().is_empty() {
            return Err(Problem::at_key(
                "models",
                "expected a model name, found an empty key",
            ));
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
                let message = format!("expected a finite number of 0 or more, found `{price}`");
                return Err(Problem::at_value(key, message));
            }
        }
    }
    Ok(())
}
