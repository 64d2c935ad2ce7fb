//! The index of all runs of a project. It reads only the first and the last record of each journal, so that listing
//! 10,000 runs is fast.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use memchr::{memchr, memmem, memrchr};
use serde::Deserialize;

use super::lock::is_locked;
use super::{Project, find, private_files};
use crate::event::{RunHeader, RunOutcome, Usage};

/// Number of bytes that are read first from the start and the end of a journal.
const CHUNK: u64 = 4096;
/// Limit for records that do not fit into `CHUNK`.
const MAX_CHUNK: u64 = 1 << 20;
const MAX_THREADS: usize = 8;
const MIN_ITEMS_PER_THREAD: usize = 64;
/// Length of the time at the start of an id.
const ID_TIME_LENGTH: usize = "20261115-204501".len();
/// The type of a record follows its sequence number and time, within this many bytes.
const TYPE_PREFIX: usize = 128;

/// The runs of one project.
#[derive(Debug, Clone)]
pub struct RunIndex {
    runs: PathBuf,
    /// The directory and the ids of the runs that version 1 of ralph stored in the workspace.
    legacy: Option<(PathBuf, HashSet<String>)>,
    /// Oldest first.
    ids: Vec<String>,
}

/// The facts about a run that its first and last record contain.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEntry {
    pub id: String,
    pub began: Option<Timestamp>,
    /// `None` if the journal is missing or unreadable.
    pub header: Option<RunHeader>,
    pub state: RunState,
}

/// The state of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum RunState {
    /// A live process is executing it.
    Running,
    Ended(Box<RunEnd>),
    /// The journal has no end, and no process is executing the run: ralph was killed, or the power failed.
    Died,
    /// The journal is missing, or its first line is not that of a journal.
    Broken,
}

/// The last record of a run that has ended.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct RunEnd {
    pub at: Timestamp,
    #[serde(flatten)]
    pub outcome: RunOutcome,
    pub iterations: u64,
    pub duration_ms: u64,
    pub usage: Usage,
}

/// The first record of a run. Its two parts are parsed separately, which is faster than flattening one into the other.
struct FirstRecord {
    at: Timestamp,
    header: RunHeader,
}

#[derive(Deserialize)]
struct RecordHead<'a> {
    at: Timestamp,
    #[serde(rename = "type")]
    kind: &'a str,
}

/// Maps items on several threads. The results have the order of the items.
pub fn par_map<T: Sync, S: Send>(items: &[T], map: impl Fn(&T) -> S + Sync) -> Vec<S> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let chunk_size = items
        .len()
        .div_ceil(threads.min(MAX_THREADS))
        .max(MIN_ITEMS_PER_THREAD);
    let map_chunk = |chunk: &[T]| -> Vec<S> { chunk.iter().map(&map).collect() };
    if items.len() <= chunk_size {
        return map_chunk(items);
    }
    std::thread::scope(|scope| {
        let handles: Vec<_> = items
            .chunks(chunk_size)
            .map(|chunk| {
                let thread = std::thread::Builder::new().name("index".into());
                thread.spawn_scoped(scope, || map_chunk(chunk)).map_err(|_| chunk)
            })
            .collect();
        let results = handles
            .into_iter()
            // Without a thread, this one does the work.
            .map(|handle| match handle {
                Ok(handle) => handle.join().unwrap_or_default(),
                Err(chunk) => map_chunk(chunk),
            });
        results.flatten().collect()
    })
}

impl RunIndex {
    /// Lists the runs of a project. The index is empty if there are none.
    pub fn load(project: &Project) -> Self {
        let runs = project.runs();
        let run_ids = |runs: &Path| {
            // Ignore directories whose names are not run ids.
            find::ids_in(runs).into_iter().filter(|id| is_id(id))
        };
        let mut ids: Vec<String> = run_ids(&runs).collect();
        let legacy = project.legacy_runs().map(|runs| {
            // A run in the workspace never takes the place of one in the state directory.
            let is_new = |id: &String| ids.binary_search(id).is_err();
            let legacy: HashSet<String> = run_ids(&runs).filter(is_new).collect();
            (runs, legacy)
        });
        if let Some((_, legacy)) = legacy.as_ref().filter(|(_, ids)| !ids.is_empty()) {
            ids.extend(legacy.iter().cloned());
            ids.sort_unstable();
        }
        Self { runs, legacy, ids }
    }

    /// The runs in the state directory, which only ralph writes to.
    pub fn without_legacy(&self) -> Self {
        let mut index = self.clone();
        if let Some((_, legacy)) = index.legacy.take() {
            index.ids.retain(|id| !legacy.contains(id));
        }
        index
    }

    pub fn directory(&self, id: &str) -> PathBuf {
        let legacy = self.legacy.as_ref().filter(|(_, ids)| ids.contains(id));
        legacy.map_or(&self.runs, |(runs, _)| runs).join(id)
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

    pub fn entry(&self, id: &str) -> RunEntry {
        RunEntry::read(&self.directory(id))
    }
}

impl RunEntry {
    /// Reads the facts about the run in this directory.
    pub fn read(directory: &Path) -> Self {
        let id = super::id_from_path(directory);
        let (first, end) = read_first_and_last(&directory.join("events.jsonl")).unwrap_or_default();
        let state = match (&first, end) {
            // A resumed run appends a record at once. Until then its state remains `Ended`.
            (Some(_), Some(end)) => RunState::Ended(Box::new(end)),
            (_, _) if is_running(directory) => RunState::Running,
            (Some(_), None) => RunState::Died,
            (None, _) => RunState::Broken,
        };
        let (began, header) = match first {
            Some(first) => (Some(first.at), Some(first.header)),
            None => (time_from_id(&id), None),
        };
        Self {
            id,
            began,
            header,
            state,
        }
    }
}

/// Returns whether a live process is executing the run in this directory. It holds a lock on the journal.
pub fn is_running(run: &Path) -> bool {
    private_files::open(&run.join("events.jsonl")).is_ok_and(|journal| is_locked(&journal))
}

/// Returns whether a name starts with a time, as in `20261115-204501`.
fn is_id(name: &str) -> bool {
    let time = name.as_bytes().get(..ID_TIME_LENGTH);
    time.is_some_and(|time| {
        let mut bytes = time.iter().enumerate();
        bytes.all(|(index, byte)| {
            if index == 8 {
                *byte == b'-'
            } else {
                byte.is_ascii_digit()
            }
        })
    })
}

/// Parses the start time of a run from its id.
pub fn time_from_id(id: &str) -> Option<Timestamp> {
    let time = id.get(..ID_TIME_LENGTH)?;
    let time = DateTime::strptime("%Y%m%d-%H%M%S", time).ok()?;
    time.to_zoned(TimeZone::UTC).ok().map(|time| time.timestamp())
}

/// Reads the first record of a journal, and the last one if it is the end of the run.
fn read_first_and_last(path: &Path) -> io::Result<(Option<FirstRecord>, Option<RunEnd>)> {
    let file = private_files::open(path).map_err(io::Error::other)?;
    let length = file.metadata()?.len();
    let head = read_at(&file, 0, CHUNK.min(length))?;
    let first = first_record(&file, &head, length)?;
    if length <= CHUNK {
        return Ok((first, last_line(&head, 0).and_then(parse_run_end)));
    }
    let mut chunk = CHUNK;
    loop {
        let from = length.saturating_sub(chunk);
        let tail = read_at(&file, from, chunk.min(length))?;
        if let Some(line) = last_line(&tail, from) {
            return Ok((first, parse_run_end(line)));
        }
        if from == 0 || chunk >= MAX_CHUNK {
            return Ok((first, None));
        }
        chunk *= 16;
    }
}

fn first_record(file: &File, head: &[u8], length: u64) -> io::Result<Option<FirstRecord>> {
    let longer;
    let line = match memchr(b'\n', head) {
        Some(end) => &head[..end],
        None => {
            longer = read_at(file, 0, MAX_CHUNK.min(length))?;
            memchr(b'\n', &longer).map_or(&longer[..], |end| &longer[..end])
        }
    };
    let first = || -> serde_json::Result<Option<FirstRecord>> {
        let RecordHead { at, kind } = serde_json::from_slice(line)?;
        let header = serde_json::from_slice(line)?;
        Ok((kind == "run_started").then_some(FirstRecord { at, header }))
    };
    Ok(first().unwrap_or_default())
}

/// Returns the last complete record of a chunk that starts at offset `from` of the file.
fn last_line(chunk: &[u8], from: u64) -> Option<&[u8]> {
    let mut end = chunk.len();
    while end > 0 {
        let start = match memrchr(b'\n', &chunk[..end - 1]) {
            Some(newline) => newline + 1,
            None if from == 0 => 0,
            None => return None,
        };
        let line = chunk[start..end].trim_ascii();
        if line.starts_with(b"{") && line.ends_with(b"}") {
            return Some(line);
        }
        end = start;
    }
    None
}

/// Parses the record that ends a run. Other records are not parsed.
fn parse_run_end(line: &[u8]) -> Option<RunEnd> {
    let prefix = &line[..line.len().min(TYPE_PREFIX)];
    memmem::find(prefix, b"\"run_ended\"")?;
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
    use super::*;
    use crate::store::{Run, StateDirectory};
    use std::fs;

    const ID: &str = "20261115-204501-k3f9";
    const START: &str = r#"{"seq":1,"at":"2026-11-15T20:45:01Z","type":"run_started","version":1,"run_id":"20261115-204501-k3f9","ralph":"0.1.0","agent":"claude","transcript":"claude","workspace":"/w","max_iterations":3}"#;
    const NOTICE: &str = r#"{"seq":2,"at":"2026-11-15T20:45:02Z","type":"notice","level":"info","text":"\"type\":\"run_ended\""}"#;
    const END: &str = r#"{"seq":3,"at":"2026-11-15T20:45:03Z","type":"run_ended","outcome":"complete","marker":"M","iterations":2,"duration_ms":2000,"usage":{"total_tokens":7}}"#;

    fn project(base: &Path) -> Project {
        StateDirectory::at(base.join("state")).project(base)
    }

    fn state(journal: &str) -> RunState {
        let base = tempfile::tempdir().unwrap();
        let project = project(base.path());
        let run = project.runs().join(ID);
        fs::create_dir_all(&run).unwrap();
        fs::write(run.join("events.jsonl"), journal).unwrap();
        RunIndex::load(&project).entry(ID).state
    }

    fn is_ended(journal: &str) -> bool {
        matches!(state(journal), RunState::Ended(_))
    }

    #[test]
    fn last_complete_record_determines_the_state() {
        assert!(is_ended(&format!("{START}\n{NOTICE}\n{END}\n")));
        assert!(
            is_ended(&format!("{START}\n{NOTICE}\n{END}")),
            "only the newline is missing"
        );
        assert!(
            is_ended(&format!("{START}\n{END}\n{}", "\0".repeat(9000))),
            "zeros after a power failure"
        );
        assert_eq!(state(&format!("{START}\n{NOTICE}\n")), RunState::Died);
        assert_eq!(
            state(&format!("{START}\n{END}\n{NOTICE}\n")),
            RunState::Died,
            "resumed"
        );
        assert_eq!(
            state(&format!("{START}\n{}", &END[..60])),
            RunState::Died,
            "the last record is incomplete"
        );
        let long = NOTICE.replace("run_ended", &"long ".repeat(200_000));
        assert!(is_ended(&format!("{START}\n{long}\n{END}\n")));
        assert_eq!(state(&format!("{START}\n{END}\n{long}\n")), RunState::Died);
        assert_eq!(state(START), RunState::Died);
        let spaced = END.replace(':', ": ").replace("20: 45: 03", "20:45:03");
        assert!(
            is_ended(&format!("{START}\n{spaced}\n")),
            "with whitespace between the tokens"
        );
    }

    #[test]
    fn run_without_a_valid_journal_is_broken() {
        for text in ["", "text\n", "{}\n", END] {
            assert_eq!(state(text), RunState::Broken, "{text}");
        }
        let base = tempfile::tempdir().unwrap();
        let project = project(base.path());
        assert!(RunIndex::load(&project).is_empty());
        fs::create_dir_all(project.runs().join(ID)).unwrap();
        let entry = RunIndex::load(&project).entry(ID);
        assert_eq!((entry.state, entry.header), (RunState::Broken, None));
        assert_eq!(entry.began, "2026-11-15T20:45:01Z".parse().ok());
    }

    #[test]
    fn run_stored_in_the_workspace_is_listed() {
        let base = tempfile::tempdir().unwrap();
        let project = project(base.path());
        let old = base.path().join(".agent/runs").join(ID);
        fs::create_dir_all(&old).unwrap();
        fs::write(old.join("events.jsonl"), START).unwrap();
        let run = Run::create(&project, "2026-11-16T00:00:00Z".parse().unwrap()).unwrap();
        let index = RunIndex::load(&project);
        assert_eq!(index.newest_first().collect::<Vec<_>>(), [run.id(), ID]);
        assert_eq!(index.entry(ID).state, RunState::Died);
        assert_eq!(
            index.without_legacy().newest_first().collect::<Vec<_>>(),
            [run.id()]
        );
        fs::remove_file(old.join("events.jsonl")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", old.join("events.jsonl")).unwrap();
        assert_eq!(index.entry(ID).state, RunState::Broken);
    }

    #[test]
    fn only_the_run_whose_journal_is_locked_is_running() {
        let base = tempfile::tempdir().unwrap();
        let project = project(base.path());
        let old = project.runs().join(ID);
        fs::create_dir_all(&old).unwrap();
        fs::write(old.join("events.jsonl"), format!("{START}\n")).unwrap();
        let run = Run::create(&project, "2026-11-16T00:00:00Z".parse().unwrap()).unwrap();
        let state = |id: &str| RunIndex::load(&project).entry(id).state;
        assert_eq!(state(run.id()), RunState::Running, "without a record yet");
        run.journal().unwrap();
        assert_eq!((state(run.id()), state(ID)), (RunState::Running, RunState::Died));
        assert!(is_running(run.directory()) && !is_running(&old));
        let directory = run.directory().to_owned();
        drop(run);
        assert!(!is_running(&directory));
        let resumed = Run::reopen(&project, ID, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(state(ID), RunState::Running, "a resumed run");
        drop(resumed);
    }

    #[test]
    fn start_time_is_parsed_from_the_id() {
        assert_eq!(time_from_id(ID), "2026-11-15T20:45:01Z".parse().ok());
        for id in ["", "20261115", "20269915-204501-k3f9", "ääääääääääääääää"] {
            assert_eq!(time_from_id(id), None, "{id}");
        }
    }
}
