//! Following a journal while a run appends to it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;

use super::journal::{JournalEntry, parse_entry};
use super::{StoreError, io_error, open_file};

/// A reader that follows a growing journal.
#[derive(Debug)]
pub struct JournalTail {
    reader: BufReader<File>,
    /// The start of a line whose end has not been written yet.
    line: Vec<u8>,
}

/// Capacity of the line buffer that is retained after a long record.
const RETAINED_CAPACITY: usize = 1 << 20;

impl JournalTail {
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_at(path, 0)
    }

    /// Opens a journal at the position of a record.
    pub fn open_at(path: &Path, position: u64) -> Result<Self, StoreError> {
        let mut file = open_file(path)?;
        file.seek(SeekFrom::Start(position))
            .map_err(io_error("read", path))?;
        Ok(Self {
            reader: BufReader::with_capacity(1 << 18, file),
            line: Vec::new(),
        })
    }

    /// Returns the next complete entry, or `None` if there is none yet. An incomplete line stays in the buffer.
    pub fn next_entry(&mut self) -> io::Result<Option<JournalEntry>> {
        loop {
            self.reader.read_until(b'\n', &mut self.line)?;
            if !self.line.ends_with(b"\n") {
                return Ok(None);
            }
            let entry = parse_entry(&self.line);
            self.line.clear();
            self.line.shrink_to(RETAINED_CAPACITY);
            if entry.is_some() {
                return Ok(entry);
            }
        }
    }

    /// Returns the last record if only its newline is missing. Call this when the run has ended.
    pub fn final_record(&mut self) -> Option<JournalEntry> {
        let entry = parse_entry(&std::mem::take(&mut self.line));
        entry.filter(|entry| matches!(entry, JournalEntry::Record(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn appended_entries_are_read_and_incomplete_lines_wait_for_their_end() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let line =
            |seq: u64| format!("{{\"seq\":{seq},\"at\":\"2026-11-15T20:45:01Z\",\"type\":\"wait_ended\"}}\n");
        let mut tail = JournalTail::open(file.path()).unwrap();
        let seq = |entry: Option<JournalEntry>| match entry {
            Some(JournalEntry::Record(record)) => Some(record.seq),
            Some(JournalEntry::Unknown { .. } | JournalEntry::Damaged) => Some(0),
            None => None,
        };
        assert_eq!(seq(tail.next_entry().unwrap()), None);
        let second = line(2);
        write!(file, "{}\n{}", line(1), &second[..20]).unwrap();
        assert_eq!(seq(tail.next_entry().unwrap()), Some(1));
        assert_eq!(seq(tail.next_entry().unwrap()), None);
        write!(file, "{}", second[20..].trim_end()).unwrap();
        assert_eq!(
            seq(tail.next_entry().unwrap()),
            None,
            "the newline is still missing"
        );
        assert_eq!(seq(tail.final_record()), Some(2));
        writeln!(file, "\ndamaged").unwrap();
        assert_eq!(seq(tail.next_entry().unwrap()), Some(0));
    }
}
