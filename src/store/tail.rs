//! A journal that may still grow, read as it does.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use super::journal::{Entry, entry_of};
use super::{StoreError, at};

/// Where somebody stands in a journal.
#[derive(Debug)]
pub struct Tail {
    reader: BufReader<File>,
    /// The beginning of a line whose end has not been written yet.
    line: Vec<u8>,
}

/// Memory that one long record may leave behind.
const KEPT: usize = 1 << 20;

impl Tail {
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let file = File::open(path).map_err(at("read", path))?;
        Ok(Self {
            reader: BufReader::with_capacity(1 << 18, file),
            line: Vec::new(),
        })
    }

    /// The next entry; nothing when there is no more for now. Half a line waits for its other half.
    pub fn next_entry(&mut self) -> io::Result<Option<Entry>> {
        loop {
            self.reader.read_until(b'\n', &mut self.line)?;
            if !self.line.ends_with(b"\n") {
                return Ok(None);
            }
            let entry = entry_of(&self.line);
            self.line.clear();
            self.line.shrink_to(KEPT);
            if entry.is_some() {
                return Ok(entry);
            }
        }
    }

    /// What is left when nothing will be added any more: a last record that lacks only its newline.
    pub fn rest(&mut self) -> Option<Entry> {
        let entry = entry_of(&std::mem::take(&mut self.line));
        entry.filter(|entry| matches!(entry, Entry::Record(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_is_added_is_read_and_half_a_line_waits_for_its_end() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let line =
            |seq: u64| format!("{{\"seq\":{seq},\"at\":\"2026-11-15T20:45:01Z\",\"type\":\"wait_ended\"}}\n");
        let mut tail = Tail::open(file.path()).unwrap();
        let seq = |entry: Option<Entry>| match entry {
            Some(Entry::Record(record)) => Some(record.seq),
            Some(Entry::Unknown { .. } | Entry::Damaged) => Some(0),
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
            "its newline is still missing"
        );
        assert_eq!(seq(tail.rest()), Some(2));
        writeln!(file, "\ndamaged").unwrap();
        assert_eq!(seq(tail.next_entry().unwrap()), Some(0));
    }
}
