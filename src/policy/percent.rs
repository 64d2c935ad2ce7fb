//! A percentage, written as `20%` or `20`.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, Unexpected, Visitor};
use serde::{Deserialize, Serialize};

/// A percentage from 0 to 100. It is stored as a number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Percent(pub u8);

/// The text is not a percentage.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {}", Percent::EXPECTED)]
pub struct InvalidPercent;

impl Percent {
    /// How a percentage is written, for error messages.
    pub const EXPECTED: &str = "a percentage from `0%` to `100%`";

    /// As a share from 0 to 1.
    pub fn share(self) -> f64 {
        f64::from(self.0) / 100.0
    }

    /// The percentage of a share from 0 to 1, rounded down.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to 0..=255"
    )]
    pub fn of_share(share: f64) -> Self {
        // The addition keeps 0.29 * 100 from becoming 28.
        Self((share * 100.0 + 1e-9).clamp(0.0, 255.0) as u8)
    }

    fn new(number: u64) -> Option<Self> {
        u8::try_from(number)
            .ok()
            .filter(|number| *number <= 100)
            .map(Self)
    }
}

impl FromStr for Percent {
    type Err = InvalidPercent;

    fn from_str(text: &str) -> Result<Self, InvalidPercent> {
        let number = text.trim().strip_suffix('%').unwrap_or(text).trim();
        let number = number.parse().ok().filter(|_| !number.starts_with('+'));
        number.and_then(Self::new).ok_or(InvalidPercent)
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct PercentVisitor;

        impl Visitor<'_> for PercentVisitor {
            type Value = Percent;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(Percent::EXPECTED)
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Percent, E> {
                let invalid = || E::invalid_value(Unexpected::Unsigned(number), &self);
                Percent::new(number).ok_or_else(invalid)
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Percent, E> {
                Err(E::invalid_value(Unexpected::Signed(number), &self))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Percent, E> {
                text.parse()
                    .map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
            }
        }

        from.deserialize_any(PercentVisitor)
    }
}

impl JsonSchema for Percent {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Percent".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["integer", "string"],
            "format": "percent",
            "minimum": 0,
            "maximum": 100,
            "pattern": "^([0-9]|[1-9][0-9]|100)%?$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_written_with_or_without_a_sign() {
        for (text, percent) in [("0", 0), ("20%", 20), ("20 %", 20), ("100%", 100)] {
            assert_eq!(text.parse(), Ok(Percent(percent)), "{text}");
        }
        for text in ["", "%", "-1", "101", "20.5", "+5", "20%%"] {
            assert_eq!(text.parse::<Percent>(), Err(InvalidPercent), "{text}");
        }
        assert_eq!(Percent(20).to_string(), "20%");
        assert_eq!(Percent::of_share(0.29), Percent(29));
        assert_eq!(Percent::of_share(f64::NAN), Percent(0));
        assert!(serde_json::from_str::<Percent>("120").is_err());
        assert_eq!(serde_json::from_str::<Percent>("\"7%\"").unwrap(), Percent(7));
    }
}
