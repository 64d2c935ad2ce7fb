//! A duration in whole seconds, written as `90s`, `5m`, `1h30m` or a plain number of seconds.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, Unexpected, Visitor};
use serde::{Deserialize, Serialize};

/// A duration in whole seconds. It is stored as a number, so that recorded settings stay comparable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Seconds(pub u64);

/// The text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {}", Seconds::EXPECTED)]
pub struct InvalidDuration;

const UNITS: [(char, u64); 4] = [('d', 86_400), ('h', 3600), ('m', 60), ('s', 1)];

impl Seconds {
    pub const ZERO: Self = Self(0);
    /// How a duration is written, for error messages.
    pub const EXPECTED: &str = "a duration such as `90s`, `5m`, `1h30m`, or a number of seconds";

    pub fn duration(self) -> Duration {
        Duration::from_secs(self.0)
    }

    /// The duration, or `None` if it is 0, which disables a timeout.
    pub fn nonzero(self) -> Option<Duration> {
        (self.0 > 0).then(|| self.duration())
    }
}

impl From<Seconds> for u64 {
    fn from(seconds: Seconds) -> Self {
        seconds.0
    }
}

impl FromStr for Seconds {
    type Err = InvalidDuration;

    /// Units must be given in descending order, each at most once.
    fn from_str(text: &str) -> Result<Self, InvalidDuration> {
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            let has_leading_zero = text.len() > 1 && text.starts_with('0');
            let number = text.parse().ok().filter(|_| !has_leading_zero);
            return number.map(Self).ok_or(InvalidDuration);
        }
        let (mut rest, mut units, mut total) = (text, &UNITS[..], 0_u64);
        while !rest.is_empty() {
            let end = rest
                .find(|character: char| !character.is_ascii_digit())
                .ok_or(InvalidDuration)?;
            let (digits, after) = rest.split_at(end);
            let unit = after.chars().next().ok_or(InvalidDuration)?;
            let index = units
                .iter()
                .position(|(known, _)| *known == unit)
                .ok_or(InvalidDuration)?;
            let number: u64 = digits.parse().map_err(|_| InvalidDuration)?;
            total = number
                .checked_mul(units[index].1)
                .and_then(|part| total.checked_add(part))
                .ok_or(InvalidDuration)?;
            units = &units[index + 1..];
            rest = &after[1..];
        }
        if text.is_empty() {
            return Err(InvalidDuration);
        }
        Ok(Self(total))
    }
}

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let mut rest = self.0;
        for (unit, length) in UNITS.iter().filter(|(unit, _)| *unit != 'd') {
            if rest >= *length {
                write!(f, "{}{unit}", rest / length)?;
                rest %= length;
            }
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct SecondsVisitor;

        impl Visitor<'_> for SecondsVisitor {
            type Value = Seconds;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(Seconds::EXPECTED)
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Seconds, E> {
                Ok(Seconds(number))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Seconds, E> {
                let invalid = || E::invalid_value(Unexpected::Signed(number), &self);
                u64::try_from(number).map(Seconds).map_err(|_| invalid())
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Seconds, E> {
                text.parse()
                    .map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
            }
        }

        from.deserialize_any(SecondsVisitor)
    }
}

impl JsonSchema for Seconds {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Seconds".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["integer", "string"],
            "format": "seconds",
            "minimum": 0,
            "pattern": "^(0|[1-9][0-9]*|(?=[0-9])([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?)$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_with_units_or_in_seconds() {
        for (text, seconds) in [
            ("0", 0),
            ("300", 300),
            ("90s", 90),
            ("5m", 300),
            ("4h", 14_400),
            ("1h30m", 5400),
            ("1d2h3m4s", 93_784),
            ("90m", 5400),
        ] {
            assert_eq!(text.parse(), Ok(Seconds(seconds)), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_durations() {
        for text in [
            "",
            "m",
            "5 m",
            "5x",
            "30m1h",
            "5m5m",
            "1h30",
            "-5m",
            "1.5h",
            "010",
            "5M",
            "5µ",
            "99999999999999999999",
            "9999999999999999d",
        ] {
            assert_eq!(text.parse::<Seconds>(), Err(InvalidDuration), "{text}");
        }
    }

    #[test]
    fn printed_duration_can_be_read_again() {
        for (seconds, text) in [
            (0, "0s"),
            (59, "59s"),
            (300, "5m"),
            (5400, "1h30m"),
            (86_400, "24h"),
        ] {
            assert_eq!(Seconds(seconds).to_string(), text);
            assert_eq!(text.parse(), Ok(Seconds(seconds)));
        }
    }

    #[test]
    fn json_accepts_both_forms_and_stores_a_number() {
        assert_eq!(serde_json::from_str::<Seconds>("\"5m\"").unwrap(), Seconds(300));
        assert_eq!(serde_json::from_str::<Seconds>("300").unwrap(), Seconds(300));
        assert!(serde_json::from_str::<Seconds>("-1").is_err());
        assert!(serde_json::from_str::<Seconds>("1.5").is_err());
        assert_eq!(serde_json::to_string(&Seconds(300)).unwrap(), "300");
    }
}
