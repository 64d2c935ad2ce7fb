//! What each key wants to be given, in the words of a message. The types themselves are in `settings.rs`; a test
//! holds the words against them.

use super::diagnostic::quoted;

/// The kind of value that a key takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    Section,
    List,
    Text,
    TextOrList,
    Word,
    TrueOrFalse,
    Number,
    WholeNumber,
    Seconds,
    Bytes,
}

impl Expected {
    /// The kind is a matter of the key's last part, except where users choose the names.
    pub(super) fn of(key: &str) -> Self {
        let last = key.rsplit('.').next().unwrap_or(key);
        let parent = key.strip_suffix(last).unwrap_or_default().trim_end_matches('.');
        match last {
            _ if key.is_empty() || matches!(parent, "adapters" | "hats") => Self::Section,
            _ if parent.ends_with("].env") => Self::Text,
            "env" | "cli" | "adapters" | "event_loop" | "hats" | "hooks" | "driver" => Self::Section,
            item if item.ends_with(']') => {
                if item.starts_with("gates[") {
                    Self::Section
                } else {
                    Self::Text
                }
            }
            "gates" | "args" | "triggers" | "publishes" | "allowed_paths" => Self::List,
            "completion_promise" => Self::TextOrList,
            "prompt_mode"
            | "default_mode"
            | "completion_match"
            | "on_declared_failure"
            | "output_format"
            | "session" => Self::Word,
            "enabled" | "pty_mode" => Self::TrueOrFalse,
            "max_cost_usd" => Self::Number,
            "max_line_bytes" => Self::Bytes,
            time if time.ends_with("timeout") || time.ends_with("_secs") || time.ends_with("_seconds") => {
                Self::Seconds
            }
            count if count.starts_with("max_") => Self::WholeNumber,
            _ => Self::Text,
        }
    }

    /// As `of`, in a price list. Names of models hold dots, so a price is known by its own name.
    pub(super) fn of_price(key: &str) -> Self {
        const PRICES: [&str; 4] = [".input", ".output", ".cache_read", ".cache_write"];
        if PRICES.iter().any(|price| key.ends_with(price)) {
            Self::Number
        } else {
            Self::Section
        }
    }

    /// As `of`, in the tasks file of a bench.
    pub(super) fn of_suite(key: &str) -> Self {
        match key.rsplit('.').next().unwrap_or(key) {
            "tasks" | "agents" => Self::List,
            item if item.starts_with("tasks[") || item.starts_with("agents[") => Self::Section,
            "limits" => Self::Section,
            "repeat" | "jobs" => Self::WholeNumber,
            _ => Self::of(key),
        }
    }

    pub(super) fn phrase(self) -> &'static str {
        match self {
            Self::Section => "a section of `key: value` lines",
            Self::List => "a list",
            Self::Text => "text",
            Self::TextOrList => "text, or a list of texts",
            Self::Word => "a single word",
            Self::TrueOrFalse => "`true` or `false`",
            Self::Number => "a number",
            Self::WholeNumber => "a whole number",
            Self::Seconds => "a whole number of seconds",
            Self::Bytes => "a whole number of bytes",
        }
    }

    /// What to write instead of a scalar that is not of this kind, where that can be known.
    pub(super) fn correction(self, given: &str) -> Option<String> {
        match self {
            Self::TrueOrFalse => boolean_meant(given).map(|meant| format!("write `{meant}`")),
            Self::Seconds => seconds_meant(given)
                .map(|seconds| format!("times are given in seconds, without a unit: write `{seconds}`"))
                .or_else(|| whole_number_help(given)),
            Self::WholeNumber | Self::Bytes => whole_number_help(given),
            Self::Number => given
                .contains('$')
                .then(|| "write the number alone, without a currency sign".to_owned()),
            Self::List => Some(format!(
                "a list is written `[\"{given}\"]`, or as lines that begin with `- `"
            )),
            Self::Text | Self::TextOrList => {
                Some(format!("to mean the text, put it in quotes: `\"{given}\"`"))
            }
            Self::Section | Self::Word => None,
        }
    }

    /// The sentence about a scalar that is not of this kind.
    pub(super) fn refusal(self, given: &str) -> String {
        format!("must be {}, but is {}", self.phrase(), quoted(given))
    }
}

fn boolean_meant(given: &str) -> Option<bool> {
    match given.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "y" | "1" => Some(true),
        "false" | "no" | "off" | "n" | "0" => Some(false),
        _ => None,
    }
}

/// `5m` is 300.
fn seconds_meant(given: &str) -> Option<u64> {
    let digits = given.find(|character: char| !character.is_ascii_digit())?;
    let (number, unit) = given.split_at(digits);
    let seconds_per_unit: u64 = match unit.trim() {
        "s" | "sec" | "secs" | "second" | "seconds" => 1,
        "m" | "min" | "mins" | "minute" | "minutes" => 60,
        "h" | "hour" | "hours" => 3600,
        "d" | "day" | "days" => 86_400,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(seconds_per_unit)
}

fn whole_number_help(given: &str) -> Option<String> {
    let digits = given.strip_prefix(['-', '+']).unwrap_or(given);
    let all_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits {
        return None;
    }
    let help = if given.starts_with('-') {
        "it cannot be negative".to_owned()
    } else if digits.starts_with('0') {
        format!(
            "write it without the leading zero: `{}`",
            digits.trim_start_matches('0')
        )
    } else {
        format!("the largest number possible is {}", u64::MAX)
    };
    Some(help)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::config::{AdapterSettings, Gate, Hat, Settings};

    /// Walks the settings as they really are, so that a new key cannot be described wrongly in silence.
    #[test]
    fn every_setting_is_of_the_kind_that_its_message_names() {
        let mut settings = Settings::default();
        settings
            .adapters
            .insert("claude".to_owned(), AdapterSettings::default());
        settings.hats.insert("builder".to_owned(), Hat::default());
        settings.gates.push(Gate {
            name: "test".to_owned(),
            run: "make".to_owned(),
            timeout: 1,
            cwd: Some("web".into()),
            env: [("MAX_TIMEOUT".to_owned(), "1".to_owned())].into(),
        });
        compare("", &serde_json::to_value(settings).unwrap());
    }

    fn compare(key: &str, value: &Value) {
        let expected = Expected::of(key);
        let fits = match value {
            Value::Null => !matches!(expected, Expected::Section | Expected::List),
            Value::Bool(_) => expected == Expected::TrueOrFalse,
            Value::Number(_) => matches!(
                expected,
                Expected::WholeNumber | Expected::Seconds | Expected::Bytes
            ),
            Value::String(_) => matches!(expected, Expected::Text | Expected::Word),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    compare(&format!("{key}[{index}]"), item);
                }
                // Only the command line gives these, so no file can get them wrong.
                matches!(expected, Expected::List | Expected::TextOrList) || key == "cli.extra_args"
            }
            Value::Object(members) => {
                for (name, member) in members {
                    let dot = if key.is_empty() { "" } else { "." };
                    compare(&format!("{key}{dot}{name}"), member);
                }
                expected == Expected::Section
            }
        };
        assert!(fits, "{key} is {value}, but a message would call it {expected:?}");
    }

    #[test]
    fn a_time_with_a_unit_is_converted() {
        assert_eq!(seconds_meant("5m"), Some(300));
        assert_eq!(seconds_meant("2 hours"), Some(7200));
        assert_eq!(seconds_meant("300"), None);
        assert_eq!(seconds_meant("5 parsecs"), None);
        assert_eq!(seconds_meant("99999999999999999999d"), None);
    }
}
