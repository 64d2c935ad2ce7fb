//! Copies text to the clipboard with the OSC 52 escape sequence.

/// Many terminals reject longer texts.
pub(super) const MAX_BYTES: usize = 64 * 1024;

/// The escape sequence that copies `text` to the clipboard.
pub(super) fn sequence(text: &str) -> String {
    format!("\x1b]52;c;{}\x07", base64(text.as_bytes()))
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let number = chunk
            .iter()
            .fold(0_usize, |number, byte| number << 8 | usize::from(*byte));
        let number = number << (8 * (3 - chunk.len()));
        for index in 0..4 {
            let digit = DIGITS[number >> (18 - 6 * index) & 63];
            text.push(if index > chunk.len() {
                '='
            } else {
                char::from(digit)
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_matches_known_encodings() {
        let cases = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
            ("ä✓", "w6TinJM="),
        ];
        for (text, encoded) in cases {
            assert_eq!(base64(text.as_bytes()), encoded);
        }
        assert_eq!(sequence("foo"), "\x1b]52;c;Zm9v\x07");
    }
}
