//! Text for the clipboard, by the terminal's own sequence (OSC 52). Only ever for a text that the watcher chose.

/// Longer texts are refused by many terminals.
pub(super) const MOST: usize = 64 * 1024;

/// The sequence that asks the terminal to take a text.
pub(super) fn sequence(text: &str) -> String {
    format!("\x1b]52;c;{}\x07", base64(text.as_bytes()))
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let number = three
            .iter()
            .fold(0_usize, |number, byte| number << 8 | usize::from(*byte));
        let number = number << (8 * (3 - three.len()));
        for place in 0..4 {
            let digit = DIGITS[number >> (18 - 6 * place) & 63];
            text.push(if place > three.len() {
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
    fn the_usual_examples() {
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
