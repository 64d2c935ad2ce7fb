//! All runs of a workspace, at a glance. A run is judged by the first and the last record of its journal, whatever lies
//! between them: a shelf of ten thousand runs is looked through in the time of a blink.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use memchr::{memchr, memmem, memrchr};
use serde::Deserialize;

use super::{DIRECTORY, Lock, find};
use crate::event::{RunHeader, RunOutcome, Usage};

/// What is read at first of either end of a journal; a longer record is read in larger pieces, up to the largest.
const PIECE: u64 = 4096;
const LARGEST_PIECE: u64 = 1 << 20;
/// Many things are looked at by several threads, each of which gets so many at least.
const MOST_HANDS: usize = 8;
const SMALLEST_SHARE: usize = 64;
/// How long the time in an id is.
const STAMP: usize = "20261115-204501".len();
/// Where a record says its type: after its number and time.
const BEGINNING: usize = 128;

/// The runs of one workspace.
#[derive(Debug)]
pub struct RunIndex {
    agent: PathBuf,
    /// The oldest first: they begin with the time.
    ids: Vec<String>,
    at_work: Option<String>,
}

/// What can be seen of a run without reading through it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEntry {
    pub id: String,
    pub began: Option<Timestamp>,
    /// Absent where not even that can be read.
    pub header: Option<RunHeader>,
    pub state: State,
}

/// How a run stands.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// A living process drives it.
    AtWork,
    Ended(Box<Ending>),
    /// It has no end, and nobody drives it: it was killed, or the power was cut.
    Died,
    /// Its journal is missing, or does not begin as a journal does.
    Broken,
}

/// The last word of a run.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Ending {
    pub at: Timestamp,
    #[serde(flatten)]
    pub outcome: RunOutcome,
    pub iterations: u64,
    pub duration_ms: u64,
    pub usage: Usage,
}

/// The first record of a run. Its two parts are read one after the other, which is faster than both at once.
struct First {
    at: Timestamp,
    header: RunHeader,
}

#[derive(Deserialize)]
struct Stamp<'a> {
    at: Timestamp,
    #[serde(rename = "type")]
    kind: &'a str,
}

/// Looks at many things at once, and tells in the same order what was seen.
pub fn par_map<T: Sync, S: Send>(things: &[T], look: impl Fn(&T) -> S + Sync) -> Vec<S> {
    let hands = std::thread::available_parallelism().map_or(1, usize::from);
    let share = things.len().div_ceil(hands.min(MOST_HANDS)).max(SMALLEST_SHARE);
    let look = |things: &[T]| -> Vec<S> { things.iter().map(&look).collect() };
    if things.len() <= share {
        return look(things);
    }
    std::thread::scope(|scope| {
        let shares: Vec<_> = things
            .chunks(share)
            .map(|things| scope.spawn(|| look(things)))
            .collect();
        let seen = shares.into_iter().map(|share| share.join().unwrap_or_default());
        seen.flatten().collect()
    })
}

impl RunIndex {
    /// A workspace in which nothing ever ran has an empty shelf.
    pub fn of(workspace: &Path) -> Self {
        let agent = workspace.join(DIRECTORY);
        let mut ids = find::ids_in(&agent.join("runs"));
        // What is not called as a run is called is something of the user's own.
        ids.retain(|id| is_id(id));
        Self {
            ids,
            at_work: run_at_work(&agent),
            agent,
        }
    }

    /// The directory that holds the runs.
    pub fn runs(&self) -> PathBuf {
        self.agent.join("runs")
    }

    pub fn directory(&self, id: &str) -> PathBuf {
        self.runs().join(id)
    }

    pub fn newest_first(&self) -> impl Iterator<Item = &str> {
        self.ids.iter().rev().map(String::as_str)
    }

    pub fn len(&self) -> usize {
        self.ids.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Whether a living process drives this run, whatever its journal says.
    pub fn is_at_work(&self, id: &str) -> bool {
        self.at_work.as_deref() == Some(id)
    }

    pub fn entry(&self, id: &str) -> RunEntry {
        let journal = self.directory(id).join("events.jsonl");
        let (first, ending) = look(&journal).unwrap_or_default();
        let state = match (&first, ending) {
            // A run that goes on says so at once; until then its last word stands.
            (Some(_), Some(ending)) => State::Ended(Box::new(ending)),
            (_, _) if self.is_at_work(id) => State::AtWork,
            (Some(_), None) => State::Died,
            (None, _) => State::Broken,
        };
        let (began, header) = match first {
            Some(first) => (Some(first.at), Some(first.header)),
            None => (time_of(id), None),
        };
        RunEntry {
            id: id.to_owned(),
            began,
            header,
            state,
        }
    }
}

/// The run that a living process drives, if there is one: the one whose journal was opened last, while the lock is held.
pub(super) fn run_at_work(agent: &Path) -> Option<String> {
    Lock::holder(&agent.join("lock"))?;
    let newest = find::ids_in(&agent.join("runs")).pop();
    // A run that is just beginning has a directory, but not yet a journal.
    if let Some(newest) = &newest
        && !agent.join("runs").join(newest).join("events.jsonl").exists()
    {
        return Some(newest.clone());
    }
    let linked = fs::read_link(agent.join("events.jsonl")).ok();
    let linked = linked.and_then(|path| Some(path.parent()?.file_name()?.to_str()?.to_owned()));
    linked.or(newest)
}

/// Whether a living process drives this run.
pub fn is_at_work(run: &Path) -> bool {
    let Some(agent) = run.ancestors().nth(2) else {
        return false;
    };
    run_at_work(agent).is_some_and(|id| run.ends_with(id))
}

/// Whether a name begins as ids do: `20261115-204501`.
fn is_id(name: &str) -> bool {
    let stamp = name.as_bytes().get(..STAMP);
    stamp.is_some_and(|stamp| {
        let mut signs = stamp.iter().enumerate();
        signs.all(|(at, sign)| {
            if at == 8 {
                *sign == b'-'
            } else {
                sign.is_ascii_digit()
            }
        })
    })
}

/// When a run began, as its id says it.
pub fn time_of(id: &str) -> Option<Timestamp> {
    let stamp = id.get(..STAMP)?;
    let time = DateTime::strptime("%Y%m%d-%H%M%S", stamp).ok()?;
    time.to_zoned(TimeZone::UTC).ok().map(|time| time.timestamp())
}

/// The first record of a journal, and the last one if that is the run's end.
fn look(path: &Path) -> io::Result<(Option<First>, Option<Ending>)> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let head = read_at(&file, 0, PIECE.min(length))?;
    let first = first_record(&file, &head, length)?;
    if length <= PIECE {
        return Ok((first, last_line(&head, 0).and_then(ending)));
    }
    let mut piece = PIECE;
    loop {
        let from = length.saturating_sub(piece);
        let tail = read_at(&file, from, piece.min(length))?;
        if let Some(line) = last_line(&tail, from) {
            return Ok((first, ending(line)));
        }
        if from == 0 || piece >= LARGEST_PIECE {
            return Ok((first, None));
        }
        piece *= 16;
    }
}

fn first_record(file: &File, head: &[u8], length: u64) -> io::Result<Option<First>> {
    let longer;
    let line = match memchr(b'\n', head) {
        Some(end) => &head[..end],
        None => {
            longer = read_at(file, 0, LARGEST_PIECE.min(length))?;
            memchr(b'\n', &longer).map_or(&longer[..], |end| &longer[..end])
        }
    };
    let first = || -> serde_json::Result<Option<First>> {
        let Stamp { at, kind } = serde_json::from_slice(line)?;
        let header = serde_json::from_slice(line)?;
        Ok((kind == "run_started").then_some(First { at, header }))
    };
    Ok(first().unwrap_or_default())
}

/// The last record that was written whole; `from` is where the piece begins in its file.
fn last_line(piece: &[u8], from: u64) -> Option<&[u8]> {
    let mut end = piece.len();
    while end > 0 {
        let start = match memrchr(b'\n', &piece[..end - 1]) {
            Some(newline) => newline + 1,
            None if from == 0 => 0,
            None => return None,
        };
        let line = piece[start..end].trim_ascii();
        if line.starts_with(b"{") && line.ends_with(b"}") {
            return Some(line);
        }
        end = start;
    }
    None
}

/// Only a record that is the end of a run is looked into.
fn ending(line: &[u8]) -> Option<Ending> {
    let beginning = &line[..line.len().min(BEGINNING)];
    memmem::find(beginning, b"\"run_ended\"")?;
    serde_json::from_slice(line).ok()
}

fn read_at(file: &File, from: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], from + filled as u64)? {
            0 => break,
            count => filled += count,
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::super::Run;
    use super::*;

    const ID: &str = "20261115-204501-k3f9";
    const START: &str = r#"{"seq":1,"at":"2026-11-15T20:45:01Z","type":"run_started","version":1,"run_id":"20261115-204501-k3f9","ralph":"0.1.0","agent":"claude","transcript":"claude","workspace":"/w","max_iterations":3}"#;
    const SAID: &str = r#"{"seq":2,"at":"2026-11-15T20:45:02Z","type":"notice","level":"info","text":"\"type\":\"run_ended\""}"#;
    const END: &str = r#"{"seq":3,"at":"2026-11-15T20:45:03Z","type":"run_ended","outcome":"complete","marker":"M","iterations":2,"duration_ms":2000,"usage":{"total_tokens":7}}"#;

    fn state(journal: &str) -> State {
        let place = tempfile::tempdir().unwrap();
        let run = place.path().join(".agent/runs").join(ID);
        fs::create_dir_all(&run).unwrap();
        fs::write(run.join("events.jsonl"), journal).unwrap();
        RunIndex::of(place.path()).entry(ID).state
    }

    fn is_ended(journal: &str) -> bool {
        matches!(state(journal), State::Ended(_))
    }

    #[test]
    fn the_last_whole_record_decides() {
        assert!(is_ended(&format!("{START}\n{SAID}\n{END}\n")));
        assert!(
            is_ended(&format!("{START}\n{SAID}\n{END}")),
            "only its newline is missing"
        );
        assert!(
            is_ended(&format!("{START}\n{END}\n{}", "\0".repeat(9000))),
            "zeros of a power cut"
        );
        assert_eq!(state(&format!("{START}\n{SAID}\n")), State::Died);
        assert_eq!(
            state(&format!("{START}\n{END}\n{SAID}\n")),
            State::Died,
            "it went on"
        );
        assert_eq!(
            state(&format!("{START}\n{}", &END[..60])),
            State::Died,
            "half an end is none"
        );
        let long = SAID.replace("run_ended", &"long ".repeat(200_000));
        assert!(is_ended(&format!("{START}\n{long}\n{END}\n")));
        assert_eq!(state(&format!("{START}\n{END}\n{long}\n")), State::Died);
        assert_eq!(state(START), State::Died);
        let spaced = END.replace(':', ": ").replace("20: 45: 03", "20:45:03");
        assert!(
            is_ended(&format!("{START}\n{spaced}\n")),
            "as another program writes it"
        );
    }

    #[test]
    fn what_is_no_journal_is_broken_and_no_error() {
        for text in ["", "nonsense\n", "{}\n", END] {
            assert_eq!(state(text), State::Broken, "{text}");
        }
        let place = tempfile::tempdir().unwrap();
        fs::create_dir_all(place.path().join(".agent/runs").join(ID)).unwrap();
        let entry = RunIndex::of(place.path()).entry(ID);
        assert_eq!((entry.state, entry.header), (State::Broken, None));
        assert_eq!(entry.began, "2026-11-15T20:45:01Z".parse().ok());
        assert!(RunIndex::of(&place.path().join("nowhere")).is_empty());
    }

    #[test]
    fn a_run_whose_lock_is_held_is_at_work_and_nobody_elses_is() {
        let place = tempfile::tempdir().unwrap();
        let old = place.path().join(".agent/runs").join(ID);
        fs::create_dir_all(&old).unwrap();
        fs::write(old.join("events.jsonl"), START).unwrap();
        let run = Run::create(place.path(), "2026-11-16T00:00:00Z".parse().unwrap()).unwrap();
        let seen = |id: &str| RunIndex::of(place.path()).entry(id).state;
        assert_eq!(seen(run.id()), State::AtWork, "without a journal yet");
        run.journal().unwrap();
        assert_eq!((seen(run.id()), seen(ID)), (State::AtWork, State::Died));
        assert!(is_at_work(run.directory()) && !is_at_work(&old));
        let directory = run.directory().to_owned();
        drop(run);
        assert!(!is_at_work(&directory));
        let again = Run::reopen(place.path(), ID, Timestamp::UNIX_EPOCH).unwrap();
        again.journal().unwrap();
        assert_eq!(seen(ID), State::AtWork, "an old run that goes on");
    }

    #[test]
    fn ids_say_when_a_run_began() {
        assert_eq!(time_of(ID), "2026-11-15T20:45:01Z".parse().ok());
        for id in ["", "20261115", "20269915-204501-k3f9", "ääääääääääääääää"] {
            assert_eq!(time_of(id), None, "{id}");
        }
    }
}
