//! The hash chain of a journal. Each record ends with `"chain"`: the first 8 bytes of the SHA-256 of everything before it in the
//! file. So a changed, added or removed line invalidates the record that follows it, and `sha256sum events.jsonl` is the
//! chain's head.

use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::event::{ChainLink, LINK};

use super::{Run, StoreError, io_error, open_file, record_seq};

/// What follows the link at the end of a record.
const END: &[u8] = b"\"}";

/// The running hash of a journal.
#[derive(Debug, Clone, Default)]
pub(super) struct Chain(Sha256);

impl Chain {
    /// The chain of everything that `reader` returns.
    pub(super) fn of(mut reader: impl Read) -> std::io::Result<Self> {
        let mut chain = Self::default();
        let mut buffer = vec![0; 1 << 18];
        loop {
            match reader.read(&mut buffer)? {
                0 => return Ok(chain),
                count => chain.update(&buffer[..count]),
            }
        }
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The link of a record whose start has been hashed.
    pub(super) fn link(&self) -> ChainLink {
        ChainLink::of_digest(&self.0.clone().finalize())
    }

    /// The SHA-256 of the journal so far, in hexadecimal.
    pub(super) fn head(&self) -> String {
        let digest = self.0.clone().finalize();
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// What the chain of a journal shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainReport {
    pub records: u64,
    /// The SHA-256 of all complete lines.
    pub head: String,
    pub state: ChainState,
    /// The expected head that was passed to `verify_chain` is that of the journal at some record.
    pub contains_head: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChainState {
    Intact,
    /// An earlier version wrote the journal, without a chain.
    Unchained,
    Broken(BrokenChain),
}

/// The first place where a journal differs from what ralph wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrokenChain {
    /// Starts at 1.
    pub line: u64,
    pub damage: Damage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    Changed {
        seq: u64,
    },
    /// The line is a record that ralph did not write.
    Added {
        seq: u64,
    },
    Missing {
        first: u64,
        last: u64,
    },
    /// The line is no record.
    Unreadable,
    /// A record without a link, from an earlier version, precedes the line.
    Earlier,
}

impl fmt::Display for BrokenChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = self.line;
        match self.damage {
            Damage::Changed { seq } => write!(f, "record {seq} (line {line}) was changed"),
            Damage::Added { seq } => write!(f, "record {seq} (line {line}) was not written by ralph"),
            Damage::Missing { first, last } if first == last => {
                write!(f, "record {first} is missing before line {line}")
            }
            Damage::Missing { first, last } => {
                write!(f, "records {first} to {last} are missing before line {line}")
            }
            Damage::Unreadable => write!(f, "line {line} is damaged"),
            Damage::Earlier => write!(f, "a line before line {line} was changed"),
        }
    }
}

impl Run {
    /// Checks the chain of this run's journal. `journal` then continues it without reading the journal again.
    pub fn verify_chain(&self) -> Result<ChainReport, StoreError> {
        let (report, verified) = check(&self.journal_path(), None)?;
        // The first result is that of the journal before this process appends to it.
        let _ = self.verified.set(verified);
        Ok(report)
    }
}

/// The chain of a journal of this size.
#[derive(Debug, Clone)]
pub(super) struct VerifiedChain {
    pub(super) size: u64,
    pub(super) chain: Chain,
}

/// Checks the chain of a journal; the report contains its head. An incomplete line that a kill left behind is no damage: the next record's link includes it.
pub fn verify_chain(path: &Path, expected_head: Option<&str>) -> Result<ChainReport, StoreError> {
    check(path, expected_head).map(|(report, _)| report)
}

fn check(path: &Path, expected_head: Option<&str>) -> Result<(ChainReport, VerifiedChain), StoreError> {
    let mut reader = BufReader::with_capacity(1 << 20, open_file(path)?);
    let (mut size, mut line) = (0, Vec::new());
    let mut check = ChainCheck::new(expected_head);
    loop {
        line.clear();
        let count = reader
            .read_until(b'\n', &mut line)
            .map_err(io_error("read", path))?;
        if count == 0 {
            let chain = check.chain.clone();
            return Ok((check.finish(), VerifiedChain { size, chain }));
        }
        size += count as u64;
        check.line(&line);
    }
}

struct ChainCheck<'a> {
    chain: Chain,
    /// The head after the last complete line.
    head: Chain,
    expected_head: Option<&'a str>,
    contains_head: bool,
    lines: u64,
    records: u64,
    /// The number of the last record whose link is correct.
    last_seq: Option<u64>,
    /// The first line without a link since then.
    unlinked: Option<BrokenChain>,
    broken: Option<BrokenChain>,
}

#[derive(Deserialize)]
struct RecordSeq {
    seq: u64,
}

impl<'a> ChainCheck<'a> {
    fn new(expected_head: Option<&'a str>) -> Self {
        Self {
            chain: Chain::default(),
            head: Chain::default(),
            expected_head,
            contains_head: false,
            lines: 0,
            records: 0,
            last_seq: None,
            unlinked: None,
            broken: None,
        }
    }

    fn line(&mut self, line: &[u8]) {
        self.lines += 1;
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        match split_link(text) {
            Some((start, link)) => {
                self.records += 1;
                self.chain.update(start);
                match self.chain.link().digits() == link {
                    true => self.correct_link(start),
                    false => self.wrong_link(text),
                }
                self.chain.update(&line[start.len()..]);
            }
            None => {
                self.chain.update(line);
                self.without_link(text);
            }
        }
        if line.ends_with(b"\n") {
            self.head = self.chain.clone();
            if self.expected_head.is_some_and(|head| head == self.head.head()) {
                self.contains_head = true;
            }
        }
    }

    fn correct_link(&mut self, start: &[u8]) {
        if self.broken.is_none() {
            self.unlinked = None;
            self.last_seq = record_seq(start).or(self.last_seq);
        }
    }

    fn wrong_link(&mut self, text: &[u8]) {
        if self.broken.is_some() {
            return;
        }
        let next = self.last_seq.map_or(1, |last| last + 1);
        let damage = match parse_seq(text) {
            None => Damage::Unreadable,
            Some(_) if self.last_seq.is_none() && self.records > 1 => Damage::Earlier,
            Some(seq) if seq > next => Damage::Missing {
                first: next,
                last: seq - 1,
            },
            Some(seq) => Damage::Changed { seq },
        };
        let here = self.here(damage);
        self.broken = self.unlinked.take().or(Some(here));
    }

    fn without_link(&mut self, text: &[u8]) {
        if text.trim_ascii().is_empty() {
            return;
        }
        let damage = match parse_seq(text) {
            Some(seq) => Damage::Added { seq },
            None => Damage::Unreadable,
        };
        self.records += u64::from(damage != Damage::Unreadable);
        // Records before the first link were written by an earlier version.
        let is_expected = self.last_seq.is_none() && damage != Damage::Unreadable;
        if self.unlinked.is_none() && !is_expected {
            self.unlinked = Some(self.here(damage));
        }
    }

    fn here(&self, damage: Damage) -> BrokenChain {
        BrokenChain {
            line: self.lines,
            damage,
        }
    }

    fn finish(self) -> ChainReport {
        // A kill or a power failure leaves a last line that is no record.
        let is_chained = self.last_seq.is_some();
        let added = self
            .unlinked
            .filter(|line| is_chained && line.damage != Damage::Unreadable);
        let state = match self.broken.or(added) {
            Some(broken) => ChainState::Broken(broken),
            None if !is_chained && self.records > 0 => ChainState::Unchained,
            None => ChainState::Intact,
        };
        ChainReport {
            records: self.records,
            head: self.head.head(),
            state,
            contains_head: self.contains_head,
        }
    }
}

/// The sequence number of a line that is a record.
fn parse_seq(text: &[u8]) -> Option<u64> {
    let record: RecordSeq = serde_json::from_slice(text).ok()?;
    Some(record.seq)
}

/// Splits a record before its link.
fn split_link(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.strip_suffix(END)?;
    let (start, link) = text.split_at_checked(text.len().checked_sub(ChainLink::LENGTH)?)?;
    let start = start.strip_suffix(LINK)?;
    link.iter()
        .all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
        .then_some((start, link))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{NoticeLevel, Record, RunEvent, Sink, Tag, TranscriptEvent};
    use crate::store::Journal;
    use std::fs;
    use std::path::PathBuf;

    fn record(seq: u64) -> Record {
        let event = match seq % 2 {
            0 => RunEvent::Notice {
                level: NoticeLevel::Info,
                text: format!("number {seq}"),
            },
            _ => RunEvent::Transcript {
                iteration: 1,
                event: TranscriptEvent::message(Tag::Ai, "text"),
            },
        };
        let at = jiff::Timestamp::UNIX_EPOCH;
        Record::new(seq, at, event)
    }

    fn append(path: &Path, numbers: std::ops::RangeInclusive<u64>) -> String {
        let mut journal = Journal::append(path).unwrap();
        for seq in numbers {
            journal.accept(&record(seq)).unwrap();
        }
        journal.flush().unwrap();
        journal.head()
    }

    fn journal() -> (tempfile::TempDir, PathBuf, Vec<String>) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events.jsonl");
        append(&path, 1..=6);
        let text = fs::read_to_string(&path).unwrap();
        (directory, path, text.lines().map(str::to_owned).collect())
    }

    fn state(path: &Path) -> String {
        match verify_chain(path, None).unwrap().state {
            ChainState::Broken(broken) => broken.to_string(),
            state => format!("{state:?}"),
        }
    }

    fn state_of(path: &Path, lines: &[String]) -> String {
        fs::write(path, lines.join("\n") + "\n").unwrap();
        state(path)
    }

    #[test]
    fn the_head_is_the_hash_of_the_file_and_every_earlier_head_is_part_of_the_chain() {
        let (_directory, path, lines) = journal();
        let earlier = verify_chain(&path, None).unwrap().head;
        let head = append(&path, 7..=8);
        let file = Chain::of(fs::File::open(&path).unwrap()).unwrap().head();
        let report = verify_chain(&path, Some(&earlier)).unwrap();
        assert_eq!((&report.head, &report.head), (&head, &file));
        assert_eq!((report.records, report.state), (8, ChainState::Intact));
        assert!(report.contains_head && lines.len() == 6);
        assert!(!verify_chain(&path, Some(&"0".repeat(64))).unwrap().contains_head);
    }

    #[test]
    fn changed_added_and_removed_records_are_named() {
        let (_directory, path, lines) = journal();
        let with = |change: &dyn Fn(&mut Vec<String>)| {
            let mut lines = lines.clone();
            change(&mut lines);
            state_of(&path, &lines)
        };
        assert_eq!(with(&|_| {}), "Intact");
        let forged = r#"{"seq":7,"at":"1970-01-01T00:00:00Z","type":"wait_ended"}"#;
        for (expected, change) in [
            (
                "record 2 (line 2) was changed",
                &(|lines: &mut Vec<String>| lines[1] = lines[1].replace("number", "Number"))
                    as &dyn Fn(&mut Vec<String>),
            ),
            ("record 6 (line 6) was changed", &|lines| {
                lines[5] = lines[5].replace("number", "Number")
            }),
            ("record 3 is missing before line 3", &|lines| {
                drop(lines.remove(2))
            }),
            ("records 1 to 2 are missing before line 1", &|lines| {
                drop(lines.drain(..2))
            }),
            ("line 3 is damaged", &|lines| lines[2] = "garbage".into()),
            ("line 3 is damaged", &|lines| {
                lines[2].replace_range(..9, "#########")
            }),
            ("record 7 (line 7) was not written by ralph", &|lines| {
                lines.push(forged.into())
            }),
            ("record 7 (line 3) was not written by ralph", &|lines| {
                lines.insert(2, forged.into())
            }),
            ("record 3 (line 4) was changed", &|lines| {
                lines.insert(2, lines[2].clone())
            }),
        ] {
            assert_eq!(with(change), expected);
        }
        fs::write(&path, lines.join("\n") + "\n" + forged).unwrap();
        assert_eq!(
            state(&path),
            "record 7 (line 7) was not written by ralph",
            "without a newline"
        );
    }

    #[test]
    fn a_line_that_a_kill_left_incomplete_is_no_damage() {
        let (_directory, path, lines) = journal();
        let complete = lines.join("\n");
        let last = complete.rfind('\n').unwrap() + 1;
        for cut in last..=complete.len() {
            fs::write(&path, &complete[..cut]).unwrap();
            assert_eq!(state(&path), "Intact", "cut at {cut}");
            append(&path, 6..=7);
            assert_eq!(state(&path), "Intact", "cut at {cut}, then resumed");
        }
    }

    #[test]
    fn journals_of_earlier_versions_have_no_chain_until_they_are_resumed() {
        let (_directory, path, _) = journal();
        let old: String = (1..=3)
            .map(|seq| serde_json::to_string(&record(seq)).unwrap() + "\n")
            .collect();
        fs::write(&path, &old).unwrap();
        assert_eq!(state(&path), "Unchained");
        append(&path, 4..=5);
        assert_eq!(state(&path), "Intact");
        let changed = fs::read_to_string(&path).unwrap().replacen("text\"", "tEXt\"", 1);
        fs::write(&path, changed).unwrap();
        assert_eq!(state(&path), "a line before line 4 was changed");
    }
}
