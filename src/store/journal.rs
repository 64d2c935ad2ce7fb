//! The journal: one JSON record per line, append-only. Each write contains whole records, except for very long ones, so
//! a crash can at most leave an incomplete last line.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, Write};
use std::path::Path;

use crate::event::{ByteOutput, ChainLink, Durability, LINK, Record, RecordWriter, Sink};

use super::chain::{Chain, VerifiedChain};
use super::sync::SyncThread;
use super::{StoreError, io_error, open_file, restore};

/// Records that need not be durable yet are collected and written in batches of about this size.
const BATCH_SIZE: usize = 64 * 1024;
/// Maximum size of the buffer. A longer record is written in parts.
const MAX_BUFFERED: usize = 16 * BATCH_SIZE;
/// Number of bytes after which a sync starts, so that little is left to sync at the end of a long iteration.
const SYNC_AFTER: usize = 8 << 20;
/// Capacity that the buffer retains after a flush.
const RETAINED_CAPACITY: usize = 2 * BATCH_SIZE;

/// Writes the records of one run.
#[derive(Debug)]
pub struct Journal {
    output: JournalFile,
    writer: RecordWriter,
}

impl Journal {
    #[cfg(test)]
    pub(super) fn create(path: &Path) -> Result<Self, StoreError> {
        Ok(Self {
            output: JournalFile::new(super::create_new(path)?, 0, Chain::default()),
            writer: RecordWriter::default(),
        })
    }

    #[cfg(test)]
    pub(crate) fn append(path: &Path) -> Result<Self, StoreError> {
        Self::append_verified(path, None)
    }

    /// Opens an existing journal for appending, or creates it. The chain of a journal that has been verified is known.
    pub(super) fn append_verified(path: &Path, verified: Option<&VerifiedChain>) -> Result<Self, StoreError> {
        let file = restore::open_for_append(path)?;
        let size = file.metadata().map_err(io_error("read", path))?.len();
        let chain = match verified.filter(|verified| verified.size == size) {
            Some(verified) => verified.chain.clone(),
            None => {
                let mut reader = &file;
                let read = reader.rewind().and_then(|()| Chain::of(reader));
                read.map_err(io_error("read", path))?
            }
        };
        Ok(Self {
            output: JournalFile::new(file, size, chain),
            writer: RecordWriter::default(),
        })
    }

    /// The position at which the next record begins, in bytes. It may still be in the buffer.
    pub fn position(&self) -> u64 {
        self.output.size + self.output.buffer.len() as u64
    }

    /// The link of the last record that was accepted.
    pub fn last_link(&self) -> Option<ChainLink> {
        self.output.last_link
    }

    /// The SHA-256 of all records so far, in hexadecimal: the head of the hash chain.
    pub fn head(&mut self) -> String {
        self.output.hash_buffer();
        self.output.chain.head()
    }

    /// Reads the records of a journal, in order. Lines that are not records, such as an incomplete last line, are skipped.
    pub fn read(path: &Path) -> Result<impl Iterator<Item = Record> + use<>, StoreError> {
        let file = open_file(path)?;
        let lines = BufReader::with_capacity(1 << 20, file).split(b'\n');
        Ok(lines
            .map_while(Result::ok)
            .filter_map(|line| serde_json::from_slice(&line).ok()))
    }

    /// Reads all lines of a journal, in order, including unknown and damaged ones. An incomplete last line is skipped.
    pub fn entries(
        path: &Path,
    ) -> Result<impl Iterator<Item = io::Result<JournalEntry>> + use<>, StoreError> {
        let file = open_file(path)?;
        let mut reader = BufReader::with_capacity(1 << 20, file);
        Ok(std::iter::from_fn(move || next_entry(&mut reader).transpose()))
    }
}

/// The file of a journal, with a write buffer.
#[derive(Debug)]
struct JournalFile {
    file: File,
    buffer: Vec<u8>,
    /// Size of the file, without the buffer.
    size: u64,
    chain: Chain,
    /// Bytes at the start of the buffer that the chain includes.
    hashed: usize,
    last_link: Option<ChainLink>,
    /// The file already contains a part of the last record.
    is_record_split: bool,
    /// Bytes written since the last sync request.
    unsynced: usize,
    /// Started by the first background sync.
    sync_thread: Option<SyncThread>,
    /// The first write error, until `accept` or `flush` returns it.
    error: Option<io::Error>,
}

impl JournalFile {
    fn new(file: File, size: u64, chain: Chain) -> Self {
        Self {
            file,
            size,
            chain,
            hashed: 0,
            last_link: None,
            buffer: Vec::with_capacity(RETAINED_CAPACITY),
            is_record_split: false,
            unsynced: 0,
            sync_thread: None,
            error: None,
        }
    }

    /// Adds the link of the hash chain to a record, and ends the record.
    fn end_record(&mut self) {
        self.hash_buffer();
        let link = self.chain.link();
        self.put(LINK);
        self.put(link.digits());
        self.put(b"\"}\n");
        self.last_link = Some(link);
    }

    fn hash_buffer(&mut self) {
        self.chain.update(&self.buffer[self.hashed..]);
        self.hashed = self.buffer.len();
    }

    /// A journal whose size is not that of ralph's own records cannot be trusted any more.
    fn check_size(&mut self) -> io::Result<()> {
        if self.file.metadata()?.len() == self.size {
            return Ok(());
        }
        Err(io::Error::other("another program changed it"))
    }

    fn write_buffer(&mut self) {
        self.is_record_split = false;
        self.hash_buffer();
        self.hashed = 0;
        let mut buffer = std::mem::take(&mut self.buffer);
        self.write(&buffer);
        buffer.clear();
        self.buffer = buffer;
    }

    /// Writes the buffer and these bytes of a very long record, without copying the bytes into the buffer.
    #[cold]
    fn put_unbuffered(&mut self, bytes: &[u8]) {
        self.write_buffer();
        self.chain.update(bytes);
        self.write(bytes);
        self.is_record_split = true;
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(SYNC_AFTER) {
            if self.error.is_none() {
                self.error = self.try_write(chunk).err();
            }
        }
    }

    fn try_write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.size += bytes.len() as u64;
        self.unsynced += bytes.len();
        if self.unsynced < SYNC_AFTER {
            return Ok(());
        }
        self.sync_in_background()
    }

    fn sync_in_background(&mut self) -> io::Result<()> {
        self.unsynced = 0;
        if self.sync_thread.is_none() {
            self.sync_thread = Some(SyncThread::spawn(&self.file)?);
        }
        self.sync_thread.as_ref().map_or(Ok(()), SyncThread::request_sync)
    }
}

impl ByteOutput for JournalFile {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        if self.buffer.len() + bytes.len() < MAX_BUFFERED {
            self.buffer.extend_from_slice(bytes);
        } else {
            self.put_unbuffered(bytes);
        }
    }
}

/// One line of a journal.
#[derive(Debug, Clone, PartialEq)]
pub enum JournalEntry {
    Record(Box<Record>),
    /// A record of an unknown type, written by a later version.
    Unknown {
        kind: String,
    },
    /// A complete line that is not a record.
    Damaged,
}

fn next_entry(reader: &mut impl BufRead) -> io::Result<Option<JournalEntry>> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        let is_complete = line.ends_with(b"\n");
        match parse_entry(&line) {
            Some(JournalEntry::Unknown { .. } | JournalEntry::Damaged) if !is_complete => {}
            Some(entry) => return Ok(Some(entry)),
            None => {}
        }
    }
}

/// Parses a line; `None` if it is empty.
pub(super) fn parse_entry(line: &[u8]) -> Option<JournalEntry> {
    if line.trim_ascii().is_empty() {
        return None;
    }
    Some(match serde_json::from_slice(line) {
        Ok(record) => JournalEntry::Record(Box::new(record)),
        Err(_) => parse_unknown(line),
    })
}

fn parse_unknown(line: &[u8]) -> JournalEntry {
    let value: serde_json::Value = serde_json::from_slice(line).unwrap_or_default();
    match value["type"].as_str() {
        Some(kind) => JournalEntry::Unknown {
            kind: kind.to_owned(),
        },
        None => JournalEntry::Damaged,
    }
}

impl Sink for Journal {
    fn accept(&mut self, record: &Record) -> io::Result<()> {
        self.writer.write_open(record, &mut self.output)?;
        self.output.end_record();
        if self.output.is_record_split || self.output.buffer.len() >= BATCH_SIZE {
            self.output.write_buffer();
        }
        self.output.error.take().map_or(Ok(()), Err)?;
        match record.event.durability() {
            Durability::Deferred => Ok(()),
            Durability::Background => {
                self.flush()?;
                self.output.check_size()?;
                self.output.sync_in_background()
            }
            Durability::Immediate => {
                self.flush()?;
                self.output.check_size()?;
                self.output.file.sync_data()
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.write_buffer();
        self.output.buffer.shrink_to(RETAINED_CAPACITY);
        self.output.error.take().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{NoticeLevel, RunEvent, Tag, TranscriptEvent};
    use std::fs;

    fn notice(seq: u64) -> Record {
        let event = RunEvent::Notice {
            level: NoticeLevel::Info,
            text: format!("number {seq}\nü"),
        };
        Record {
            chain: None,
            seq,
            at: jiff::Timestamp::UNIX_EPOCH,
            event,
        }
    }

    fn read_without_links(path: &Path) -> Vec<Record> {
        let records = Journal::read(path).unwrap();
        records
            .map(|record| Record::new(record.seq, record.at, record.event))
            .collect()
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events.jsonl");
        let mut journal = Journal::create(&path).unwrap();
        let records: Vec<Record> = (1..=5).map(notice).collect();
        records.iter().for_each(|record| journal.accept(record).unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"", "notices are buffered");
        journal.flush().unwrap();
        assert_eq!(read_without_links(&path), records);
    }

    #[test]
    fn incomplete_last_line_is_skipped_at_every_cut() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events.jsonl");
        let mut journal = Journal::create(&path).unwrap();
        (1..=3).for_each(|seq| journal.accept(&notice(seq)).unwrap());
        journal.flush().unwrap();
        let complete = fs::read(&path).unwrap();
        let third = complete[..complete.len() - 1]
            .iter()
            .rposition(|byte| *byte == b'\n')
            .unwrap()
            + 1;
        for cut in third..complete.len() - 1 {
            fs::write(&path, &complete[..cut]).unwrap();
            assert_eq!(Journal::read(&path).unwrap().count(), 2, "cut at byte {cut}");
        }
    }

    #[test]
    fn unknown_records_and_damaged_lines_are_distinguished() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events.jsonl");
        let known = serde_json::to_string(&notice(1)).unwrap();
        let later = r#"{"seq":2,"at":"2030-01-01T00:00:00Z","type":"later_type","field":1}"#;
        fs::write(&path, format!("{known}\n{later}\n\ntext\n{known}\n{later}")).unwrap();
        let entries: Vec<JournalEntry> = Journal::entries(&path).unwrap().map(Result::unwrap).collect();
        let record = || JournalEntry::Record(Box::new(notice(1)));
        let unknown = JournalEntry::Unknown {
            kind: "later_type".into(),
        };
        assert_eq!(entries, [record(), unknown, JournalEntry::Damaged, record()]);
    }

    #[test]
    fn large_output_is_synced_in_the_background() {
        let directory = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(&directory.path().join("events.jsonl")).unwrap();
        let event = RunEvent::Notice {
            level: NoticeLevel::Info,
            text: "x".repeat(BATCH_SIZE),
        };
        let at = jiff::Timestamp::UNIX_EPOCH;
        let mut record = Record::new(0, at, event);
        while record.seq * (BATCH_SIZE as u64) < SYNC_AFTER as u64 {
            assert!(
                journal.output.sync_thread.is_none(),
                "after {} records",
                record.seq
            );
            record.seq += 1;
            journal.accept(&record).unwrap();
        }
        assert!(journal.output.sync_thread.is_some() && journal.output.unsynced == 0);
    }

    #[test]
    fn record_of_any_length_is_one_line_and_the_buffer_stays_small() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events.jsonl");
        let mut journal = Journal::create(&path).unwrap();
        let texts = [
            "x".repeat(3 * MAX_BUFFERED),
            "a line\n".repeat(MAX_BUFFERED / 3),
            "y".repeat(MAX_BUFFERED),
            "z".repeat(MAX_BUFFERED - 100),
            "\"".repeat(MAX_BUFFERED - 100),
        ];
        let message = |(seq, text): (usize, &String)| Record {
            chain: None,
            seq: seq as u64,
            at: jiff::Timestamp::UNIX_EPOCH,
            event: RunEvent::Transcript {
                iteration: 1,
                event: TranscriptEvent::message(Tag::Ai, text.as_str()),
            },
        };
        let records: Vec<Record> = texts.iter().enumerate().map(message).collect();
        for record in &records {
            journal.accept(record).unwrap();
            assert!(journal.output.buffer.capacity() <= 2 * MAX_BUFFERED);
            let on_disk = fs::read(&path).unwrap();
            assert!(on_disk.ends_with(b"}\n"), "each record is written completely");
        }
        journal.flush().unwrap();
        assert_eq!(read_without_links(&path), records);
    }

    #[test]
    fn batches_contain_whole_records() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events.jsonl");
        let mut journal = Journal::create(&path).unwrap();
        for seq in 1..=2000 {
            journal.accept(&notice(seq)).unwrap();
            let on_disk = fs::read(&path).unwrap();
            assert!(on_disk.is_empty() || on_disk.ends_with(b"}\n"));
        }
        assert!(fs::metadata(&path).unwrap().len() > 0);
    }
}
