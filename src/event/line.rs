//! A record as one line of JSON. What agents say by the thousand is written by hand, to the very bytes that serde would
//! write: this is most of what ralph does while an agent floods it.

use std::io::Write;

use jiff::Timestamp;

use super::{Flow, Record, RunEvent, TranscriptEvent};

/// Writes records as lines, one after the other.
#[derive(Debug, Default)]
pub struct LineWriter {
    /// The last second that was written, and how.
    second: Option<(i64, Vec<u8>)>,
}

impl LineWriter {
    /// Adds the record and a line end.
    pub fn write(&mut self, record: &Record, out: &mut Vec<u8>) -> serde_json::Result<()> {
        match &record.event {
            RunEvent::Transcript {
                iteration,
                event:
                    TranscriptEvent::Text {
                        tag,
                        text,
                        flow,
                        parent: None,
                    },
            } => {
                self.begin(record, *iteration, out);
                out.extend_from_slice(b"\"text\",\"tag\":\"");
                out.extend_from_slice(tag.name().as_bytes());
                out.extend_from_slice(b"\",\"text\":");
                put_text(text, out);
                out.extend_from_slice(match flow {
                    Flow::Message => b"}}\n",
                    Flow::Delta => b",\"flow\":\"delta\"}}\n",
                    Flow::Line => b",\"flow\":\"line\"}}\n",
                });
                Ok(())
            }
            RunEvent::Transcript {
                iteration,
                event: TranscriptEvent::ToolOutput { tool, text },
            } => {
                self.begin(record, *iteration, out);
                out.extend_from_slice(b"\"tool_output\",\"tool\":{\"id\":");
                put_text(&tool.id, out);
                out.extend_from_slice(b"},\"text\":");
                put_text(text, out);
                out.extend_from_slice(b"}}\n");
                Ok(())
            }
            _ => {
                serde_json::to_writer(&mut *out, record)?;
                out.push(b'\n');
                Ok(())
            }
        }
    }

    /// All that stands before the kind of a transcript's event.
    fn begin(&mut self, record: &Record, iteration: u64, out: &mut Vec<u8>) {
        // A vector takes all that is written to it.
        let _ = write!(out, "{{\"seq\":{},\"at\":\"", record.seq);
        self.put_time(record.at, out);
        let _ = write!(
            out,
            "\",\"type\":\"transcript\",\"iteration\":{iteration},\"event\":{{\"type\":"
        );
    }

    fn put_time(&mut self, at: Timestamp, out: &mut Vec<u8>) {
        let (second, nanoseconds) = (at.as_second(), at.subsec_nanosecond());
        // Before 1970 a fraction counts backwards.
        if second < 0 || nanoseconds < 0 {
            let _ = write!(out, "{at}");
            return;
        }
        match &self.second {
            Some((known, text)) if *known == second => out.extend_from_slice(text),
            Some(_) | None => {
                let whole = Timestamp::from_second(second).unwrap_or(at).to_string();
                let text = whole.trim_end_matches('Z').as_bytes().to_vec();
                out.extend_from_slice(&text);
                self.second = Some((second, text));
            }
        }
        if nanoseconds > 0 {
            let digits = format!("{nanoseconds:09}");
            out.push(b'.');
            out.extend_from_slice(digits.trim_end_matches('0').as_bytes());
        }
        out.push(b'Z');
    }
}

fn put_text(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(at) = next_to_escape(rest) {
        out.extend_from_slice(&rest[..at]);
        escape(rest[at], out);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

fn escape(byte: u8, out: &mut Vec<u8>) {
    match byte {
        b'"' => out.extend_from_slice(b"\\\""),
        b'\\' => out.extend_from_slice(b"\\\\"),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        0x08 => out.extend_from_slice(b"\\b"),
        0x0c => out.extend_from_slice(b"\\f"),
        other => {
            let _ = write!(out, "\\u{other:04x}");
        }
    }
}

/// Where the first byte is that cannot stand in JSON as it is. Eight bytes are looked at together.
fn next_to_escape(bytes: &[u8]) -> Option<usize> {
    let (words, _) = bytes.as_chunks::<8>();
    let clean = words.iter().take_while(|word| !has_one_to_escape(**word)).count();
    let from = clean * 8;
    bytes[from..]
        .iter()
        .position(|byte| needs_escape(*byte))
        .map(|at| from + at)
}

fn needs_escape(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

/// Each byte on its own: the high bit of one in which something was borrowed. May take a byte above 127 for one, never
/// the other way round.
fn has_one_to_escape(word: [u8; 8]) -> bool {
    const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    let word = u64::from_ne_bytes(word);
    let below = |limit: u64, word: u64| word.wrapping_sub(ONES * limit) & !word;
    let is = |byte: u8| below(1, word ^ (ONES * u64::from(byte)));
    (below(0x20, word) | is(b'"') | is(b'\\')) & HIGH != 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::event::{Tag, ToolRef};

    fn both(record: &Record) -> (String, String) {
        let mut by_hand = Vec::new();
        LineWriter::default().write(record, &mut by_hand).unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let by_serde = serde_json::to_string(record).unwrap() + "\n";
        (text(by_hand), by_serde)
    }

    fn texts() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<String>(),
            "[ -~\\n\\t\"\\\\\u{0}-\u{1f}\u{7f}-\u{ff}]{0,64}",
            "[a-zé🦀]{0,200}"
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_by_hand_is_what_serde_writes(
            seq in any::<u64>(),
            iteration in any::<u64>(),
            nanoseconds in prop_oneof![
                0..2_000_000_000_000_000_000_i128,
                (0..2_000_000_000_i128).prop_map(|second| second * 1_000_000_000),
                (0..2_000_000_000_000_i128).prop_map(|milli| milli * 1_000_000),
                -2_000_000_000_000_000_000..0_i128,
            ],
            text in texts(),
            id in texts(),
            kind in 0..19_usize,
        ) {
            let tags = [Tag::Ai, Tag::Think, Tag::Sys, Tag::Tool, Tag::Prompt, Tag::User];
            let flows = [Flow::Message, Flow::Delta, Flow::Line];
            let event = match kind {
                18 => TranscriptEvent::ToolOutput { tool: ToolRef { id }, text },
                kind => TranscriptEvent::Text { tag: tags[kind / 3], text, flow: flows[kind % 3], parent: None },
            };
            let at = Timestamp::from_nanosecond(nanoseconds).unwrap();
            let (by_hand, by_serde) = both(&Record { seq, at, event: RunEvent::Transcript { iteration, event } });
            prop_assert_eq!(by_hand, by_serde);
        }
    }

    #[test]
    fn seconds_that_go_back_are_written_anew() {
        let mut writer = LineWriter::default();
        let mut out = Vec::new();
        for second in [5, 5, 6, 4] {
            let at = Timestamp::new(second, 120_000_000).unwrap();
            let event = TranscriptEvent::message(Tag::Ai, "x");
            let event = RunEvent::Transcript { iteration: 1, event };
            writer.write(&Record { seq: 1, at, event }, &mut out).unwrap();
        }
        let seconds: Vec<u8> = out
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice::<Record>(line).unwrap())
            .map(|record| u8::try_from(record.at.as_second()).unwrap())
            .collect();
        assert_eq!(seconds, [5, 5, 6, 4]);
    }
}
