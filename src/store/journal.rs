//! The journal: one JSON record per line, append-only. Whole records reach the file, very long ones in parts, so that a
//! crash can at worst leave a torn last line.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use crate::event::{LineWriter, Paper, Record, RunEvent, Sink};

use super::sync::Syncing;
use super::{StoreError, at, restore};

/// While the agent floods us, records are written together in pieces of about this size.
const BATCH: usize = 64 * 1024;
/// A record that is longer than this is written in parts.
const PART: usize = 16 * BATCH;
/// After so much the disk is asked to begin, so that a long iteration does not leave it all for the end.
const UNSYNCED: usize = 8 << 20;
/// The buffer falls back to this when nothing follows a very long record.
const KEPT: usize = 2 * BATCH;

/// Writes the records of one run.
#[derive(Debug)]
pub struct Journal {
    draft: Draft,
    lines: LineWriter,
}

impl Journal {
    #[cfg(test)]
    pub(super) fn create(path: &Path) -> Result<Self, StoreError> {
        Ok(Self {
            draft: Draft::of(super::create_new(path)?),
            lines: LineWriter::default(),
        })
    }

    /// Opens a journal at its end, a new one or one that another process has left.
    pub(super) fn append(path: &Path) -> Result<Self, StoreError> {
        Ok(Self {
            draft: Draft::of(restore::reopen(path)?),
            lines: LineWriter::default(),
        })
    }

    /// The records of a journal, in order. A line that is no record (a torn last one above all) is passed over.
    pub fn read(path: &Path) -> Result<impl Iterator<Item = Record> + use<>, StoreError> {
        let file = File::open(path).map_err(at("read", path))?;
        let lines = BufReader::with_capacity(1 << 20, file).split(b'\n');
        Ok(lines
            .map_while(Result::ok)
            .filter_map(|line| serde_json::from_slice(&line).ok()))
    }

    /// Everything in a journal, in order, what cannot be read included. A torn last line is dropped.
    pub fn entries(path: &Path) -> Result<impl Iterator<Item = io::Result<Entry>> + use<>, StoreError> {
        let file = File::open(path).map_err(at("read", path))?;
        let mut reader = BufReader::with_capacity(1 << 20, file);
        Ok(std::iter::from_fn(move || next_entry(&mut reader).transpose()))
    }
}

/// What is about to be written, and where to.
#[derive(Debug)]
struct Draft {
    file: File,
    waiting: Vec<u8>,
    /// A part of the last record is in the file already.
    begun: bool,
    /// Bytes of which the disk has not been told.
    unsynced: usize,
    /// Begun when there is something to sync.
    syncing: Option<Syncing>,
    /// Kept until somebody asks.
    failure: Option<io::Error>,
}

impl Draft {
    fn of(file: File) -> Self {
        Self {
            file,
            waiting: Vec::with_capacity(KEPT),
            begun: false,
            unsynced: 0,
            syncing: None,
            failure: None,
        }
    }

    fn write_out(&mut self) {
        self.begun = false;
        let mut waiting = std::mem::take(&mut self.waiting);
        self.write(&waiting);
        waiting.clear();
        self.waiting = waiting;
    }

    /// Of a very long record what is there is written, a long piece from where it stands.
    #[cold]
    fn put_in_parts(&mut self, piece: &[u8]) {
        self.write_out();
        self.write(piece);
        self.begun = true;
    }

    fn write(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(UNSYNCED) {
            if self.failure.is_none() {
                self.failure = self.try_to_write(piece).err();
            }
        }
    }

    fn try_to_write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.unsynced += bytes.len();
        if self.unsynced < UNSYNCED {
            return Ok(());
        }
        self.sync_soon()
    }

    fn sync_soon(&mut self) -> io::Result<()> {
        self.unsynced = 0;
        if self.syncing.is_none() {
            self.syncing = Some(Syncing::of(&self.file)?);
        }
        self.syncing.as_ref().map_or(Ok(()), Syncing::ask)
    }
}

impl Paper for Draft {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        if self.waiting.len() + bytes.len() < PART {
            self.waiting.extend_from_slice(bytes);
        } else {
            self.put_in_parts(bytes);
        }
    }
}

/// One line of a journal.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    Record(Box<Record>),
    /// A record of a kind that a later version writes.
    Unknown {
        kind: String,
    },
    /// A whole line that is no record at all.
    Damaged,
}

fn next_entry(reader: &mut impl BufRead) -> io::Result<Option<Entry>> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        let whole = line.ends_with(b"\n");
        match entry_of(&line) {
            Some(Entry::Unknown { .. } | Entry::Damaged) if !whole => {}
            Some(entry) => return Ok(Some(entry)),
            None => {}
        }
    }
}

/// What a line is; nothing if it is empty.
pub(super) fn entry_of(line: &[u8]) -> Option<Entry> {
    if line.trim_ascii().is_empty() {
        return None;
    }
    Some(match serde_json::from_slice(line) {
        Ok(record) => Entry::Record(Box::new(record)),
        Err(_) => unreadable(line),
    })
}

fn unreadable(line: &[u8]) -> Entry {
    let value: serde_json::Value = serde_json::from_slice(line).unwrap_or_default();
    match value["type"].as_str() {
        Some(kind) => Entry::Unknown {
            kind: kind.to_owned(),
        },
        None => Entry::Damaged,
    }
}

impl Sink for Journal {
    fn accept(&mut self, record: &Record) -> io::Result<()> {
        self.lines.write(record, &mut self.draft)?;
        if self.draft.begun || self.draft.waiting.len() >= BATCH {
            self.draft.write_out();
        }
        self.draft.failure.take().map_or(Ok(()), Err)?;
        match durability(&record.event) {
            Durability::WithTheRest => Ok(()),
            Durability::Soon => {
                self.flush()?;
                self.draft.sync_soon()
            }
            Durability::Now => {
                self.flush()?;
                self.draft.file.sync_data()
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.draft.write_out();
        self.draft.waiting.shrink_to(KEPT);
        self.draft.failure.take().map_or(Ok(()), Err)
    }
}

/// When a record must be where a power cut does not reach it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Durability {
    /// Before anything else happens.
    Now,
    /// While the next thing begins.
    Soon,
    WithTheRest,
}

/// Verdicts must survive, and where an iteration begins and ends. What was told is removed elsewhere once it is here.
fn durability(event: &RunEvent) -> Durability {
    match event {
        RunEvent::RunStarted(_)
        | RunEvent::RunResumed(_)
        | RunEvent::CommandReceived { .. }
        | RunEvent::RunEnded { .. } => Durability::Now,
        RunEvent::GateEnded { .. } | RunEvent::IterationEnded { .. } => Durability::Soon,
        RunEvent::IterationStarted { .. }
        | RunEvent::AgentStarted { .. }
        | RunEvent::Transcript { .. }
        | RunEvent::Stderr { .. }
        | RunEvent::MarkerIgnored { .. }
        | RunEvent::Topic { .. }
        | RunEvent::TopicRerouted { .. }
        | RunEvent::AgentEnded { .. }
        | RunEvent::GateStarted { .. }
        | RunEvent::Waiting { .. }
        | RunEvent::WaitEnded
        | RunEvent::Progress { .. }
        | RunEvent::Paused
        | RunEvent::Asking
        | RunEvent::Stopping { .. }
        | RunEvent::Notice { .. } => Durability::WithTheRest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Level, Tag, TranscriptEvent};
    use std::fs;

    fn notice(seq: u64) -> Record {
        let event = RunEvent::Notice {
            level: Level::Info,
            text: format!("number {seq}\nü"),
        };
        Record {
            seq,
            at: jiff::Timestamp::UNIX_EPOCH,
            event,
        }
    }

    #[test]
    fn records_come_back_as_they_went_in() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events.jsonl");
        let mut journal = Journal::create(&path).unwrap();
        let records: Vec<Record> = (1..=5).map(notice).collect();
        records.iter().for_each(|record| journal.accept(record).unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"", "nothing needs the disk yet");
        journal.flush().unwrap();
        assert_eq!(Journal::read(&path).unwrap().collect::<Vec<_>>(), records);
    }

    #[test]
    fn a_torn_last_line_is_dropped_at_every_cut() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events.jsonl");
        let mut journal = Journal::create(&path).unwrap();
        (1..=3).for_each(|seq| journal.accept(&notice(seq)).unwrap());
        journal.flush().unwrap();
        let whole = fs::read(&path).unwrap();
        let third = whole[..whole.len() - 1]
            .iter()
            .rposition(|byte| *byte == b'\n')
            .unwrap()
            + 1;
        for cut in third..whole.len() - 1 {
            fs::write(&path, &whole[..cut]).unwrap();
            assert_eq!(Journal::read(&path).unwrap().count(), 2, "cut at byte {cut}");
        }
    }

    #[test]
    fn what_a_later_version_wrote_is_told_from_what_is_damaged() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events.jsonl");
        let known = serde_json::to_string(&notice(1)).unwrap();
        let later = r#"{"seq":2,"at":"2030-01-01T00:00:00Z","type":"dreamt","of":"sheep"}"#;
        fs::write(&path, format!("{known}\n{later}\n\nnonsense\n{known}\n{later}")).unwrap();
        let entries: Vec<Entry> = Journal::entries(&path).unwrap().map(Result::unwrap).collect();
        let record = || Entry::Record(Box::new(notice(1)));
        let unknown = Entry::Unknown {
            kind: "dreamt".into(),
        };
        assert_eq!(entries, [record(), unknown, Entry::Damaged, record()]);
    }

    #[test]
    fn a_flood_is_synced_while_it_lasts() {
        let directory = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(&directory.path().join("events.jsonl")).unwrap();
        let event = RunEvent::Notice {
            level: Level::Info,
            text: "x".repeat(BATCH),
        };
        let at = jiff::Timestamp::UNIX_EPOCH;
        let mut record = Record { seq: 0, at, event };
        while record.seq * (BATCH as u64) < UNSYNCED as u64 {
            assert!(journal.draft.syncing.is_none(), "after {} records", record.seq);
            record.seq += 1;
            journal.accept(&record).unwrap();
        }
        assert!(journal.draft.syncing.is_some() && journal.draft.unsynced == 0);
    }

    #[test]
    fn a_record_of_any_length_is_one_line_and_takes_little_room() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events.jsonl");
        let mut journal = Journal::create(&path).unwrap();
        let texts = [
            "x".repeat(3 * PART),
            "a line\n".repeat(PART / 3),
            "y".repeat(PART),
            "z".repeat(PART - 100),
            "\"".repeat(PART - 100),
        ];
        let said = |(seq, text): (usize, &String)| Record {
            seq: seq as u64,
            at: jiff::Timestamp::UNIX_EPOCH,
            event: RunEvent::Transcript {
                iteration: 1,
                event: TranscriptEvent::message(Tag::Ai, text.as_str()),
            },
        };
        let records: Vec<Record> = texts.iter().enumerate().map(said).collect();
        for record in &records {
            journal.accept(record).unwrap();
            assert!(journal.draft.waiting.capacity() <= 2 * PART);
            let on_disk = fs::read(&path).unwrap();
            assert!(on_disk.ends_with(b"}\n"), "what has begun has an end");
        }
        journal.flush().unwrap();
        assert_eq!(Journal::read(&path).unwrap().collect::<Vec<_>>(), records);
    }

    #[test]
    fn a_flood_reaches_the_disk_in_whole_records() {
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
