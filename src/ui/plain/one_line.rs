//! Folds text to one line.

use unicode_width::UnicodeWidthChar;

use crate::ui::clean::clean;

/// The text on one line and its width: cleaned, with white space collapsed, and truncated with `…` at `max_columns`.
/// Reads only as much of the text as can be shown.
pub(in crate::ui) fn one_line(text: &str, max_columns: usize) -> (String, usize) {
    // Enough source for a truncated line, unless cleaning removes more than 4 kB of it.
    let source = head(text, max_columns.saturating_mul(4).saturating_add(4096));
    if max_columns > 0 && is_plain_line(source) {
        return match source.get(..max_columns - 1) {
            Some(start) if source.len() > max_columns => (format!("{}…", start.trim_end()), max_columns),
            Some(_) | None => (source.to_owned(), source.len()),
        };
    }
    fold(source, max_columns)
}

/// True if the text is printable ASCII with single spaces between words, so that folding does not change it.
fn is_plain_line(text: &str) -> bool {
    let bytes = text.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    bytes
        .iter()
        .fold(true, |all, byte| all & matches!(byte, b' '..=b'~'))
        && !ends.contains(&Some(&b' '))
        && !bytes.windows(2).any(|pair| pair == b"  ")
}

fn fold(source: &str, max_columns: usize) -> (String, usize) {
    let mut line = String::new();
    let (mut columns, mut fits) = (0, 0);
    let mut space = false;
    for c in clean(source).trim().chars() {
        if c.is_whitespace() {
            space = true;
            continue;
        }
        let separator = if std::mem::take(&mut space) { " " } else { "" };
        let width = separator.len() + c.width().unwrap_or(0);
        if columns + width > max_columns {
            line.truncate(fits);
            if max_columns > 0 {
                line.push('…');
            }
            return (line, max_columns.min(columns + 1));
        }
        line.push_str(separator);
        line.push(c);
        columns += width;
        if columns < max_columns {
            fits = line.len();
        }
    }
    (line, columns)
}

/// The first bytes of a text, truncated at a character boundary.
pub(in crate::ui) fn head(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn plain_lines_are_folded_like_any_other_text(text in "([a-z~!]{1,3} ?){0,8}", max_columns in 0_usize..30) {
            prop_assert_eq!(one_line(&text, max_columns), fold(&text, max_columns));
        }
    }
}
