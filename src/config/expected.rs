//! The expected type of each configuration key, for error messages. A test compares it with the types in
//! `settings.rs`.

use crate::policy::Seconds;

use super::diagnostic::quoted;

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
    Bytes,
}

impl Expected {
    /// The type depends on the last part of the key, except where the user chooses the name.
    pub(super) fn of(key: &str) -> Self {
        let last = key.rsplit('.').next().unwrap_or(key);
        let parent = key.strip_suffix(last).unwrap_or_default().trim_end_matches('.');
        match last {
            _ if key.is_empty() || matches!(parent, "adapters" | "hats") => Self::Mapping,
            _ if parent.ends_with("].env") => Self::String,
            "env" | "cli" | "adapters" | "event_loop" | "hats" | "hooks" | "driver" => Self::Mapping,
            item if item.ends_with(']') => {
                if item.starts_with("gates[") {
                    Self::Mapping
                } else {
                    Self::String
                }
            }
            "gates" | "args" | "triggers" | "publishes" | "allowed_paths" => Self::List,
            "completion_promise" => Self::StringOrList,
            "prompt_mode"
            | "default_mode"
            | "completion_match"
            | "on_declared_failure"
            | "output_format"
            | "session" => Self::Keyword,
            "enabled" | "pty_mode" => Self::Boolean,
            "max_cost_usd" => Self::Number,
            "max_line_bytes" => Self::Bytes,
            time if time.ends_with("timeout") || time.ends_with("_secs") || time.ends_with("_seconds") => {
                Self::Seconds
            }
            count if count.starts_with("max_") => Self::Integer,
            _ => Self::String,
        }
    }

    /// Like `of`, for a price list. Model names contain dots, so prices are recognized by their suffix.
    pub(super) fn of_price(key: &str) -> Self {
        const PRICES: [&str; 4] = [".input", ".output", ".cache_read", ".cache_write"];
        if PRICES.iter().any(|price| key.ends_with(price)) {
            Self::Number
        } else {
            Self::Mapping
        }
    }

    /// Like `of`, for the tasks file of a benchmark.
    pub(super) fn of_suite(key: &str) -> Self {
        match key.rsplit('.').next().unwrap_or(key) {
            "tasks" | "agents" => Self::List,
            item if item.starts_with("tasks[") || item.starts_with("agents[") => Self::Mapping,
            "limits" => Self::Mapping,
            "repeat" | "jobs" => Self::Integer,
            _ => Self::of(key),
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
            Self::Keyword => None,
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
    use serde_json::Value;

    use super::*;
    use crate::config::{AdapterSettings, Settings};
    use crate::policy::{Gate, Hat};

    /// Walks the serialized settings, so that a wrong type for a new key fails this test.
    #[test]
    fn expected_type_of_every_setting_is_correct() {
        let mut settings = Settings::default();
        settings
            .adapters
            .insert("claude".to_owned(), AdapterSettings::default());
        settings.hats.insert("builder".to_owned(), Hat::default());
        settings.gates.push(Gate {
            name: "test".to_owned(),
            run: "make".to_owned(),
            timeout: Seconds(1),
            cwd: Some("web".into()),
            env: [("MAX_TIMEOUT".to_owned(), "1".to_owned())].into(),
        });
        compare("", &serde_json::to_value(settings).unwrap());
    }

    fn compare(key: &str, value: &Value) {
        let expected = Expected::of(key);
        let fits = match value {
            Value::Null => !matches!(expected, Expected::Mapping | Expected::List),
            Value::Bool(_) => expected == Expected::Boolean,
            Value::Number(_) => matches!(expected, Expected::Integer | Expected::Seconds | Expected::Bytes),
            Value::String(_) => matches!(expected, Expected::String | Expected::Keyword),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    compare(&format!("{key}[{index}]"), item);
                }
                // `extra_args` cannot be set in a file.
                matches!(expected, Expected::List | Expected::StringOrList) || key == "cli.extra_args"
            }
            Value::Object(members) => {
                for (name, member) in members {
                    let dot = if key.is_empty() { "" } else { "." };
                    compare(&format!("{key}{dot}{name}"), member);
                }
                expected == Expected::Mapping
            }
        };
        assert!(fits, "{key} is {value}, but the expected type is {expected:?}");
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
