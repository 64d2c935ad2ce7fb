//! One line of a JSON stream: made readable where it can be, shown where it cannot.

use std::borrow::Cow;

use serde::Deserialize;

use crate::event::{Meta, Tag, TranscriptEvent};

const ESCAPE: u8 = 0x1b;

/// The line as JSON text: without terminal sequences around it, with broken halves of characters replaced.
/// Empty when there was nothing to read, such as the reset sequence that ends a session on a terminal.
pub(in crate::transcript) fn json_text(line: &str) -> Cow<'_, str> {
    // JSON cannot hold a raw escape character, so whatever begins with one is no part of it.
    if memchr::memchr(ESCAPE, line.as_bytes()).is_some() {
        let text = anstream::adapter::strip_str(line).to_string();
        return Cow::Owned(with_whole_characters(text.trim()).into_owned());
    }
    with_whole_characters(line.trim())
}

/// Whether no half of a character stands alone.
pub(super) fn has_whole_characters(text: &str) -> bool {
    lone_surrogates(text).is_empty()
}

/// Replaces escaped halves of surrogate pairs that stand alone. JavaScript cuts strings between them, above all
/// in deltas, and no JSON reader takes them.
pub(super) fn with_whole_characters(text: &str) -> Cow<'_, str> {
    let lone = lone_surrogates(text);
    if lone.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut mended = String::with_capacity(text.len());
    let mut copied = 0;
    for at in lone {
        mended.push_str(&text[copied..at]);
        mended.push_str("\\ufffd");
        copied = at + ESCAPED_UNIT;
    }
    mended.push_str(&text[copied..]);
    Cow::Owned(mended)
}

/// Bytes of `\ud83d`.
const ESCAPED_UNIT: usize = 6;

fn lone_surrogates(text: &str) -> Vec<usize> {
    let bytes = text.as_bytes();
    let mut lone = Vec::new();
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &bytes[at..]) {
        at += found;
        match surrogate(bytes, at) {
            Some(Half::Leading) if surrogate(bytes, at + ESCAPED_UNIT) == Some(Half::Trailing) => {
                at += 2 * ESCAPED_UNIT;
            }
            Some(Half::Leading | Half::Trailing) => {
                lone.push(at);
                at += ESCAPED_UNIT;
            }
            // Whatever is escaped, a second backslash included, takes two bytes at least.
            None => at = (at + 2).min(bytes.len()),
        }
    }
    lone
}

#[derive(PartialEq)]
enum Half {
    Leading,
    Trailing,
}

fn surrogate(bytes: &[u8], at: usize) -> Option<Half> {
    let unit = bytes.get(at..at + ESCAPED_UNIT)?;
    let [b'\\', b'u', b'd' | b'D', second, third, fourth] = unit else {
        return None;
    };
    if !third.is_ascii_hexdigit() || !fourth.is_ascii_hexdigit() {
        return None;
    }
    match second {
        b'8' | b'9' | b'a' | b'b' | b'A' | b'B' => Some(Half::Leading),
        b'c'..=b'f' | b'C'..=b'F' => Some(Half::Trailing),
        _ => None,
    }
}

/// Reads the text as one JSON object; the error is a sentence for the user. What stands in it as it came must be whole:
/// where serde looks no closer, half a character would pass.
pub(in crate::transcript) fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    if !text.starts_with('{') {
        return Err("not a JSON object".to_owned());
    }
    if !has_whole_characters(text) {
        return Err("half a character stands alone".to_owned());
    }
    serde_json::from_str(text).map_err(|error| format!("not readable as JSON: {error}"))
}

/// A line that could not be read is shown as it came, and marked.
pub(in crate::transcript) fn say_unreadable(line: &str, message: String, out: &mut Vec<TranscriptEvent>) {
    out.push(TranscriptEvent::meta(Meta::ParseError { message }));
    out.push(TranscriptEvent::line(Tag::Sys, line));
}

/// An event of a kind that this version does not know: its words are shown, or else its name is recorded.
pub(in crate::transcript) fn mark_unknown(kind: &str, words: Option<&str>, out: &mut Vec<TranscriptEvent>) {
    match words {
        Some(words) => out.push(TranscriptEvent::message(Tag::Sys, words)),
        None => {
            let mut other = serde_json::Map::new();
            other.insert("type".to_owned(), kind.into());
            out.push(TranscriptEvent::meta(Meta::Other(other)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESET: &str = "\u{1b}[?1006l\u{1b}[?1000l\u{1b}(B\u{f}\u{1b}[>4m\u{1b}[<u\u{1b}7\u{1b}[r\u{1b}8\u{1b}]0;\u{7}\u{1b}[?25h";

    #[test]
    fn a_line_of_terminal_sequences_is_empty() {
        assert_eq!(json_text(RESET), "");
    }

    #[test]
    fn terminal_sequences_glued_to_json_are_taken_off() {
        assert_eq!(json_text(&format!("{RESET}{{\"a\":1}}")), "{\"a\":1}");
        assert_eq!(json_text(&format!("{{\"a\":1}}\r{RESET}")), "{\"a\":1}");
    }

    #[test]
    fn a_lone_half_of_a_character_is_replaced() {
        assert_eq!(json_text(r#"{"t":"\ud83d"}"#), r#"{"t":"\ufffd"}"#);
        assert_eq!(json_text(r#"{"t":"\uDE00x"}"#), r#"{"t":"\ufffdx"}"#);
        assert_eq!(
            json_text(r#"{"t":"\ud83d\ud83d\ude00"}"#),
            r#"{"t":"\ufffd\ud83d\ude00"}"#
        );
    }

    #[test]
    fn whole_characters_and_escaped_backslashes_stay_as_they_are() {
        for text in [
            r#"{"t":"\ud83d\ude00"}"#,
            r#"{"t":"\\ud83d"}"#,
            r#"{"t":"\\"}"#,
            r"\",
            r"\ud8",
        ] {
            assert!(
                matches!(json_text(text), Cow::Borrowed(same) if same == text),
                "{text}"
            );
        }
    }
}
