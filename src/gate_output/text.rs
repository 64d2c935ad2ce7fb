//! Helpers for lines of text: escape sequences, locations, indentation.

/// Removes terminal escape sequences and carriage returns.
pub(super) fn without_escapes(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' => match characters.next() {
                // A control sequence ends with a character from `@` to `~`.
                Some('[') => while characters.next().is_some_and(|end| !('@'..='~').contains(&end)) {},
                // An operating system command ends with BEL or ESC \.
                Some(']') => {
                    while let Some(end) = characters.next() {
                        if end == '\u{7}' || (end == '\u{1b}' && characters.next_if_eq(&'\\').is_some()) {
                            break;
                        }
                    }
                }
                Some(_) | None => {}
            },
            '\r' => {}
            character => clean.push(character),
        }
    }
    clean
}

/// Omits the middle of a text that is longer than `max` bytes.
pub(super) fn shortened(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(max * 2 / 3);
    let tail = text.ceil_char_boundary(text.len() - max / 3);
    format!("{}\n[…]\n{}", text[..head].trim_end(), text[tail..].trim_start())
}

/// Splits `src/lib.rs:10:22` or `src/lib.rs:10` into file and line.
pub(super) fn location(text: &str) -> Option<(String, u64)> {
    let mut parts = text.split(':');
    let file = parts.next()?;
    let line = parts.next()?.parse().ok()?;
    let looks_like_file = !file.is_empty() && !file.contains(char::is_whitespace);
    looks_like_file.then(|| (file.to_owned(), line))
}

/// The number at the beginning of a text, and the rest after one space.
pub(super) fn number_and_word(text: &str) -> Option<(u64, &str)> {
    let (number, word) = text.trim().split_once(' ')?;
    Some((number.parse().ok()?, word))
}

/// The text between two other texts.
pub(super) fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    text.split_once(start)?.1.split_once(end).map(|(found, _)| found)
}

/// Joins lines and removes their common indentation.
pub(super) fn dedented<'a>(lines: impl Iterator<Item = &'a str> + Clone) -> String {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let filled = lines.clone().filter(|line| !line.trim().is_empty());
    let common = filled.map(indent).min().unwrap_or(0);
    let lines: Vec<&str> = lines.map(|line| line.get(common..).unwrap_or_default()).collect();
    lines.join("\n").trim().to_owned()
}
