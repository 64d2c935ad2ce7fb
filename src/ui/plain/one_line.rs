//! Texts folded to one line.

use unicode_width::UnicodeWidthChar;

use crate::ui::clean::clean;

/// The text on one line: cleaned, every run of white space one space, cut with `…` at so many columns.
/// Gives its columns too. Reads no further than it shows.
pub(in crate::ui) fn one_line(text: &str, room: usize) -> (String, usize) {
    // A cut text needs no more of its source than this; what is cleaned away may make it a little shorter.
    let source = head(text, room.saturating_mul(4).saturating_add(4096));
    if room > 0 && stands_as_it_is(source) {
        return match source.get(..room - 1) {
            Some(beginning) if source.len() > room => (format!("{}…", beginning.trim_end()), room),
            Some(_) | None => (source.to_owned(), source.len()),
        };
    }
    folded(source, room)
}

/// Nothing but letters that take a column each, with single spaces between them.
fn stands_as_it_is(text: &str) -> bool {
    let bytes = text.as_bytes();
    let at_the_ends = [bytes.first(), bytes.last()];
    bytes
        .iter()
        .fold(true, |all, byte| all & matches!(byte, b' '..=b'~'))
        && !at_the_ends.contains(&Some(&b' '))
        && !bytes.windows(2).any(|pair| pair == b"  ")
}

fn folded(source: &str, room: usize) -> (String, usize) {
    let mut line = String::new();
    let (mut columns, mut fits) = (0, 0);
    let mut space = false;
    for c in clean(source).trim().chars() {
        if c.is_whitespace() {
            space = true;
            continue;
        }
        let before = if std::mem::take(&mut space) { " " } else { "" };
        let wide = before.len() + c.width().unwrap_or(0);
        if columns + wide > room {
            line.truncate(fits);
            if room > 0 {
                line.push('…');
            }
            return (line, room.min(columns + 1));
        }
        line.push_str(before);
        line.push(c);
        columns += wide;
        if columns < room {
            fits = line.len();
        }
    }
    (line, columns)
}

/// The first bytes of a text, cut between characters.
pub(in crate::ui) fn head(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_text_that_stands_as_it_is_is_what_folding_gives(text in "([a-z~!]{1,3} ?){0,8}", room in 0_usize..30) {
            prop_assert_eq!(one_line(&text, room), folded(&text, room));
        }
    }
}
