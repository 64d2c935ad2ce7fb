//! The JSON front end: writes every record as one line of JSON.

use std::io::{self, Write};

use serde::Serialize;

use crate::event::{Record, RecordWriter, Sink};

/// Formats a value as indented JSON with a final newline, as `--json` prints it.
pub fn pretty_json(value: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default() + "\n";
    match escape_controls(text.as_bytes()) {
        Some(escaped) => String::from_utf8_lossy(&escaped).into_owned(),
        None => text,
    }
}

/// Escapes characters that act on a terminal although JSON allows them unescaped: C1 controls and marks that change the
/// direction of text. `None` if there are none. They occur only in strings, so the value stays the same.
fn escape_controls(json: &[u8]) -> Option<Vec<u8>> {
    // The first bytes of these characters in UTF-8.
    memchr::memchr3(0xC2, 0xE2, 0xD8, json)?;
    let text = std::str::from_utf8(json).ok()?;
    let first = text.find(acts_on_terminal)?;
    let mut escaped = json[..first].to_vec();
    for letter in text[first..].chars() {
        match acts_on_terminal(letter) {
            true => escaped.extend(format!("\\u{:04x}", u32::from(letter)).bytes()),
            false => escaped.extend(letter.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    Some(escaped)
}

fn acts_on_terminal(letter: char) -> bool {
    matches!(
        letter,
        '\u{80}'..='\u{9f}'
            | '\u{61c}'
            | '\u{200e}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
    )
}

/// Writes each record with a single `write`, so that lines of two writers never mix.
pub struct JsonLines<W: Write> {
    writer: W,
    line: Vec<u8>,
    lines: RecordWriter,
}

/// The line buffer is freed after a line longer than this.
const MAX_RETAINED_CAPACITY: usize = 1 << 20;

impl<W: Write> JsonLines<W> {
    pub fn new(writer: W) -> Self {
        Self {
            writer,
            line: Vec::new(),
            lines: RecordWriter::default(),
        }
    }

    /// Writes one value as one line.
    pub fn write(&mut self, value: &impl Serialize) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, value)?;
        self.line.push(b'\n');
        self.write_line()
    }

    fn write_line(&mut self) -> io::Result<()> {
        let escaped = escape_controls(&self.line);
        let written = self.writer.write_all(escaped.as_deref().unwrap_or(&self.line));
        if self.line.capacity() > MAX_RETAINED_CAPACITY {
            self.line = Vec::new();
        }
        written
    }
}

impl<W: Write + Send> super::FrontEnd for JsonLines<W> {}

impl<W: Write> Sink for JsonLines<W> {
    fn accept(&mut self, record: &Record) -> io::Result<()> {
        self.line.clear();
        self.lines.write(record, &mut self.line)?;
        self.write_line()
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{NoticeLevel, RunEvent};
    use jiff::Timestamp;

    #[test]
    fn c1_controls_and_direction_marks_are_escaped_and_the_value_is_the_same() {
        let text = "a\u{9b}31m\u{202e}b\u{2066}é\u{61c}\u{2028}€";
        let mut output = JsonLines::new(RecordedWrites(Vec::new()));
        output.write(&text).expect("a line");
        let line = String::from_utf8(output.writer.0.concat()).expect("UTF-8");
        assert_eq!(line, "\"a\\u009b31m\\u202eb\\u2066é\\u061c\\u2028€\"\n");
        assert_eq!(serde_json::from_str::<String>(&line).expect("JSON"), text);
        assert!(!pretty_json(&text).contains(acts_on_terminal));
    }

    struct RecordedWrites(Vec<Vec<u8>>);

    impl Write for RecordedWrites {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.push(bytes.to_vec());
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn one_record_is_one_line_and_one_write() {
        let records: Vec<Record> = (1..=2)
            .map(|seq| Record {
                chain: None,
                seq,
                at: Timestamp::UNIX_EPOCH,
                event: RunEvent::Notice {
                    level: NoticeLevel::Info,
                    text: "two\nlines \u{1b}[2J".into(),
                },
            })
            .collect();
        let mut front_end = JsonLines::new(RecordedWrites(Vec::new()));
        for record in &records {
            front_end.accept(record).unwrap();
        }
        front_end.flush().unwrap();
        assert_eq!(front_end.writer.0.len(), 2);
        for (line, record) in front_end.writer.0.iter().zip(&records) {
            assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
            assert!(!line.contains(&0x1b), "JSON escapes control characters");
            assert_eq!(&serde_json::from_slice::<Record>(line).unwrap(), record);
        }
    }
}
