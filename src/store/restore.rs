//! Reading a journal to resume its run. Most lines are agent output, which is not needed for that; they are recognized by
//! their start and skipped without parsing.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use jiff::Timestamp;
use memchr::memmem;
use serde::Deserialize;

use super::{StoreError, io_error, open_file, private_files};
use crate::event::Record;
use crate::ok_or_log;

/// Length of the start of a line that contains its sequence number, time and type.
const PREFIX: usize = 128;
/// Types of records that contain agent output.
const OUTPUT_TYPES: [&[u8]; 2] = [b"\"type\":\"transcript\"", b"\"type\":\"stderr\""];
/// Agent output that a resumed run needs: usage and session.
const NEEDED: [&[u8]; 2] = [b"\"type\":\"usage\"", b"\"kind\":\"session\""];

/// A record of a journal, parsed or skipped.
#[derive(Debug)]
pub enum RestoredRecord {
    Parsed(Box<Record>),
    Skipped { seq: u64, at: Timestamp },
}

/// Calls `on_record` for each record of a journal that is needed to resume the run, in order. Of the skipped records,
/// only the last one is reported, and only if no parsed record follows it: its number and time are then the latest.
pub fn restore_records(path: &Path, mut on_record: impl FnMut(RestoredRecord)) -> Result<(), StoreError> {
    let file = open_file(path)?;
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let filter = LineFilter::new();
    let (mut line, mut skipped, mut previous_prefix) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        line.clear();
        if reader
            .read_until(b'\n', &mut line)
            .map_err(io_error("read", path))?
            == 0
        {
            break;
        }
        if filter.can_skip(&line) {
            std::mem::swap(&mut line, &mut skipped);
            // `line` is now the previously skipped line. It is complete, because another line follows it.
            copy_prefix(&line, &mut previous_prefix);
        } else if let Some(record) = ok_or_log!(
            serde_json::from_slice::<Record>(&line),
            "skipping a record of the journal"
        ) {
            skipped.clear();
            previous_prefix.clear();
            on_record(RestoredRecord::Parsed(Box::new(record)));
        }
    }
    if let Some(restored_record) = last_skipped(&skipped, &previous_prefix) {
        on_record(restored_record);
    }
    Ok(())
}

/// Decides which lines are skipped. The searchers are built once, because a journal can have millions of lines.
struct LineFilter {
    output_types: [memmem::Finder<'static>; 2],
    needed: [memmem::Finder<'static>; 2],
}

impl LineFilter {
    fn new() -> Self {
        Self {
            output_types: OUTPUT_TYPES.map(memmem::Finder::new),
            needed: NEEDED.map(memmem::Finder::new),
        }
    }

    fn can_skip(&self, line: &[u8]) -> bool {
        let prefix = &line[..line.len().min(PREFIX)];
        self.output_types
            .iter()
            .any(|finder| finder.find(prefix).is_some())
            && !self.needed.iter().any(|finder| finder.find(line).is_some())
    }
}

fn copy_prefix(line: &[u8], prefix: &mut Vec<u8>) {
    if !line.is_empty() {
        prefix.clear();
        prefix.extend_from_slice(&line[..line.len().min(PREFIX)]);
    }
}

/// Returns the last skipped line if it is complete, otherwise the one before it.
fn last_skipped(line: &[u8], previous_prefix: &[u8]) -> Option<RestoredRecord> {
    if let Ok(RecordStamp { seq, at }) = serde_json::from_slice(line) {
        return Some(RestoredRecord::Skipped { seq, at });
    }
    let text = std::str::from_utf8(previous_prefix).ok().or_else(|| {
        // The prefix ends within a character, behind the sequence number and time.
        let valid = std::str::from_utf8(previous_prefix).err()?.valid_up_to();
        std::str::from_utf8(&previous_prefix[..valid]).ok()
    })?;
    let stamp = format!("{}}}", &text[..text.find(",\"type\"")?]);
    let RecordStamp { seq, at } = serde_json::from_str(&stamp).ok()?;
    Some(RestoredRecord::Skipped { seq, at })
}

#[derive(Deserialize)]
struct RecordStamp {
    seq: u64,
    at: Timestamp,
}

/// Opens a journal for appending. An incomplete last line is terminated, so that it does not damage the next record.
pub(super) fn open_for_append(path: &Path) -> Result<File, StoreError> {
    let mut file = private_files::open_with(OpenOptions::new().read(true).append(true).create(true), path)?;
    let mut terminate = || -> io::Result<()> {
        if file.metadata()?.len() == 0 {
            // The directory entry must survive a power failure, too.
            return path
                .parent()
                .map_or(Ok(()), |directory| File::open(directory)?.sync_all());
        }
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        match last {
            [b'\n'] => Ok(()),
            _ => file.write_all(b"\n"),
        }
    };
    terminate().map_err(io_error("open", path))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Meta, NoticeLevel, RunEvent, Sink, Tag, TranscriptEvent, Usage};
    use crate::store::Journal;
    use std::fs;

    fn record(seq: u64, event: RunEvent) -> Record {
        let at = Timestamp::from_second(1_000_000 + i64::try_from(seq).unwrap()).unwrap();
        Record::new(seq, at, event)
    }

    fn notice(seq: u64) -> Record {
        let (level, text) = (NoticeLevel::Info, "ü".into());
        record(seq, RunEvent::Notice { level, text })
    }

    fn output(seq: u64, event: TranscriptEvent) -> Record {
        record(seq, RunEvent::Transcript { iteration: 1, event })
    }

    fn text(seq: u64) -> Record {
        output(
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

    /// The sequence numbers of the reported records; those of skipped records in brackets.
    fn reported(path: &Path) -> String {
        let mut numbers = Vec::new();
        restore_records(path, |restored_record| {
            numbers.push(match restored_record {
                RestoredRecord::Parsed(record) => record.seq.to_string(),
                RestoredRecord::Skipped { seq, at } => {
                    assert_eq!(at, text(seq).at);
                    format!("[{seq}]")
                }
            });
        })
        .unwrap();
        numbers.join(" ")
    }

    #[test]
    fn agent_output_is_skipped_except_for_usage_and_sessions() {
        let usage = TranscriptEvent::usage(Usage::default());
        let session = TranscriptEvent::meta(Meta::Session {
            session_id: "s".into(),
            model: None,
            version: None,
        });
        let stderr = RunEvent::Stderr {
            iteration: 1,
            text: "warning".into(),
        };
        let records = [
            notice(1),
            text(2),
            output(3, usage),
            text(4),
            output(5, session),
            record(6, stderr),
            text(7),
        ];
        assert_eq!(reported(&journal(&records).1), "1 3 5 [7]");
        assert_eq!(reported(&journal(&records[..5]).1), "1 3 5");
        assert_eq!(reported(&journal(&[]).1), "");
    }

    #[test]
    fn zeros_after_a_power_failure_do_not_damage_the_next_record() {
        let (_directory, path) = journal(&[notice(1), text(2)]);
        let mut bytes = fs::read(&path).unwrap();
        bytes.extend([0; 5000]);
        fs::write(&path, bytes).unwrap();
        let mut journal = Journal::append(&path).unwrap();
        journal.accept(&notice(3)).unwrap();
        journal.flush().unwrap();
        assert_eq!(reported(&path), "1 3");
    }

    #[test]
    fn incomplete_last_line_is_skipped_and_does_not_damage_the_next_record() {
        for last in [notice(4), text(4)] {
            let (_directory, path) = journal(&[notice(1), text(2), text(3), last.clone()]);
            let complete = fs::read(&path).unwrap();
            let fourth = complete[..complete.len() - 1]
                .iter()
                .rposition(|byte| *byte == b'\n')
                .unwrap()
                + 1;
            for cut in fourth..complete.len() - 1 {
                fs::write(&path, &complete[..cut]).unwrap();
                assert_eq!(reported(&path), "1 [3]", "cut at byte {cut}");
                let mut journal = Journal::append(&path).unwrap();
                assert_eq!(reported(&path), "1 [3]", "cut at byte {cut} and terminated");
                journal.accept(&last).unwrap();
                journal.accept(&notice(5)).unwrap();
                journal.flush().unwrap();
                let read: Vec<u64> = Journal::read(&path).unwrap().map(|record| record.seq).collect();
                assert_eq!(read, [1, 2, 3, 4, 5], "cut at byte {cut}");
            }
            fs::write(&path, &complete[..complete.len() - 1]).unwrap();
            let expected = if matches!(last.event, RunEvent::Notice { .. }) {
                "1 4"
            } else {
                "1 [4]"
            };
            assert_eq!(reported(&path), expected, "only the newline is missing");
        }
    }
}
