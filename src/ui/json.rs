//! The JSON face: every record as one line of JSON, and nothing else.

use std::io::{self, Write};

use serde::Serialize;

use crate::event::{LineWriter, Record, Sink};

/// Writes each record as one line, in one `write`, so that lines of two writers never mix.
pub struct JsonLines<W: Write> {
    writer: W,
    line: Vec<u8>,
    lines: LineWriter,
}

/// A line longer than this gives its memory back after it was written.
const KEPT_CAPACITY: usize = 1 << 20;

impl<W: Write> JsonLines<W> {
    pub fn new(writer: W) -> Self {
        Self {
            writer,
            line: Vec::new(),
            lines: LineWriter::default(),
        }
    }

    /// Writes one value as one line.
    pub fn write(&mut self, value: &impl Serialize) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, value)?;
        self.line.push(b'\n');
        self.put()
    }

    fn put(&mut self) -> io::Result<()> {
        let written = self.writer.write_all(&self.line);
        if self.line.capacity() > KEPT_CAPACITY {
            self.line = Vec::new();
        }
        written
    }
}

impl<W: Write> super::FrontEnd for JsonLines<W> {}

impl<W: Write> Sink for JsonLines<W> {
    fn accept(&mut self, record: &Record) -> io::Result<()> {
        self.line.clear();
        self.lines.write(record, &mut self.line)?;
        self.put()
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Level, RunEvent};
    use jiff::Timestamp;

    struct CountsWrites(Vec<Vec<u8>>);

    impl Write for CountsWrites {
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
                seq,
                at: Timestamp::UNIX_EPOCH,
                event: RunEvent::Notice {
                    level: Level::Info,
                    text: "two\nlines \u{1b}[2J".into(),
                },
            })
            .collect();
        let mut front_end = JsonLines::new(CountsWrites(Vec::new()));
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
