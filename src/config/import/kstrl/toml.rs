//! Reads the part of TOML that `kstrl.toml` uses: sections, and keys with strings, numbers, booleans and lists of strings.
//! Other lines are reported.

use serde_json::Value;

use crate::config::import::ImportedFrom;

/// One `key = value` line of a section.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) section: String,
    pub(super) key: String,
    pub(super) value: Value,
    pub(super) origin: ImportedFrom,
}

/// The entries of a text, and the numbers of the lines that cannot be read.
pub(super) fn parse(text: &str) -> (Vec<Entry>, Vec<usize>) {
    let (mut entries, mut unreadable) = (Vec::new(), Vec::new());
    let mut section = String::new();
    let mut lines = text.strip_prefix('\u{feff}').unwrap_or(text).lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            name.0.trim().clone_into(&mut section);
            continue;
        }
        let Some((key, value)) = line.split_once('=') else {
            unreadable.push(index + 1);
            continue;
        };
        let mut value = value.trim().to_owned();
        // A list may continue on the following lines.
        while value.starts_with('[') && read_value(&value).is_none() {
            match lines.next() {
                Some((_, more)) => value.push_str(&format!("\n{more}")),
                None => break,
            }
        }
        match read_value(&value) {
            Some(value) => entries.push(Entry {
                section: section.clone(),
                key: key.trim().trim_matches('"').to_owned(),
                value,
                origin: ImportedFrom::Line(index + 1),
            }),
            None => unreadable.push(index + 1),
        }
    }
    (entries, unreadable)
}

fn read_value(text: &str) -> Option<Value> {
    let (value, rest) = value_and_rest(text)?;
    let rest = rest.trim_start();
    (rest.is_empty() || rest.starts_with('#')).then_some(value)
}

/// The value at the beginning of a text, and what follows it.
fn value_and_rest(text: &str) -> Option<(Value, &str)> {
    if let Some(rest) = text.strip_prefix('\'') {
        let (inside, rest) = rest.split_once('\'')?;
        return Some((inside.into(), rest));
    }
    if text.starts_with('"') {
        let end = end_of_string(text)?;
        // The escapes of TOML's basic strings are those of JSON, apart from \U.
        return Some((serde_json::from_str(&text[..end]).ok()?, &text[end..]));
    }
    if let Some(rest) = text.strip_prefix('[') {
        return list_and_rest(rest);
    }
    let end = text.find([',', ']', '#', ' ', '\t', '\n']).unwrap_or(text.len());
    let word = text[..end].replace('_', "");
    let value: Value = serde_json::from_str(&word).ok()?;
    (value.is_number() || value.is_boolean()).then_some((value, &text[end..]))
}

/// The offset after the closing quote.
fn end_of_string(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

fn list_and_rest(text: &str) -> Option<(Value, &str)> {
    let mut items = Vec::new();
    let mut rest = skip_blank(text);
    loop {
        if let Some(after) = rest.strip_prefix(']') {
            return Some((items.into(), after));
        }
        let (item, after) = value_and_rest(rest)?;
        items.push(item);
        rest = skip_blank(after);
        if let Some(after) = rest.strip_prefix(',') {
            rest = skip_blank(after);
        } else if !rest.starts_with(']') {
            return None;
        }
    }
}

/// Skips white space and comments.
fn skip_blank(text: &str) -> &str {
    let mut rest = text.trim_start();
    while rest.starts_with('#') {
        rest = rest.split_once('\n').map_or("", |(_, after)| after).trim_start();
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_of_all_kinds_are_read() {
        let text = "top = 1\n[agent]\ntype = \"codex\" # why\nmodel = 'a#b'\n\n[ run ]\nn = 1_000\nx = 2.5\nyes = true\n\
                    list = [\"a\", # first\n  'b',\n]\nempty = []\nquote = \"a\\\"b\"\n";
        let (entries, unreadable) = parse(text);
        let found: Vec<(&str, &str, Value)> = entries
            .iter()
            .map(|entry| (entry.section.as_str(), entry.key.as_str(), entry.value.clone()))
            .collect();
        assert_eq!(
            found,
            [
                ("", "top", json!(1)),
                ("agent", "type", json!("codex")),
                ("agent", "model", json!("a#b")),
                ("run", "n", json!(1000)),
                ("run", "x", json!(2.5)),
                ("run", "yes", json!(true)),
                ("run", "list", json!(["a", "b"])),
                ("run", "empty", json!([])),
                ("run", "quote", json!("a\"b")),
            ]
        );
        assert_eq!(unreadable, [0; 0]);
    }

    #[test]
    fn other_lines_are_reported() {
        let (entries, unreadable) = parse("nonsense\na = \nb = 2026-01-01\nc = \"open\nd = 1\n");
        assert_eq!(entries.len(), 1);
        assert_eq!(unreadable, [1, 2, 3, 4]);
    }

    proptest::proptest! {
        #[test]
        fn parsing_never_panics(text in "[a-z=\"'\\[\\],#\\\\ \n0-9._é]*") {
            let _ = parse(&text);
        }
    }
}
