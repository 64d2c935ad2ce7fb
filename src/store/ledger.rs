//! The ledgers of accounts: files that all runs of a user append to under a lock, so that they share the usage limits of
//! their agents without a server.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use super::{StateDirectory, StoreError, index, io_error, private_files, replace_file};
use crate::event::{AttemptResult, QuotaEntry, QuotaFact};
use crate::policy::Account;

/// The directory of the ledgers.
const DIRECTORY: &str = "quota";
const EXTENSION: &str = ".jsonl";
/// A ledger that has become larger is shortened.
const MAX_BYTES: u64 = 256 * 1024;
/// How many entries a shortened ledger keeps at most, besides those that are still in effect.
const KEPT_ENTRIES: usize = 400;
/// Another run holds the lock for a moment only.
const LOCK_TIMEOUT: Duration = Duration::from_secs(20);
const LOCK_RETRY: Duration = Duration::from_millis(2);
/// Longest part of a file name that names the account.
const MAX_NAME: usize = 64;

/// An agent and an account of it. Runs with the same name share usage limits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AccountName {
    agent: String,
    /// `None` for the only account of this user.
    account: Option<String>,
}

impl AccountName {
    /// Characters that a file name should not contain are replaced.
    pub fn new(agent: &str, account: Option<&str>) -> Self {
        Self {
            agent: plain_name(agent).replace('-', "_"),
            account: account.map(plain_name),
        }
    }

    pub fn agent(&self) -> &str {
        &self.agent
    }

    pub fn account(&self) -> Option<&str> {
        self.account.as_deref()
    }

    /// For messages: `claude (me@example.com)`.
    pub fn label(&self) -> String {
        match &self.account {
            Some(account) => format!("{} ({account})", self.agent),
            None => self.agent.clone(),
        }
    }

    /// The name of its ledger: `claude-me@example.com`.
    fn file_stem(&self) -> String {
        format!("{}-{}", self.agent, self.account.as_deref().unwrap_or("default"))
    }

    fn from_file_stem(stem: &str) -> Option<Self> {
        let (agent, account) = stem.split_once('-')?;
        Some(Self {
            agent: agent.to_owned(),
            account: Some(account.to_owned()).filter(|account| account != "default"),
        })
    }
}

/// A part of a file name; texts that differ stay different.
fn plain_name(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "@._+-".contains(c);
    let name: String = text
        .chars()
        .map(|c| if is_plain(c) { c } else { '_' })
        .take(MAX_NAME)
        .collect();
    match name == text && !name.starts_with('.') {
        true => name,
        false => {
            let hash = Sha256::digest(text.as_bytes());
            let hash: String = hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
            format!("{}.{hash}", name.trim_start_matches('.'))
        }
    }
}

impl StateDirectory {
    /// The ledger of an account, which may not exist yet.
    pub fn ledger(&self, name: &AccountName) -> Ledger {
        Ledger {
            file: LockedFile::new(self, &name.file_stem()),
        }
    }

    /// The accounts that have a ledger, by name.
    pub fn accounts(&self) -> Vec<AccountName> {
        let entries = std::fs::read_dir(self.path().join(DIRECTORY))
            .into_iter()
            .flatten()
            .flatten();
        let stem = |name: String| Some(name.strip_suffix(EXTENSION)?.to_owned());
        let mut names: Vec<AccountName> = entries
            .filter_map(|entry| entry.file_name().into_string().ok().and_then(stem))
            .filter_map(|stem| AccountName::from_file_stem(&stem))
            .collect();
        names.sort();
        names
    }
}

/// The ledger of one account.
#[derive(Debug, Clone)]
pub struct Ledger {
    file: LockedFile,
}

impl Ledger {
    /// The account, without the runs that have died. Does not change the ledger.
    pub fn read(&self) -> Result<Account, StoreError> {
        let mut account = Account::of(&self.file.read_unlocked()?);
        for run in dead_runs(&account) {
            account.forget(&run);
        }
        Ok(account)
    }

    /// Reads the account and appends what `decide` returns for it at the current time. No other run reads or writes in
    /// between.
    pub fn update<T>(
        &self,
        run: &str,
        decide: impl FnOnce(&mut Account, Timestamp) -> (Vec<QuotaFact>, T),
    ) -> Result<T, StoreError> {
        let mut locked = self.file.lock()?;
        let entries: Vec<QuotaEntry> = locked.read()?;
        let mut account = Account::of(&entries);
        let at = Timestamp::now();
        let mut new = Vec::new();
        for dead in dead_runs(&account) {
            let result = AttemptResult::Unknown;
            let ended = [QuotaFact::Ended { result }, QuotaFact::WaitEnded];
            new.extend(ended.map(|fact| QuotaEntry {
                at,
                run: dead.clone(),
                fact,
            }));
            account.forget(&dead);
        }
        let (facts, result) = decide(&mut account, at);
        let run = run.to_owned();
        new.extend(facts.into_iter().map(|fact| QuotaEntry {
            at,
            run: run.clone(),
            fact,
        }));
        locked.append(&new)?;
        locked.shorten(still_needed)?;
        Ok(result)
    }
}

/// The runs that use the account or wait for it according to the ledger, but do not run any more.
fn dead_runs(account: &Account) -> Vec<String> {
    let places = account
        .places()
        .iter()
        .map(|(run, place)| (run, &place.directory));
    let waiting = account
        .waiting()
        .iter()
        .map(|(run, waiting)| (run, &waiting.directory));
    let dead = places
        .chain(waiting)
        .filter(|(_, directory)| !index::is_running(directory));
    let mut dead: Vec<String> = dead.map(|(run, _)| run.clone()).collect();
    dead.dedup();
    dead
}

/// The entries of a ledger that are still needed: the newest ones, the last state of each limit, and the places and waits
/// that have not ended.
fn still_needed(entries: Vec<QuotaEntry>) -> Vec<QuotaEntry> {
    let account = Account::of(&entries);
    let newest = entries.len().saturating_sub(KEPT_ENTRIES);
    let is_last = |index: usize, same: &dyn Fn(&QuotaFact) -> bool| {
        !entries[index + 1..].iter().any(|later| same(&later.fact))
    };
    let keep = |(index, entry): (usize, &QuotaEntry)| match &entry.fact {
        _ if index >= newest => true,
        QuotaFact::Limit(report) => is_last(index, &|later| {
            matches!(later, QuotaFact::Limit(other)
                if other.window == report.window && other.status == report.status)
        }),
        QuotaFact::Started { .. } => account
            .places()
            .get(&entry.run)
            .is_some_and(|place| place.since == entry.at),
        QuotaFact::Waiting { .. } => account.waiting().contains_key(&entry.run),
        QuotaFact::Ended { .. } | QuotaFact::WaitEnded => false,
    };
    let kept: Vec<usize> = entries
        .iter()
        .enumerate()
        .filter(|entry| keep(*entry))
        .map(|(index, _)| index)
        .collect();
    kept.into_iter().map(|index| entries[index].clone()).collect()
}

/// A file of JSON lines, and the lock that its writers hold. A lock of its own survives when the file is replaced.
#[derive(Debug, Clone)]
pub(super) struct LockedFile {
    state: StateDirectory,
    path: PathBuf,
    lock: PathBuf,
}

impl LockedFile {
    pub(super) fn new(state: &StateDirectory, stem: &str) -> Self {
        let directory = state.path().join(DIRECTORY);
        Self {
            state: state.clone(),
            path: directory.join(format!("{stem}{EXTENSION}")),
            lock: directory.join(format!("{stem}.lock")),
        }
    }

    /// The readable lines. A line that is torn or was written by a newer version is left out.
    pub(super) fn read_unlocked<T: DeserializeOwned>(&self) -> Result<Vec<T>, StoreError> {
        match private_files::open(&self.path) {
            Ok(mut file) => read_lines(&mut file, &self.path),
            Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Waits until no other run holds the lock.
    pub(super) fn lock(&self) -> Result<LockedLines<'_>, StoreError> {
        self.state.create()?;
        private_files::create_directory(self.path.parent().unwrap_or(Path::new("/")))?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let lock = private_files::open_with(&options, &self.lock)?;
        let start = Instant::now();
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if start.elapsed() < LOCK_TIMEOUT => {
                    std::thread::sleep(LOCK_RETRY)
                }
                Err(TryLockError::WouldBlock) => {
                    let error = io::Error::other("another process holds the lock");
                    return Err(io_error("lock", &self.lock)(error));
                }
                Err(TryLockError::Error(source)) => return Err(io_error("lock", &self.lock)(source)),
            }
        }
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        let file = private_files::open_with(&options, &self.path)?;
        Ok(LockedLines {
            of: self,
            file,
            _lock: lock,
        })
    }
}

/// The lines of a locked file.
pub(super) struct LockedLines<'a> {
    of: &'a LockedFile,
    file: File,
    _lock: File,
}

impl LockedLines<'_> {
    pub(super) fn read<T: DeserializeOwned>(&mut self) -> Result<Vec<T>, StoreError> {
        self.file.rewind().map_err(io_error("read", &self.of.path))?;
        read_lines(&mut self.file, &self.of.path)
    }

    /// Appends all entries with one write.
    pub(super) fn append<T: Serialize>(&mut self, entries: &[T]) -> Result<(), StoreError> {
        if entries.is_empty() {
            return Ok(());
        }
        let mut write = || -> io::Result<()> {
            let mut text = Vec::new();
            // A line that a killed run has not finished ends here.
            if !ends_with_line_break(&mut self.file)? {
                text.push(b'\n');
            }
            for entry in entries {
                serde_json::to_writer(&mut text, entry)?;
                text.push(b'\n');
            }
            self.file.write_all(&text)
        };
        write().map_err(io_error("write", &self.of.path))
    }

    /// Replaces a file that has become large by the entries that are still needed.
    pub(super) fn shorten<T: Serialize + DeserializeOwned>(
        &mut self,
        needed: impl FnOnce(Vec<T>) -> Vec<T>,
    ) -> Result<(), StoreError> {
        let length = self
            .file
            .metadata()
            .map_err(io_error("read", &self.of.path))?
            .len();
        if length <= MAX_BYTES {
            return Ok(());
        }
        let mut text = Vec::new();
        for entry in needed(self.read()?) {
            serde_json::to_writer(&mut text, &entry)
                .map_err(io::Error::from)
                .map_err(io_error("write", &self.of.path))?;
            text.push(b'\n');
        }
        replace_file(&self.of.path, &text)
    }
}

fn ends_with_line_break(file: &mut File) -> io::Result<bool> {
    let length = file.seek(io::SeekFrom::End(0))?;
    if length == 0 {
        return Ok(true);
    }
    file.seek(io::SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

fn read_lines<T: DeserializeOwned>(file: &mut File, path: &Path) -> Result<Vec<T>, StoreError> {
    let mut bytes = Vec::new();
    // Shortening keeps files far below this size.
    let max = MAX_BYTES * 64;
    file.take(max)
        .read_to_end(&mut bytes)
        .map_err(io_error("read", path))?;
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    Ok(lines
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{LimitReport, RateLimitStatus, StartKind};
    use crate::policy::{Admission, QuotaRules, Urgency};

    fn name(account: &str) -> AccountName {
        AccountName::new("agent", Some(account))
    }

    fn ledger(base: &Path) -> Ledger {
        StateDirectory::at(base.join("state")).ledger(&name("me"))
    }

    fn rejected() -> QuotaFact {
        QuotaFact::Limit(LimitReport {
            status: RateLimitStatus::Rejected,
            window: Some("five_hour".into()),
            utilization: None,
            resets_at: Some(Timestamp::now() + Duration::from_secs(3600)),
        })
    }

    fn is_limited(ledger: &Ledger) -> bool {
        ledger.read().unwrap().limited_until(Timestamp::now()).is_some()
    }

    #[test]
    fn lines_of_version_1_are_read() {
        let golden = include_str!("../../tests/golden/ledger.v1.jsonl");
        for line in golden.lines() {
            let entry: QuotaEntry = serde_json::from_str(line).unwrap();
            assert_eq!(serde_json::to_string(&entry).unwrap(), line);
        }
    }

    #[test]
    fn entries_after_a_torn_line_are_read() {
        let base = tempfile::tempdir().unwrap();
        let ledger = ledger(base.path());
        ledger.update("a", |_, _| (vec![rejected()], ())).unwrap();
        let path = ledger.file.path.clone();
        let whole = std::fs::read(&path).unwrap();
        let mut torn = b"\xff garbage\n".to_vec();
        torn.extend_from_slice(&whole[..whole.len() - 20]);
        std::fs::write(&path, torn).unwrap();
        assert!(!is_limited(&ledger), "the line is lost");
        ledger.update("a", |_, _| (vec![rejected()], ())).unwrap();
        assert!(
            is_limited(&ledger),
            "{}",
            String::from_utf8_lossy(&std::fs::read(&path).unwrap())
        );
    }

    #[test]
    fn the_place_of_a_dead_run_is_free() {
        let base = tempfile::tempdir().unwrap();
        let ledger = ledger(base.path());
        let run = base.path().join("run");
        std::fs::create_dir(&run).unwrap();
        std::fs::write(run.join("events.jsonl"), "").unwrap();
        let alive = File::open(run.join("events.jsonl")).unwrap();
        alive.lock().unwrap();
        let rules = QuotaRules {
            parallel: Some(1),
            longest_wait: Duration::from_secs(60),
            ..QuotaRules::default()
        };
        let started = QuotaFact::Started {
            start: StartKind::Normal,
            directory: run,
        };
        ledger.update("a", |_, _| (vec![started], ())).unwrap();
        let ask = || {
            let ask =
                |account: &mut Account, at| (Vec::new(), account.request(at, "b", &rules, Urgency::Normal));
            ledger.update("b", ask).unwrap()
        };
        assert!(matches!(ask(), Admission::Wait(_)));
        drop(alive);
        assert_eq!(ask(), Admission::Start(StartKind::Normal));
        assert!(ledger.read().unwrap().places().is_empty());
    }

    #[test]
    fn a_long_ledger_is_shortened_without_a_change_of_the_account() {
        let base = tempfile::tempdir().unwrap();
        let ledger = ledger(base.path());
        let run = base.path().to_owned();
        std::fs::write(run.join("events.jsonl"), "").unwrap();
        let alive = File::open(run.join("events.jsonl")).unwrap();
        alive.lock().unwrap();
        let start = StartKind::Normal;
        let started = || QuotaFact::Started {
            start,
            directory: run.clone(),
        };
        ledger
            .update("old", |_, _| (vec![rejected(), started()], ()))
            .unwrap();
        let pair = |_: usize| {
            [
                started(),
                QuotaFact::Ended {
                    result: AttemptResult::Unknown,
                },
            ]
        };
        let many = || (0..1000).flat_map(pair).collect::<Vec<_>>();
        ledger.update("a", |_, _| (many(), ())).unwrap();
        let before = ledger.read().unwrap();
        ledger.update("a", |_, _| (many(), ())).unwrap();
        let bytes = std::fs::metadata(&ledger.file.path).unwrap().len();
        assert!(bytes < MAX_BYTES, "{bytes}");
        let after = ledger.read().unwrap();
        assert_eq!(
            (before.windows(), before.places()),
            (after.windows(), after.places())
        );
        assert!(is_limited(&ledger));
    }

    #[test]
    fn names_of_accounts_are_safe_and_different_file_names() {
        let state = StateDirectory::at("/state".into());
        let file = |account: &str| {
            let path = state.ledger(&name(account)).file.path;
            path.strip_prefix("/state/quota")
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned()
        };
        assert_eq!(file("me@example.com"), "agent-me@example.com.jsonl");
        for odd in ["../../x", ".hidden", "a/b", "a\0b", "ä", &"x".repeat(200)] {
            let file = file(odd);
            assert!(
                file.starts_with("agent-") && !file.contains('/') && file.len() < 100,
                "{file}"
            );
        }
        assert_ne!(file("a/b"), file("a_b"));
        let known = name("me@example.com");
        assert_eq!(AccountName::from_file_stem(&known.file_stem()), Some(known));
    }
}
