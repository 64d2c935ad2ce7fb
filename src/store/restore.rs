//! Reading a journal again to go on with it: quickly, since nearly all of it is what the agent said, and that matters
//! no more. Such lines are passed over unparsed, by the way they begin.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use jiff::Timestamp;
use memchr::memmem;
use serde::Deserialize;

use super::{NO_LINKS, StoreError, at, unless_a_link};
use crate::event::Record;

/// Of a line that is passed over, this much is kept to know its number and time.
const BEGINNING: usize = 128;
/// What the agent said, and what it wrote beside that: how such a record goes on after its number and time.
const SAID: [&[u8]; 2] = [b"\"type\":\"transcript\"", b"\"type\":\"stderr\""];
/// The parts of what the agent said that matter to a run that goes on: what it used, and its session.
const MATTERS: [&[u8]; 2] = [b"\"type\":\"usage\"", b"\"kind\":\"session\""];

/// One record, or only its number and time.
#[derive(Debug)]
pub enum RestoredRecord {
    Whole(Box<Record>),
    Passed { seq: u64, at: Timestamp },
}

/// Tells the records of a journal in order. Passed records are told only where they are the last ones: before what
/// they precede they say nothing new.
pub fn recall(path: &Path, mut tell: impl FnMut(RestoredRecord)) -> Result<(), StoreError> {
    let file = File::open(path).map_err(at("read", path))?;
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let search = Search::new();
    let (mut line, mut passed, mut beginning) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line).map_err(at("read", path))? == 0 {
            break;
        }
        if search.finds_nothing_new_in(&line) {
            std::mem::swap(&mut line, &mut passed);
            // `line` is now the one before: all of it was written, since another one follows.
            keep_beginning(&line, &mut beginning);
        } else if let Ok(record) = serde_json::from_slice::<Record>(&line) {
            passed.clear();
            beginning.clear();
            tell(RestoredRecord::Whole(Box::new(record)));
        }
    }
    if let Some(recalled) = last_of(&passed, &beginning) {
        tell(recalled);
    }
    Ok(())
}

/// Prepared once: there may be millions of lines.
struct Search {
    said: [memmem::Finder<'static>; 2],
    matters: [memmem::Finder<'static>; 2],
}

impl Search {
    fn new() -> Self {
        Self {
            said: SAID.map(memmem::Finder::new),
            matters: MATTERS.map(memmem::Finder::new),
        }
    }

    fn finds_nothing_new_in(&self, line: &[u8]) -> bool {
        let head = &line[..line.len().min(BEGINNING)];
        self.said.iter().any(|said| said.find(head).is_some())
            && !self.matters.iter().any(|matters| matters.find(line).is_some())
    }
}

fn keep_beginning(line: &[u8], beginning: &mut Vec<u8>) {
    if !line.is_empty() {
        beginning.clear();
        beginning.extend_from_slice(&line[..line.len().min(BEGINNING)]);
    }
}

/// The last passed line if it is whole, or else the one before it.
fn last_of(passed: &[u8], before: &[u8]) -> Option<RestoredRecord> {
    if let Ok(record) = serde_json::from_slice::<Stamp>(passed) {
        let Stamp { seq, at } = record;
        return Some(RestoredRecord::Passed { seq, at });
    }
    let text = std::str::from_utf8(before).ok().or_else(|| {
        // Cut within a character: what matters comes before it.
        let valid = std::str::from_utf8(before).err()?.valid_up_to();
        std::str::from_utf8(&before[..valid]).ok()
    })?;
    let stamp = format!("{}}}", &text[..text.find(",\"type\"")?]);
    let Stamp { seq, at } = serde_json::from_str(&stamp).ok()?;
    Some(RestoredRecord::Passed { seq, at })
}

#[derive(Deserialize)]
struct Stamp {
    seq: u64,
    at: Timestamp,
}

/// Opens a journal to write on. A torn last line is closed off, so that it spoils nothing after it.
pub(super) fn reopen(path: &Path) -> Result<File, StoreError> {
    let open = || -> io::Result<File> {
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .custom_flags(NO_LINKS)
            .mode(0o600)
            .open(path)?;
        if file.metadata()?.len() == 0 {
            // Its name, too, must survive a power cut.
            if let Some(directory) = path.parent() {
                File::open(directory)?.sync_all()?;
            }
        } else {
            let mut last = [0];
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                file.write_all(b"\n")?;
            }
        }
        Ok(file)
    };
    open().map_err(unless_a_link("open", path))
}

#[cfg(test)]
mod tests {
    use super::super::Journal;
    use super::*;
    use crate::event::{Level, Meta, RunEvent, Sink, Tag, TranscriptEvent, Usage};
    use std::fs;

    fn record(seq: u64, event: RunEvent) -> Record {
        let at = Timestamp::from_second(1_000_000 + i64::try_from(seq).unwrap()).unwrap();
        Record { seq, at, event }
    }

    fn notice(seq: u64) -> Record {
        let (level, text) = (Level::Info, "ü".into());
        record(seq, RunEvent::Notice { level, text })
    }

    fn says(seq: u64, event: TranscriptEvent) -> Record {
        record(seq, RunEvent::Transcript { iteration: 1, event })
    }

    fn text(seq: u64) -> Record {
        says(
            seq,
            TranscriptEvent::message(Tag::Ai, "\"type\":\"usage\" ü".repeat(9)),
        )
    }

    fn journal(records: &[Record]) -> (tempfile::TempDir, std::path::PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events.jsonl");
        let mut journal = Journal::create(&path).unwrap();
        records.iter().for_each(|record| journal.accept(record).unwrap());
        journal.flush().unwrap();
        (directory, path)
    }

    /// The numbers that are told; of passed records in brackets.
    fn told(path: &Path) -> String {
        let mut told = Vec::new();
        recall(path, |recalled| {
            told.push(match recalled {
                RestoredRecord::Whole(record) => record.seq.to_string(),
                RestoredRecord::Passed { seq, at } => {
                    assert_eq!(at, text(seq).at);
                    format!("[{seq}]")
                }
            });
        })
        .unwrap();
        told.join(" ")
    }

    #[test]
    fn what_the_agent_said_is_passed_over_except_usage_and_sessions() {
        let usage = TranscriptEvent::usage(Usage::default());
        let session = TranscriptEvent::meta(Meta::Session {
            session_id: "s".into(),
            model: None,
            version: None,
        });
        let stderr = RunEvent::Stderr {
            iteration: 1,
            text: "noise".into(),
        };
        let records = [
            notice(1),
            text(2),
            says(3, usage),
            text(4),
            says(5, session),
            record(6, stderr),
            text(7),
        ];
        assert_eq!(told(&journal(&records).1), "1 3 5 [7]");
        assert_eq!(told(&journal(&records[..5]).1), "1 3 5");
        assert_eq!(told(&journal(&[]).1), "");
    }

    #[test]
    fn zeros_that_a_power_cut_left_at_the_end_are_closed_off() {
        let (_directory, path) = journal(&[notice(1), text(2)]);
        let mut bytes = fs::read(&path).unwrap();
        bytes.extend([0; 5000]);
        fs::write(&path, bytes).unwrap();
        let mut journal = Journal::append(&path).unwrap();
        journal.accept(&notice(3)).unwrap();
        journal.flush().unwrap();
        assert_eq!(told(&path), "1 3");
    }

    #[test]
    fn a_torn_last_line_is_dropped_at_every_cut_and_blocks_nothing_after_it() {
        for last in [notice(4), text(4)] {
            let (_directory, path) = journal(&[notice(1), text(2), text(3), last.clone()]);
            let whole = fs::read(&path).unwrap();
            let fourth = whole[..whole.len() - 1]
                .iter()
                .rposition(|byte| *byte == b'\n')
                .unwrap()
                + 1;
            for cut in fourth..whole.len() - 1 {
                fs::write(&path, &whole[..cut]).unwrap();
                assert_eq!(told(&path), "1 [3]", "cut at byte {cut}");
                let mut journal = Journal::append(&path).unwrap();
                assert_eq!(told(&path), "1 [3]", "cut at byte {cut} and closed off");
                journal.accept(&last).unwrap();
                journal.accept(&notice(5)).unwrap();
                journal.flush().unwrap();
                let read: Vec<u64> = Journal::read(&path).unwrap().map(|record| record.seq).collect();
                assert_eq!(read, [1, 2, 3, 4, 5], "cut at byte {cut}");
            }
            fs::write(&path, &whole[..whole.len() - 1]).unwrap();
            let expected = if matches!(last.event, RunEvent::Notice { .. }) {
                "1 4"
            } else {
                "1 [4]"
            };
            assert_eq!(told(&path), expected, "only the newline is missing");
        }
    }
}
