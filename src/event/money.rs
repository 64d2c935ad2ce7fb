//! Amounts of money: finite and never negative, whatever an agent reports.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An amount in US dollars: finite and not negative.
#[derive(Debug, Clone, Copy, Default, PartialEq, PartialOrd)]
pub struct Usd(f64);

/// Amounts below this are written with six decimals, so that sums have no rounding errors in their last digits.
const MAX_ROUNDED: f64 = 1e9;

impl Usd {
    pub const ZERO: Self = Self(0.0);
    pub const MAX: Self = Self(f64::MAX);

    /// Returns `None` for an amount that is negative, infinite or not a number.
    pub fn new(amount: f64) -> Option<Self> {
        // The sum turns -0.0 into 0.0.
        (amount.is_finite() && amount >= 0.0).then_some(Self(amount + 0.0))
    }

    pub const fn get(self) -> f64 {
        self.0
    }

    #[must_use]
    pub fn saturating_add(self, other: Self) -> Self {
        Self::new(self.0 + other.0).unwrap_or(Self::MAX)
    }

    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self::new(self.0 - other.0).unwrap_or(Self::ZERO)
    }

    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }
}

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let amount = match self.0 < MAX_ROUNDED {
            true => (self.0 * 1e6).round() / 1e6,
            false => self.0,
        };
        serializer.serialize_f64(amount)
    }
}

impl From<Usd> for f64 {
    fn from(amount: Usd) -> Self {
        amount.0
    }
}

impl PartialEq<f64> for Usd {
    fn eq(&self, other: &f64) -> bool {
        self.0 == *other
    }
}

impl JsonSchema for Usd {
    fn schema_name() -> Cow<'static, str> {
        "Usd".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0 })
    }
}

/// Reads an optional amount. An invalid amount is treated as absent, so that its record stays readable.
pub(crate) fn optional_usd<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Usd>, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.and_then(Usd::new))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_infinite_and_undefined_amounts_are_rejected() {
        for amount in [-0.01, f64::NEG_INFINITY, f64::INFINITY, f64::NAN] {
            assert_eq!(Usd::new(amount), None, "{amount}");
        }
        assert!(Usd::new(-0.0).is_some_and(|zero| zero.get().is_sign_positive()));
    }

    #[test]
    fn sums_stay_finite_and_differences_stay_positive() {
        let (one, most) = (Usd(1.0), Usd::MAX);
        assert_eq!(most.saturating_add(most), most);
        assert_eq!(one.saturating_sub(most), Usd::ZERO);
    }
}
