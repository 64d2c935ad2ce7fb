//! Cleans and parses the lines of a JSON stream, and reports unreadable lines.

use std::borrow::Cow;

use serde::Deserialize;

use crate::event::{Meta, Tag, TranscriptEvent, UnknownPart};

const ESCAPE: u8 = 0x1b;

/// Removes terminal sequences and replaces lone surrogates. The result is empty if the line contains nothing else, such
/// as the reset sequence at the end of a terminal session.
pub(in crate::transcript) fn json_text(line: &str) -> Cow<'_, str> {
    // JSON cannot contain a raw escape character, so terminal sequences are never part of it.
    if memchr::memchr(ESCAPE, line.as_bytes()).is_some() {
        let text = anstream::adapter::strip_str(line).to_string();
        return Cow::Owned(replace_lone_surrogates(text.trim()).into_owned());
    }
    replace_lone_surrogates(line.trim())
}

/// True if the text contains an escaped surrogate without its counterpart.
pub(super) fn has_lone_surrogate(text: &str) -> bool {
    !lone_surrogates(text).is_empty()
}

/// Replaces escaped lone surrogates. JavaScript programs may split a string inside a surrogate pair, mostly in deltas,
/// and JSON parsers reject the result.
pub(super) fn replace_lone_surrogates(text: &str) -> Cow<'_, str> {
    let lone = lone_surrogates(text);
    if lone.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut replaced = String::with_capacity(text.len());
    let mut copied = 0;
    for at in lone {
        replaced.push_str(&text[copied..at]);
        replaced.push_str("\\ufffd");
        copied = at + ESCAPED_UNIT;
    }
    replaced.push_str(&text[copied..]);
    Cow::Owned(replaced)
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
            Some(Surrogate::High) if surrogate(bytes, at + ESCAPED_UNIT) == Some(Surrogate::Low) => {
                at += 2 * ESCAPED_UNIT;
            }
            Some(Surrogate::High | Surrogate::Low) => {
                lone.push(at);
                at += ESCAPED_UNIT;
            }
            // Every other escape, including an escaped backslash, has at least two bytes.
            None => at = (at + 2).min(bytes.len()),
        }
    }
    lone
}

#[derive(PartialEq)]
enum Surrogate {
    High,
    Low,
}

fn surrogate(bytes: &[u8], at: usize) -> Option<Surrogate> {
    let unit = bytes.get(at..at + ESCAPED_UNIT)?;
    let [b'\\', b'u', b'd' | b'D', second, third, fourth] = unit else {
        return None;
    };
    if !third.is_ascii_hexdigit() || !fourth.is_ascii_hexdigit() {
        return None;
    }
    match second {
        b'8' | b'9' | b'a' | b'b' | b'A' | b'B' => Some(Surrogate::High),
        b'c'..=b'f' | b'C'..=b'F' => Some(Surrogate::Low),
        _ => None,
    }
}

/// Parses the text as one JSON object. The error is a message for the user. Lone surrogates are rejected here, because
/// serde does not look into raw values.
pub(in crate::transcript) fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    if !text.starts_with('{') {
        return Err("not a JSON object".to_owned());
    }
    if has_lone_surrogate(text) {
        return Err("lone surrogate in a string".to_owned());
    }
    serde_json::from_str(text).map_err(|error| format!("invalid JSON: {error}"))
}

/// Reports an unreadable line: a parse error, then the line itself as SYS text.
pub(in crate::transcript) fn push_unreadable(line: &str, message: String, out: &mut Vec<TranscriptEvent>) {
    out.push(TranscriptEvent::meta(Meta::ParseError { message }));
    out.push(TranscriptEvent::line(Tag::Sys, line));
}

/// Reports an event of an unknown type, with its text if it has one.
pub(in crate::transcript) fn push_unknown(kind: &str, text: Option<&str>, out: &mut Vec<TranscriptEvent>) {
    out.push(TranscriptEvent::meta(Meta::Unknown {
        part: UnknownPart::EventType,
        name: kind.to_owned(),
    }));
    if let Some(text) = text {
        out.push(TranscriptEvent::message(Tag::Sys, text));
    }
}

/// Reports an event of a known type that has no form of its own: its text if it has one, otherwise its type.
pub(in crate::transcript) fn push_other(kind: &str, text: Option<&str>, out: &mut Vec<TranscriptEvent>) {
    match text {
        Some(text) => out.push(TranscriptEvent::message(Tag::Sys, text)),
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
    fn line_of_terminal_sequences_is_empty() {
        assert_eq!(json_text(RESET), "");
    }

    #[test]
    fn terminal_sequences_around_json_are_removed() {
        assert_eq!(json_text(&format!("{RESET}{{\"a\":1}}")), "{\"a\":1}");
        assert_eq!(json_text(&format!("{{\"a\":1}}\r{RESET}")), "{\"a\":1}");
    }

    #[test]
    fn lone_surrogate_is_replaced() {
        assert_eq!(json_text(r#"{"t":"\ud83d"}"#), r#"{"t":"\ufffd"}"#);
        assert_eq!(json_text(r#"{"t":"\uDE00x"}"#), r#"{"t":"\ufffdx"}"#);
        assert_eq!(
            json_text(r#"{"t":"\ud83d\ud83d\ude00"}"#),
            r#"{"t":"\ufffd\ud83d\ude00"}"#
        );
    }

    #[test]
    fn surrogate_pairs_and_escaped_backslashes_are_unchanged() {
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
