//! The expected type of each configuration key, for error messages. The types come from the JSON schemas.

use serde_json::Value;

use crate::policy::{Percent, Seconds};

use super::diagnostic::quoted;
use super::prices::PriceFile;
use super::schema;
use super::suite::Suite;

/// The type of value that a key expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    Mapping,
    List,
    String,
    StringOrList,
    Keyword,
    Boolean,
    Number,
    Integer,
    Seconds,
    Percent,
    Bytes,
}

/// The schema that a file follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileKind {
    Settings,
    Prices,
    Suite,
}

impl FileKind {
    /// The type of a key; a string for an unknown key.
    pub(super) fn expected_type(self, key: &str) -> Expected {
        let of_file = match self {
            Self::Settings => schema::find(&schema::SETTINGS, key).map(Expected::of),
            Self::Prices => schema::find(&schema::generate::<PriceFile>(), key).map(Expected::of),
            Self::Suite => schema::find(&schema::generate::<Suite>(), key).map(Expected::of),
        };
        of_file.unwrap_or(Expected::String)
    }
}

impl Expected {
    fn of(schema: &Value) -> Self {
        let types: Vec<&str> = match &schema["type"] {
            Value::String(only) => vec![only],
            Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        match (schema["format"].as_str(), types.as_slice()) {
            (Some("seconds"), _) => Self::Seconds,
            (Some("bytes"), _) => Self::Bytes,
            (Some("percent"), _) => Self::Percent,
            _ if schema["enum"].is_array() || schema["oneOf"].is_array() => Self::Keyword,
            _ if schema["anyOf"].is_array() => Self::StringOrList,
            (_, ["object"]) => Self::Mapping,
            (_, ["array"]) => Self::List,
            (_, ["boolean"]) => Self::Boolean,
            (_, ["integer"]) => Self::Integer,
            (_, ["number"]) => Self::Number,
            _ => Self::String,
        }
    }

    pub(super) fn phrase(self) -> &'static str {
        match self {
            Self::Mapping => "a mapping",
            Self::List => "a list",
            Self::String => "a string",
            Self::StringOrList => "a string or a list of strings",
            Self::Keyword => "a single word",
            Self::Boolean => "`true` or `false`",
            Self::Number => "a number",
            Self::Integer => "an integer",
            Self::Seconds => Seconds::EXPECTED,
            Self::Percent => Percent::EXPECTED,
            Self::Bytes => "an integer (bytes)",
        }
    }

    /// What to write instead of a scalar of another type, if that can be derived.
    pub(super) fn correction(self, found: &str) -> Option<String> {
        match self {
            Self::Boolean => parse_boolean(found).map(|boolean| format!("write `{boolean}`")),
            Self::Seconds => parse_duration(found)
                .map(|seconds| format!("write `{}`", Seconds(seconds)))
                .or_else(|| integer_help(found)),
            Self::Integer | Self::Bytes => integer_help(found),
            Self::Number => found
                .contains('$')
                .then(|| "write the number without a currency sign".to_owned()),
            Self::List => Some(format!("write `[\"{found}\"]`, or one `- item` per line")),
            Self::String | Self::StringOrList => Some(format!("quote the string: `\"{found}\"`")),
            Self::Mapping => Some(self.structure_help(self).to_owned()),
            Self::Keyword | Self::Percent => None,
        }
    }

    /// What to write instead of a list or a mapping. `item` is the expected type of list items.
    pub(super) fn structure_help(self, item: Self) -> &'static str {
        match (self, item) {
            (Self::Mapping, _) => "write `key: value` lines",
            (Self::List, Self::Mapping) => "write each item as `- name: …`",
            (Self::List | Self::StringOrList, _) => "write each item as `- value`",
            _ => "write a single value",
        }
    }

    /// The error message for a scalar of another type.
    pub(super) fn mismatch(self, found: &str) -> String {
        format!("expected {}, found {}", self.phrase(), quoted(found))
    }
}

fn parse_boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "y" | "1" => Some(true),
        "false" | "no" | "off" | "n" | "0" => Some(false),
        _ => None,
    }
}

/// Converts a duration with a long unit to seconds, to suggest how to write it: `5 min` is 300.
fn parse_duration(text: &str) -> Option<u64> {
    let digits = text.find(|character: char| !character.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let seconds_per_unit: u64 = match unit.trim() {
        "s" | "sec" | "secs" | "second" | "seconds" => 1,
        "m" | "min" | "mins" | "minute" | "minutes" => 60,
        "h" | "hour" | "hours" => 3600,
        "d" | "day" | "days" => 86_400,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(seconds_per_unit)
}

fn integer_help(found: &str) -> Option<String> {
    let digits = found.strip_prefix(['-', '+']).unwrap_or(found);
    let all_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits {
        return None;
    }
    let help = if found.starts_with('-') {
        "the value must not be negative".to_owned()
    } else if digits.starts_with('0') {
        format!("remove the leading zero: `{}`", digits.trim_start_matches('0'))
    } else {
        format!("the maximum is {}", u64::MAX)
    };
    Some(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_of_a_key_comes_from_the_schema() {
        for (key, expected) in [
            ("", Expected::Mapping),
            ("adapters.claude", Expected::Mapping),
            ("adapters.my.tool.idle_timeout", Expected::Seconds),
            ("cli.pty_mode", Expected::Boolean),
            ("cli.transcript", Expected::String),
            ("event_loop.completion_match", Expected::Keyword),
            ("event_loop.completion_promise", Expected::StringOrList),
            ("event_loop.completion_promise[1]", Expected::String),
            ("event_loop.max_cost_usd", Expected::Number),
            ("event_loop.max_iterations", Expected::Integer),
            ("event_loop.max_line_bytes", Expected::Bytes),
            ("event_loop.prompt_file", Expected::String),
            ("gates", Expected::List),
            ("gates[0]", Expected::Mapping),
            ("gates[0].env", Expected::Mapping),
            ("gates[0].env.MAX_TIMEOUT", Expected::String),
            ("hats.builder.triggers[0]", Expected::String),
            ("session", Expected::Keyword),
        ] {
            assert_eq!(FileKind::Settings.expected_type(key), expected, "{key}");
        }
        assert_eq!(
            FileKind::Prices.expected_type("models.gpt-5.2.input"),
            Expected::Number
        );
        assert_eq!(
            FileKind::Suite.expected_type("tasks[0].limits.max_tokens"),
            Expected::Integer
        );
    }

    #[test]
    fn duration_with_a_unit_is_converted_to_seconds() {
        assert_eq!(parse_duration("5m"), Some(300));
        assert_eq!(parse_duration("2 hours"), Some(7200));
        assert_eq!(parse_duration("300"), None);
        assert_eq!(parse_duration("5 parsecs"), None);
        assert_eq!(parse_duration("99999999999999999999d"), None);
    }
}
