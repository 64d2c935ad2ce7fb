//! Makes untrusted text safe to print: removes escape sequences, control characters and bidirectional overrides, and
//! replaces carriage returns. Newlines and tabs are kept.

use std::borrow::Cow;

/// The text without anything that a terminal would interpret. Borrowed if there is nothing to remove.
///
/// A terminated sequence is removed together with its payload. Of an unterminated one only the introducer is removed, so
/// that it cannot hide the text after it. A carriage return becomes a line break.
pub fn clean(text: &str) -> Cow<'_, str> {
    let Some(first) = find_unsafe(text, 0) else {
        return Cow::Borrowed(text);
    };
    let mut cleaned = String::with_capacity(text.len());
    let (mut from, mut at) = (0, Some(first));
    while let Some(start) = at {
        cleaned.push_str(&text[from..start]);
        let (end, replacement) = unsafe_sequence(text, start);
        cleaned.push_str(replacement);
        from = end;
        at = find_unsafe(text, end);
    }
    cleaned.push_str(&text[from..]);
    Cow::Owned(cleaned)
}

/// Bytes are checked in blocks without branches, so that the compiler can vectorize the check.
const BLOCK: usize = 64;

/// The position of the first unsafe character at or after `from`.
fn find_unsafe(text: &str, from: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = from;
    while at < bytes.len() {
        let end = bytes.len().min(at + BLOCK);
        let suspicious = bytes[at..end]
            .iter()
            .fold(false, |any, byte| any | is_suspicious(*byte));
        if suspicious && let Some(found) = (at..end).find(|index| is_unsafe_at(bytes, *index)) {
            return Some(found);
        }
        at = end;
    }
    None
}

/// True if the byte may start something unsafe: a control character, or the first byte of a C1 control (C2) or of a bidi override (E2).
fn is_suspicious(byte: u8) -> bool {
    (byte < b' ') & (byte != b'\n') & (byte != b'\t') | (byte == 0x7f) | (byte == 0xc2) | (byte == 0xe2)
}

fn is_unsafe_at(bytes: &[u8], at: usize) -> bool {
    match bytes[at] {
        b'\n' | b'\t' => false,
        0..b' ' | 0x7f => true,
        0xc2 => matches!(bytes.get(at + 1), Some(0x80..=0x9f)),
        0xe2 => matches!(
            (bytes.get(at + 1), bytes.get(at + 2)),
            (Some(0x80), Some(0xaa..=0xae)) | (Some(0x81), Some(0xa6..=0xa9))
        ),
        _ => false,
    }
}

/// The end of the unsafe sequence that starts at `start`, and its replacement.
fn unsafe_sequence(text: &str, start: usize) -> (usize, &'static str) {
    let bytes = text.as_bytes();
    match bytes[start] {
        0x1b => (escape_end(bytes, start + 1), ""),
        b'\r' if bytes.get(start + 1) == Some(&b'\n') => (start + 1, ""),
        b'\r' => (start + 1, "\n"),
        0xc2 => (c1_end(bytes, start + 2, bytes[start + 1]), ""),
        0xe2 => (start + 3, ""),
        _ => (start + 1, ""),
    }
}

/// The end of the sequence whose ESC is just before `at`.
fn escape_end(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at) {
        Some(b'[') => control_sequence_end(bytes, at + 1),
        Some(b']' | b'P' | b'X' | b'^' | b'_') => string_end(bytes, at + 1),
        Some(b' '..=b'/') => {
            let last = at + run_length(&bytes[at..], b' '..=b'/');
            last + usize::from(matches!(bytes.get(last), Some(b'0'..=b'~')))
        }
        Some(b'0'..=b'~') => at + 1,
        _ => at,
    }
}

/// The end of a sequence introduced by a C1 character; `at` is just after it.
fn c1_end(bytes: &[u8], at: usize, second_byte: u8) -> usize {
    match second_byte {
        0x9b => control_sequence_end(bytes, at),
        0x90 | 0x98 | 0x9d | 0x9e | 0x9f => string_end(bytes, at),
        _ => at,
    }
}

/// CSI: parameters, intermediates, and one final byte if present.
fn control_sequence_end(bytes: &[u8], at: usize) -> usize {
    let parameters = at + run_length(&bytes[at..], b'0'..=b'?');
    let intermediates = parameters + run_length(&bytes[parameters..], b' '..=b'/');
    intermediates + usize::from(matches!(bytes.get(intermediates), Some(b'@'..=b'~')))
}

/// OSC, DCS, APC, PM, SOS: up to the terminator. Any other escape, CAN or SUB cancels the string, as in a terminal. The
/// payload of a cancelled or unterminated string is ordinary text, so the sequence ends at `at`.
fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut index = at;
    while let Some(byte) = bytes.get(index) {
        match (byte, bytes.get(index + 1)) {
            (0x07, _) => return index + 1,
            (0x1b, Some(b'\\')) | (0xc2, Some(0x9c)) => return index + 2,
            (0x1b | 0x18 | 0x1a, _) | (0xc2, Some(0x80..=0x9f)) => return at,
            _ => index += 1,
        }
    }
    at
}

fn run_length(bytes: &[u8], range: std::ops::RangeInclusive<u8>) -> usize {
    bytes.iter().take_while(|byte| range.contains(byte)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn clean_text_is_borrowed() {
        for text in [
            "",
            "plain",
            "tab\tand\nnewline",
            "é ü “quoted” — ✓ 日本語 👩‍💻 §\u{a0}",
        ] {
            assert!(
                matches!(clean(text), Cow::Borrowed(same) if same == text),
                "{text:?}"
            );
        }
    }

    #[test]
    fn terminated_sequences_are_removed_with_their_payload() {
        let cases = [
            ("a\x1b[31mred\x1b[0m", "ared"),
            ("\x1b[2J\x1b[H\x1b[?25lx", "x"),
            ("\x1b]0;title\x07x", "x"),
            ("\x1b]52;c;c2VjcmV0\x1b\\x", "x"),
            ("\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\x1bPq#0;2\nsixel\x1b\\x", "x"),
            ("\x1b_Gkitty\x1b\\x\x1b^pm\x1b\\y\x1bXsos\x1b\\z", "xyz"),
            ("\x1b(Bx\x1b7y\x1bcz", "xyz"),
            ("\u{9b}31mx\u{9d}52;c;AAAA\u{9c}y", "xy"),
            ("\u{90}dcs\u{9c}x\u{85}y", "xy"),
        ];
        for (text, shown) in cases {
            assert_eq!(clean(text), shown, "{text:?}");
        }
    }

    #[test]
    fn unterminated_sequence_keeps_the_text_after_it() {
        let cases = [
            (
                "\x1b]0;title\nthe rest of the answer",
                "0;title\nthe rest of the answer",
            ),
            ("\x1bPpayload", "payload"),
            ("\x1b]52;c;AA\x1b[31mred", "52;c;AAred"),
            ("\u{9d}text\u{9b}1mmore", "textmore"),
            ("end\x1b", "end"),
            ("end\x1b[", "end"),
            ("end\x1b[12é", "endé"),
            ("\x1bé", "é"),
        ];
        for (text, shown) in cases {
            assert_eq!(clean(text), shown, "{text:?}");
        }
    }

    #[test]
    fn carriage_return_becomes_a_line_break() {
        assert_eq!(clean("one\r\ntwo\rthree\r"), "one\ntwo\nthree\n");
    }

    #[test]
    fn bidi_overrides_are_removed_and_right_to_left_text_is_kept() {
        assert_eq!(clean("user\u{202e}gpj.exe\u{2066}x\u{2069}"), "usergpj.exex");
        assert_eq!(clean("שלום \u{200f}x"), "שלום \u{200f}x");
    }

    #[test]
    fn unsafe_characters_after_the_first_block_are_found() {
        let text = format!("{}\x07é\x08", "–".repeat(200));
        assert_eq!(clean(&text), format!("{}é", "–".repeat(200)));
    }

    fn is_forbidden(c: char) -> bool {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    }

    proptest! {
        #[test]
        fn nothing_unsafe_remains(text in "([ -~\n]|[\u{0}-\u{1f}]|[\u{7f}-\u{a1}]|[\u{2020}-\u{2070}]|\x1b[\\[\\]P_^X\\\\(]|.){0,200}") {
            prop_assert!(!clean(&text).chars().any(is_forbidden));
        }

        #[test]
        fn safe_text_is_unchanged(text in "([ -~\n\t]|[\u{a0}-\u{2029}]|[\u{206a}-\u{ffff}]){0,200}") {
            prop_assert_eq!(clean(&text), text.as_str());
        }

        #[test]
        fn cleaning_twice_changes_nothing(text in any::<String>()) {
            let once = clean(&text).into_owned();
            prop_assert_eq!(clean(&once), once.as_str());
        }
    }
}
