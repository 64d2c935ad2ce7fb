//! Decodes terminal input bytes into key events, independent of how the bytes are split. Pure.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};

use super::theme::Background;

const ESCAPE: u8 = 0x1b;
const PASTE_END: &[u8] = b"\x1b[201~";
/// Longer escape sequences are discarded.
const MAX_SEQUENCE: usize = 256;
/// Pasted text beyond this length is discarded.
const MAX_PASTE: usize = 64 * 1024;

#[derive(Debug, Default)]
pub(super) struct KeyDecoder {
    /// The start of an incomplete sequence.
    pending: Vec<u8>,
    pasted: Option<Vec<u8>>,
    background: Option<Background>,
}

/// The first element of the pending bytes.
enum Decoded {
    /// A key and its length in bytes.
    Key(KeyEvent, usize),
    /// The terminal's background and the length of the reply.
    Background(Background, usize),
    /// Bytes to skip.
    Ignored(usize),
    PasteStart(usize),
    /// More bytes are needed.
    Incomplete,
}

impl KeyDecoder {
    pub(super) fn feed(&mut self, bytes: &[u8], out: &mut Vec<Event>) {
        self.pending.extend_from_slice(bytes);
        let mut at = 0;
        while at < self.pending.len() {
            if let Some(pasted) = &mut self.pasted {
                let rest = &self.pending[at..];
                let Some(end) = memchr::memmem::find(rest, PASTE_END) else {
                    // The end marker may be split.
                    let complete = rest.len().saturating_sub(PASTE_END.len() - 1);
                    append_paste(pasted, &rest[..complete]);
                    at += complete;
                    break;
                };
                append_paste(pasted, &rest[..end]);
                out.push(Event::Paste(String::from_utf8_lossy(pasted).into_owned()));
                self.pasted = None;
                at += end + PASTE_END.len();
                continue;
            }
            match decode_first(&self.pending[at..]) {
                Decoded::Key(key, count) => {
                    out.push(Event::Key(key));
                    at += count;
                }
                Decoded::Background(background, count) => {
                    self.background = Some(background);
                    at += count;
                }
                Decoded::Ignored(count) => at += count,
                Decoded::PasteStart(count) => {
                    self.pasted = Some(Vec::new());
                    at += count;
                }
                Decoded::Incomplete if self.pending.len() - at > MAX_SEQUENCE => at = self.pending.len(),
                Decoded::Incomplete => break,
            }
        }
        self.pending.drain(..at);
    }

    /// The background that the terminal has reported since the last call.
    pub(super) fn take_background(&mut self) -> Option<Background> {
        self.background.take()
    }

    /// Whether the last bytes are an incomplete sequence.
    pub(super) fn has_pending(&self) -> bool {
        self.pasted.is_none() && !self.pending.is_empty()
    }

    /// Ends an incomplete sequence after a timeout. A lone escape byte becomes the Esc key.
    pub(super) fn flush(&mut self, out: &mut Vec<Event>) {
        if self.pasted.is_none() && self.pending == [ESCAPE] {
            out.push(Event::Key(KeyCode::Esc.into()));
        }
        if self.pasted.is_none() {
            self.pending.clear();
        }
    }
}

fn append_paste(pasted: &mut Vec<u8>, bytes: &[u8]) {
    let capacity = MAX_PASTE.saturating_sub(pasted.len());
    pasted.extend_from_slice(&bytes[..bytes.len().min(capacity)]);
}

fn decode_first(bytes: &[u8]) -> Decoded {
    let plain = |code: KeyCode| Decoded::Key(code.into(), 1);
    match bytes[0] {
        ESCAPE => escape(bytes),
        b'\r' | b'\n' => plain(KeyCode::Enter),
        b'\t' => plain(KeyCode::Tab),
        0x7f | 0x08 => plain(KeyCode::Backspace),
        control @ 0x01..=0x1a => {
            let letter = char::from(control - 1 + b'a');
            Decoded::Key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL), 1)
        }
        0x00..=0x1f => Decoded::Ignored(1),
        _ => character(bytes),
    }
}

fn character(bytes: &[u8]) -> Decoded {
    let length = match bytes[0] {
        0x00..=0x7f => 1,
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return Decoded::Ignored(1),
    };
    let Some(bytes) = bytes.get(..length) else {
        return Decoded::Incomplete;
    };
    match std::str::from_utf8(bytes)
        .ok()
        .and_then(|text| text.chars().next())
    {
        Some(c) => Decoded::Key(KeyCode::Char(c).into(), length),
        None => Decoded::Ignored(1),
    }
}

fn escape(bytes: &[u8]) -> Decoded {
    match bytes.get(1) {
        None => Decoded::Incomplete,
        Some(b'[') => control_sequence(bytes),
        Some(b'O') => match bytes.get(2) {
            None => Decoded::Incomplete,
            Some(last) => arrow(*last).map_or(Decoded::Ignored(3), |code| Decoded::Key(code.into(), 3)),
        },
        // Replies to terminal queries.
        Some(b']' | b'P' | b'_' | b'^' | b'X') => string(bytes),
        Some(b'\r') => Decoded::Key(KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT), 2),
        Some(_) => Decoded::Key(KeyCode::Esc.into(), 1),
    }
}

/// `ESC [ parameters intermediates final`
fn control_sequence(bytes: &[u8]) -> Decoded {
    let Some(last) = bytes[2..].iter().position(|byte| !matches!(byte, 0x20..=0x3f)) else {
        return Decoded::Incomplete;
    };
    let (parameters, length) = (&bytes[2..2 + last], last + 3);
    let first = parameters.split(|byte| *byte == b';').next().unwrap_or_default();
    let code = match bytes[2 + last] {
        b'~' => match first {
            b"1" | b"7" => Some(KeyCode::Home),
            b"4" | b"8" => Some(KeyCode::End),
            b"3" => Some(KeyCode::Delete),
            b"5" => Some(KeyCode::PageUp),
            b"6" => Some(KeyCode::PageDown),
            b"200" => return Decoded::PasteStart(length),
            _ => None,
        },
        b'Z' => Some(KeyCode::BackTab),
        other => arrow(other),
    };
    code.map_or(Decoded::Ignored(length), |code| Decoded::Key(code.into(), length))
}

fn arrow(last: u8) -> Option<KeyCode> {
    match last {
        b'A' => Some(KeyCode::Up),
        b'B' => Some(KeyCode::Down),
        b'C' => Some(KeyCode::Right),
        b'D' => Some(KeyCode::Left),
        b'H' => Some(KeyCode::Home),
        b'F' => Some(KeyCode::End),
        _ => None,
    }
}

fn string(bytes: &[u8]) -> Decoded {
    let bell = memchr::memchr(0x07, bytes).map(|at| at + 1);
    let terminator = memchr::memmem::find(&bytes[2..], b"\x1b\\").map(|at| at + 4);
    match (bell, terminator) {
        (None, None) => Decoded::Incomplete,
        (bell, terminator) => {
            let length = bell.unwrap_or(usize::MAX).min(terminator.unwrap_or(usize::MAX));
            let reply = bytes[..length].strip_prefix(b"\x1b]11;");
            match reply.and_then(|reply| std::str::from_utf8(reply).ok()) {
                Some(reply) => {
                    let reply = reply.trim_end_matches(['\x07', '\x1b', '\\']);
                    Background::of_reply(reply).map_or(Decoded::Ignored(length), |background| {
                        Decoded::Background(background, length)
                    })
                }
                None => Decoded::Ignored(length),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(chunks: &[&[u8]]) -> Vec<Event> {
        let (mut decoder, mut out) = (KeyDecoder::default(), Vec::new());
        for chunk in chunks {
            decoder.feed(chunk, &mut out);
        }
        decoder.flush(&mut out);
        out
    }

    fn keys(codes: &[KeyCode]) -> Vec<Event> {
        codes.iter().map(|code| Event::Key((*code).into())).collect()
    }

    #[test]
    fn keys_are_decoded_wherever_the_bytes_are_split() {
        let all: &[u8] =
            "\x1b[A\x1bOB\x1b[1;5C\x1b[D\x1b[5~\x1b[6~\x1b[H\x1b[4~\x1b[Z\t\rqé✓\u{7f}".as_bytes();
        let expected = keys(&[
            KeyCode::Up,
            KeyCode::Down,
            KeyCode::Right,
            KeyCode::Left,
            KeyCode::PageUp,
            KeyCode::PageDown,
            KeyCode::Home,
            KeyCode::End,
            KeyCode::BackTab,
            KeyCode::Tab,
            KeyCode::Enter,
            KeyCode::Char('q'),
            KeyCode::Char('é'),
            KeyCode::Char('✓'),
            KeyCode::Backspace,
        ]);
        assert_eq!(decode(&[all]), expected);
        for split in 1..all.len() {
            assert_eq!(
                decode(&[&all[..split], &all[split..]]),
                expected,
                "split at {split}"
            );
        }
    }

    #[test]
    fn lone_escape_and_ctrl_c_are_keys() {
        assert_eq!(decode(&[b"\x1b"]), keys(&[KeyCode::Esc]));
        assert_eq!(decode(&[b"\x1b\x1b"]), keys(&[KeyCode::Esc, KeyCode::Esc]));
        let ctrl_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(decode(&[b"\x03"]), [Event::Key(ctrl_c)]);
    }

    #[test]
    fn reply_to_the_query_for_the_background_is_no_key() {
        for end in ["\x07", "\x1b\\"] {
            let (mut decoder, mut out) = (KeyDecoder::default(), Vec::new());
            decoder.feed(format!("a\x1b]11;rgb:ffff/ffff/ffff{end}b").as_bytes(), &mut out);
            assert_eq!(out, keys(&[KeyCode::Char('a'), KeyCode::Char('b')]));
            assert_eq!(decoder.take_background(), Some(Background::Light));
            assert_eq!(decoder.take_background(), None);
        }
    }

    #[test]
    fn alt_enter_is_one_key() {
        let alt_enter = KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT);
        assert_eq!(decode(&[b"\x1b\r"]), [Event::Key(alt_enter)]);
    }

    #[test]
    fn pasted_bytes_are_text_not_keys() {
        let all: &[u8] = b"\x1b[200~q\x1b[A\ny\x1b[201~x";
        let expected = [
            Event::Paste("q\x1b[A\ny".into()),
            Event::Key(KeyCode::Char('x').into()),
        ];
        for split in 0..all.len() {
            assert_eq!(
                decode(&[&all[..split], &all[split..]]),
                expected,
                "split at {split}"
            );
        }
        let mut long = b"\x1b[200~".to_vec();
        long.extend(std::iter::repeat_n(b'x', 1_000_000));
        long.extend_from_slice(PASTE_END);
        let [Event::Paste(text)] = &decode(&[&long])[..] else {
            panic!("one paste");
        };
        assert_eq!(text.len(), MAX_PASTE);
    }

    #[test]
    fn other_sequences_are_ignored() {
        for noise in [
            &b"\x1b[<64;10;20M"[..],
            b"\x1b[?1;2c",
            b"\x1b[24;80R",
            b"\x1b]11;rgb:0000/0000/0000\x07",
            b"\x1bP1+r544e\x1b\\",
            b"\x1b[I",
            b"\xff\xfe",
            b"\x00",
        ] {
            assert_eq!(decode(&[noise]), [], "{noise:?}");
        }
        let endless = [b'0'; 5000];
        assert_eq!(decode(&[b"\x1b[", &endless]), []);
    }

    #[test]
    fn random_bytes_do_not_panic() {
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..2000 {
            let bytes: Vec<u8> = (0..random.usize(0..40))
                .map(|_| {
                    *b"\x1b[]O~;2010AZPM\x07\\\x80\xe2q"
                        .get(random.usize(0..22))
                        .unwrap_or(&0)
                })
                .collect();
            decode(&[&bytes]);
        }
    }
}
