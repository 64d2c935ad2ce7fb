//! Reads the settings of a task in Markdown: list items such as `needs: a, b` or `gate: cargo test`.

use crate::plan::check::Problem;
use crate::plan::task::Task;
use crate::policy::Seconds;

/// The keys of settings.
const KEYS: &[&str] = &[
    "id",
    "needs",
    "gate",
    "touches",
    "agent",
    "model",
    "priority",
    "max_iterations",
    "max_runtime",
    "max_cost",
    "max_tokens",
];
/// A key that is this similar to a known one is a mistake; any other word is text.
const MISSPELLED: f64 = 0.85;

/// One setting of a task.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Setting {
    Id(String),
    Needs(Vec<String>),
    Gate(String),
    Touches(Vec<String>),
    Agent(String),
    Model(String),
    Priority(i64),
    MaxIterations(u64),
    MaxRuntime(Seconds),
    MaxCost(f64),
    MaxTokens(u64),
}

/// Parses a list item as a setting; `None` if it is ordinary text.
pub(super) fn setting_of(item: &str, line: usize) -> Result<Option<Setting>, Problem> {
    let text = item_text(item);
    let Some((key, value)) = text.split_once(':') else {
        return Ok(None);
    };
    let key = key.trim().trim_matches(['*', '_', '`']).to_ascii_lowercase();
    if key.contains(char::is_whitespace) || key.is_empty() {
        return Ok(None);
    }
    if !KEYS.contains(&key.as_str()) {
        let similar = KEYS
            .iter()
            .find(|known| strsim::jaro_winkler(&key, known) >= MISSPELLED);
        return match similar {
            Some(known) => Err(Problem::new(line, format!("unknown setting `{key}`"))
                .with_help(format!("did you mean `{known}`?"))),
            None => Ok(None),
        };
    }
    let value = without_code_marks(value.trim());
    if value.is_empty() && key != "needs" {
        return Err(Problem::new(line, format!("`{key}` has no value")));
    }
    parse(&key, value, line).map(Some)
}

fn parse(key: &str, value: &str, line: usize) -> Result<Setting, Problem> {
    let expected = |what: &str| Problem::new(line, format!("`{key}`: expected {what}, found `{value}`"));
    let number = || value.parse::<u64>().ok().filter(|number| *number > 0);
    Ok(match key {
        "id" => Setting::Id(value.to_owned()),
        "needs" => Setting::Needs(list(value).into_iter().filter(|need| need != "none").collect()),
        "gate" => Setting::Gate(value.to_owned()),
        "touches" => Setting::Touches(list(value)),
        "agent" => Setting::Agent(value.to_owned()),
        "model" => Setting::Model(value.to_owned()),
        "priority" => Setting::Priority(value.parse().map_err(|_| expected("a number"))?),
        "max_iterations" => Setting::MaxIterations(number().ok_or_else(|| expected("a number above 0"))?),
        "max_tokens" => Setting::MaxTokens(number().ok_or_else(|| expected("a number above 0"))?),
        "max_runtime" => {
            let duration = value.parse::<Seconds>();
            Setting::MaxRuntime(duration.map_err(|_| expected("a duration such as 90m"))?)
        }
        _ => {
            let amount = value.trim_start_matches('$').parse::<f64>().ok();
            let amount = amount.filter(|amount| amount.is_finite() && *amount > 0.0);
            Setting::MaxCost(amount.ok_or_else(|| expected("an amount in dollars"))?)
        }
    })
}

pub(super) fn apply(setting: Setting, task: &mut Task) {
    match setting {
        Setting::Id(id) => task.id = id,
        Setting::Needs(needs) => task.needs.extend(needs),
        Setting::Gate(gate) => task.gates.push(gate),
        Setting::Touches(touches) => task.touches.extend(touches),
        Setting::Agent(agent) => task.agent = Some(agent),
        Setting::Model(model) => task.model = Some(model),
        Setting::Priority(priority) => task.priority = Some(priority),
        Setting::MaxIterations(max) => task.limits.max_iterations = Some(max),
        Setting::MaxRuntime(max) => task.limits.max_runtime_seconds = Some(max),
        Setting::MaxCost(max) => task.limits.max_cost_usd = Some(max),
        Setting::MaxTokens(max) => task.limits.max_tokens = Some(max),
    }
}

/// The first paragraph of a list item, without its bullet, as one line.
fn item_text(item: &str) -> String {
    let bullet = item.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let text = bullet.strip_prefix(['-', '*', '+', '.', ')']).unwrap_or(bullet);
    let lines = text.lines().map(str::trim).take_while(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ").trim().to_owned()
}

/// `cargo test` in backticks is the same command as without them.
pub(super) fn without_code_marks(value: &str) -> &str {
    let marks = value.len() - value.trim_start_matches('`').len();
    let fence = &value[..marks];
    let inner = value
        .strip_prefix(fence)
        .and_then(|value| value.strip_suffix(fence));
    match inner {
        Some(inner) if marks > 0 && !inner.contains(fence) => inner.trim(),
        _ => value,
    }
}

fn list(value: &str) -> Vec<String> {
    let parts = value
        .split(',')
        .map(|part| without_code_marks(part.trim()).to_owned());
    parts.filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(item: &str) -> Result<Option<Setting>, String> {
        setting_of(item, 7).map_err(|problem| format!("{}: {:?}", problem.message, problem.help))
    }

    #[test]
    fn settings_are_read_in_every_usual_form() {
        let gate = |command: &str| Ok(Some(Setting::Gate(command.to_owned())));
        assert_eq!(read("- gate: cargo test -- a::b"), gate("cargo test -- a::b"));
        assert_eq!(read("* **gate**: `sh -c 'a, b'`\r\n"), gate("sh -c 'a, b'"));
        assert_eq!(read("- gate: `a` && `b`"), gate("`a` && `b`"));
        assert_eq!(
            read("1. Needs: a, `b c`,\n   d"),
            Ok(Some(Setting::Needs(vec!["a".into(), "b c".into(), "d".into()])))
        );
        assert_eq!(read("- needs: none"), Ok(Some(Setting::Needs(vec![]))));
        assert_eq!(read("- max_cost: $2.50"), Ok(Some(Setting::MaxCost(2.5))));
        assert_eq!(
            read("- max_runtime: 90m"),
            Ok(Some(Setting::MaxRuntime(Seconds(5400))))
        );
    }

    #[test]
    fn text_is_no_setting_and_a_misspelled_key_is_an_error() {
        for text in [
            "- see: the docs",
            "- as noted: this",
            "- nothing",
            "- https://example.com",
        ] {
            assert_eq!(read(text), Ok(None), "{text}");
        }
        for (text, error) in [
            (
                "- gates: true",
                "unknown setting `gates`: Some(\"did you mean `gate`?\")",
            ),
            (
                "- need: a",
                "unknown setting `need`: Some(\"did you mean `needs`?\")",
            ),
            ("- gate:", "`gate` has no value: None"),
            (
                "- max_iterations: 0",
                "`max_iterations`: expected a number above 0, found `0`: None",
            ),
            (
                "- max_cost: NaN",
                "`max_cost`: expected an amount in dollars, found `NaN`: None",
            ),
        ] {
            assert_eq!(read(text), Err(error.to_owned()), "{text}");
        }
    }
}
