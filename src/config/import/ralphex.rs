//! Parses ralphex's `config`: `key = value` lines. INI crates do not report line numbers, which origins need. As in
//! ralphex, `#` and `;` start a comment only at the beginning of a line.

use super::{ImportContext, ImportedFrom, ImportedSettings};
use crate::config::diagnostic::printable;
use crate::policy::Seconds;

struct RalphexSetting {
    key: String,
    value: String,
    line: usize,
}

pub(super) fn read(text: &str, context: &ImportContext<'_>) -> ImportedSettings {
    let mut imported = ImportedSettings::default();
    let mut unsupported = Vec::new();
    for RalphexSetting { key, value, line } in parse(text, context, &mut imported.warnings) {
        let origin = ImportedFrom::Line(line);
        let empty = value.is_empty();
        match key.as_str() {
            "claude_command" if !empty => {
                imported.settings.cli.claude_command = Some(value);
                imported.set_origin("cli.claude_command", &origin);
            }
            // An empty value means no arguments.
            "claude_args" => {
                imported.settings.cli.claude_args = Some(value);
                imported.set_origin("cli.claude_args", &origin);
            }
            "claude_model" | "task_model" if !empty => convert_model(&value, &origin, &mut imported),
            "iteration_delay_ms" | "max_iterations" | "session_timeout" | "idle_timeout"
            | "wait_on_limit"
                if !empty =>
            {
                if let Err(expected) = convert_number(&key, &value, &origin, &mut imported) {
                    imported.warnings.push(format!(
                        "{}:{line}: `{key}`: expected {expected}, found `{}`; ignored",
                        context.path.display(),
                        printable(&value)
                    ));
                }
            }
            "executor" if value == "codex" => {
                imported.settings.cli.backend = Some(value);
                imported.set_origin("cli.backend", &origin);
            }
            _ if empty || has_no_effect(&key, &value) => {}
            _ => unsupported.push(printable(&key)),
        }
    }
    imported.warn_unsupported(context, &unsupported);
    imported
}

/// `MODEL:EFFORT`, both optional. Only the model has a counterpart.
fn convert_model(value: &str, origin: &ImportedFrom, imported: &mut ImportedSettings) {
    let model = value.split(':').next().unwrap_or_default().trim();
    if !model.is_empty() {
        imported.settings.cli.model = Some(model.to_owned());
        imported.set_origin("cli.model", origin);
    }
    if value.contains(':') {
        imported.warnings.push(format!(
            "the reasoning effort of `{}` has no counterpart; pass it in adapters.claude.args",
            printable(value)
        ));
    }
}

/// Converts a number or a duration. The error states what was expected.
fn convert_number(
    key: &str,
    value: &str,
    origin: &ImportedFrom,
    imported: &mut ImportedSettings,
) -> Result<(), &'static str> {
    let settings = &mut imported.settings;
    let to = match key {
        "iteration_delay_ms" => {
            let milliseconds: u64 = value.parse().map_err(|_| "an integer")?;
            settings.event_loop.cooldown_seconds = Some(Seconds(milliseconds.div_ceil(1000)));
            "event_loop.cooldown_seconds"
        }
        "max_iterations" => {
            let number = value.parse().ok().filter(|number| *number >= 1);
            settings.event_loop.max_iterations = Some(number.ok_or("an integer of at least 1")?);
            "event_loop.max_iterations"
        }
        "wait_on_limit" => {
            // Without a wait, the other program stops; here, the shortest wait is one second.
            let longest = go_duration(value)?.0.max(1);
            settings.event_loop.max_wait_seconds = Some(Seconds(longest));
            "event_loop.max_wait_seconds"
        }
        key => {
            let limit = go_duration(value)?;
            if limit == Seconds::ZERO {
                return Ok(());
            }
            let adapter = settings.adapters.entry("claude".to_owned()).or_default();
            if key == "session_timeout" {
                adapter.timeout = Some(limit);
                "adapters.claude.timeout"
            } else {
                adapter.idle_timeout = Some(limit);
                "adapters.claude.idle_timeout"
            }
        }
    };
    imported.set_origin(to, origin);
    Ok(())
}

/// A duration in Go's format, rounded up to whole seconds: `1h30m`, `90s`, `1.5h`, `500ms`.
fn go_duration(text: &str) -> Result<Seconds, &'static str> {
    const EXPECTED: &str = "a duration such as 90s, 5m or 1h30m";
    const UNITS: [(&str, f64); 6] = [
        ("ms", 0.001),
        ("us", 0.000_001),
        ("ns", 0.000_000_001),
        ("h", 3600.0),
        ("m", 60.0),
        ("s", 1.0),
    ];
    let (mut rest, mut total) = (text.trim(), 0.0);
    if rest == "0" {
        return Ok(Seconds::ZERO);
    }
    if rest.is_empty() {
        return Err(EXPECTED);
    }
    while !rest.is_empty() {
        let end = rest
            .find(|c: char| !(c.is_ascii_digit() || c == '.'))
            .ok_or(EXPECTED)?;
        let number: f64 = rest[..end].parse().map_err(|_| EXPECTED)?;
        let unit = UNITS
            .iter()
            .find(|(unit, _)| rest[end..].starts_with(unit))
            .ok_or(EXPECTED)?;
        total += number * unit.1;
        rest = &rest[end + unit.0.len()..];
    }
    // Formatting avoids a lossy conversion; limits longer than a year have no effect.
    let seconds = format!("{:.0}", total.ceil().clamp(0.0, 31_536_000.0));
    seconds.parse().map(Seconds).map_err(|_| EXPECTED)
}

/// Settings of the display and defaults, which change nothing about a run.
fn has_no_effect(key: &str, value: &str) -> bool {
    let is_off = matches!(value, "false" | "0" | "none");
    let is_default = matches!((key, value), ("vcs_command", "git") | ("executor", "claude"));
    let optional = [
        "use_worktree",
        "finalize_enabled",
        "codex_enabled",
        "review_patience",
        "notify_on_error",
    ];
    key.starts_with("color_") || is_default || (is_off && optional.contains(&key))
}

fn parse(text: &str, context: &ImportContext<'_>, warnings: &mut Vec<String>) -> Vec<RalphexSetting> {
    let mut settings = Vec::new();
    let mut lines = text.strip_prefix('\u{feff}').unwrap_or(text).lines().enumerate();
    while let Some((index, first)) = lines.next() {
        let mut whole = first.trim().to_owned();
        if whole.is_empty() || whole.starts_with(['#', ';', '[']) {
            continue;
        }
        while whole.ends_with('\\') {
            whole.pop();
            match lines.next() {
                Some((_, more)) => whole.push_str(more.trim()),
                None => break,
            }
        }
        match whole.split_once('=') {
            Some((key, value)) => settings.push(RalphexSetting {
                key: key.trim().to_owned(),
                value: unquoted(value.trim()).to_owned(),
                line: index + 1,
            }),
            None => warnings.push(format!(
                "{}:{}: expected `key = value`, found `{}`; ignored",
                context.path.display(),
                index + 1,
                printable(&whole.chars().take(40).collect::<String>())
            )),
        }
    }
    settings
}

/// Removes one pair of quotes around the whole value.
fn unquoted(value: &str) -> &str {
    for quote in ['"', '\''] {
        let inner = value
            .strip_prefix(quote)
            .and_then(|value| value.strip_suffix(quote));
        if let Some(inner) = inner.filter(|inner| !inner.contains(quote)) {
            return inner;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imported(text: &str) -> ImportedSettings {
        let context = ImportContext {
            path: std::path::Path::new("config"),
            environment: &[],
            agents: &["claude"],
        };
        read(text, &context)
    }

    #[test]
    fn limits_models_and_waits_are_mapped() {
        let imported = imported(
            "max_iterations = 7\nsession_timeout = 1h30m\nidle_timeout = 1.5m\nwait_on_limit = 2h\n\
             task_model = opus\ncolor_task = #00ff00\nreview_model = sonnet\nuse_worktree = false\n",
        );
        let event_loop = &imported.settings.event_loop;
        assert_eq!(event_loop.max_iterations, Some(7));
        assert_eq!(event_loop.max_wait_seconds, Some(Seconds(7200)));
        let claude = &imported.settings.adapters["claude"];
        assert_eq!(claude.timeout, Some(Seconds(5400)));
        assert_eq!(claude.idle_timeout, Some(Seconds(90)));
        assert_eq!(imported.settings.cli.model.as_deref(), Some("opus"));
        assert_eq!(
            imported.warnings,
            ["config: ignoring unsupported settings: review_model"]
        );
    }

    #[test]
    fn invalid_limits_are_reported_with_their_line() {
        let imported = imported("\nmax_iterations = 0\nidle_timeout = soon\nsession_timeout = 0s\n");
        assert_eq!(
            imported.warnings,
            [
                "config:2: `max_iterations`: expected an integer of at least 1, found `0`; ignored",
                "config:3: `idle_timeout`: expected a duration such as 90s, 5m or 1h30m, found `soon`; ignored",
            ]
        );
        assert!(imported.settings.adapters.is_empty(), "0 disables the limit");
    }

    #[test]
    fn durations_are_those_of_go() {
        for (text, seconds) in [
            ("90s", 90),
            ("1h30m", 5400),
            ("500ms", 1),
            ("1.5h", 5400),
            ("0", 0),
            ("0s", 0),
        ] {
            assert_eq!(go_duration(text), Ok(Seconds(seconds)), "{text}");
        }
        for text in ["", "5", "m", "-5m", "5 m", "1x"] {
            assert!(go_duration(text).is_err(), "{text}");
        }
    }
}
