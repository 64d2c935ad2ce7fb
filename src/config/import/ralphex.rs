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
            "claude_model" if !empty => {
                imported.settings.cli.model = Some(value);
                imported.set_origin("cli.model", &origin);
            }
            "iteration_delay_ms" => match value.parse::<u64>() {
                Ok(milliseconds) => {
                    imported.settings.event_loop.cooldown_seconds =
                        Some(Seconds(milliseconds.div_ceil(1000)));
                    imported.set_origin("event_loop.cooldown_seconds", &origin);
                }
                Err(_) => imported.warnings.push(format!(
                    "{}:{line}: `iteration_delay_ms`: expected an integer, found `{}`; ignored",
                    context.path.display(),
                    printable(&value)
                )),
            },
            _ if empty => {}
            _ => unsupported.push(printable(&key)),
        }
    }
    imported.warn_unsupported(context, &unsupported);
    imported
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
