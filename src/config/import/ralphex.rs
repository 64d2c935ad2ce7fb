//! ralphex's `config`: `key = value` lines. A reader of our own, since an origin needs its line and the INI crates do
//! not tell it; as ralphex does, `#` and `;` begin a comment only at the start of a line.

use super::{Place, Said, Scene};
use crate::config::diagnostic::printable;

struct Entry {
    key: String,
    value: String,
    line: usize,
}

pub(super) fn read(text: &str, scene: &Scene<'_>) -> Said {
    let mut said = Said::default();
    let mut unheard = Vec::new();
    for Entry { key, value, line } in entries(text, scene, &mut said.warnings) {
        let place = Place::Line(line);
        let empty = value.is_empty();
        match key.as_str() {
            "claude_command" if !empty => {
                said.wishes.cli.claude_command = Some(value);
                said.place("cli.claude_command", &place);
            }
            // Nothing after the sign means no arguments at all.
            "claude_args" => {
                said.wishes.cli.claude_args = Some(value);
                said.place("cli.claude_args", &place);
            }
            "claude_model" if !empty => {
                said.wishes.cli.model = Some(value);
                said.place("cli.model", &place);
            }
            "iteration_delay_ms" => match value.parse::<u64>() {
                Ok(milliseconds) => {
                    said.wishes.event_loop.cooldown_seconds = Some(milliseconds.div_ceil(1000));
                    said.place("event_loop.cooldown_seconds", &place);
                }
                Err(_) => said.warnings.push(format!(
                    "{}:{line}: `iteration_delay_ms` must be a number, but is `{}`; it is ignored",
                    scene.path.display(),
                    printable(&value)
                )),
            },
            _ if empty => {}
            _ => unheard.push(printable(&key)),
        }
    }
    said.tell_unheard(scene, &unheard);
    said
}

fn entries(text: &str, scene: &Scene<'_>, warnings: &mut Vec<String>) -> Vec<Entry> {
    let mut entries = Vec::new();
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
            Some((key, value)) => entries.push(Entry {
                key: key.trim().to_owned(),
                value: unquoted(value.trim()).to_owned(),
                line: index + 1,
            }),
            None => warnings.push(format!(
                "{}:{}: `{}` is not key = value",
                scene.path.display(),
                index + 1,
                printable(&whole.chars().take(40).collect::<String>())
            )),
        }
    }
    entries
}

/// Without the one pair of quotes around all of it.
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
