//! The files of a bench: a directory whose name starts with the time, a versioned plan, and one line per result.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::find::{LATEST, ids_in};
use super::{Lock, StoreError, create_run_directory, io_error, private_files, replace_file};

const PLAN: &str = "bench.json";
const RESULTS: &str = "results.jsonl";

/// The directory of a bench.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BenchFiles {
    directory: PathBuf,
}

impl BenchFiles {
    /// Creates the directory of a new bench in `benches`.
    pub fn create(benches: &Path, now: Timestamp) -> Result<Self, StoreError> {
        private_files::create_directory(benches)?;
        let (_, directory) = create_run_directory(benches, now)?;
        Ok(Self { directory })
    }

    /// Finds a bench by its id, a unique prefix of its id, `latest`, or its directory.
    pub fn find(benches: &Path, name: &str) -> Result<Self, StoreError> {
        let path = Path::new(name);
        if path.join(PLAN).is_file() {
            return Ok(Self {
                directory: fs::canonicalize(path).map_err(io_error("find", path))?,
            });
        }
        if path.is_dir() && name.contains('/') {
            let path = path.to_owned();
            return Err(StoreError::NotABench { path });
        }
        let mut all = Self::all(benches);
        let Some(newest) = all.last().cloned() else {
            let benches = benches.to_owned();
            return Err(StoreError::NoBenches { benches });
        };
        if name == LATEST {
            return Ok(newest);
        }
        all.retain(|bench| !name.is_empty() && bench.id().starts_with(name));
        match all.as_slice() {
            [only] => Ok(only.clone()),
            [] => Err(StoreError::UnknownBench {
                name: name.to_owned(),
                newest: newest.id(),
            }),
            [..] => Err(StoreError::AmbiguousBench {
                name: name.to_owned(),
                candidates: all.iter().map(Self::id).collect(),
            }),
        }
    }

    /// All benches that have a plan, oldest first.
    pub fn all(benches: &Path) -> Vec<Self> {
        let directories = ids_in(benches).into_iter().map(|id| benches.join(id));
        let all = directories.map(|directory| Self { directory });
        all.filter(|bench| bench.plan_path().is_file()).collect()
    }

    pub fn id(&self) -> String {
        super::id_from_path(&self.directory)
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub fn plan_path(&self) -> PathBuf {
        self.directory.join(PLAN)
    }

    /// Locks the bench, so that only one process runs it at a time.
    pub fn lock(&self, now: Timestamp) -> Result<Lock, StoreError> {
        Lock::acquire(&self.directory.join("lock"), now)
    }

    pub fn write_plan(&self, plan: &impl Serialize) -> Result<(), StoreError> {
        let path = self.plan_path();
        let mut text = serde_json::to_vec_pretty(plan)
            .map_err(io::Error::from)
            .map_err(io_error("write", &path))?;
        text.push(b'\n');
        replace_file(&path, &text)
    }

    pub fn read_plan<Plan: DeserializeOwned>(&self) -> Result<Plan, StoreError> {
        let path = self.plan_path();
        let text = fs::read(&path).map_err(io_error("read", &path))?;
        serde_json::from_slice(&text)
            .map_err(io::Error::from)
            .map_err(io_error("read", &path))
    }

    /// Appends one result and syncs the file.
    pub fn append(&self, entry: &impl Serialize) -> Result<(), StoreError> {
        append_line(&self.directory.join(RESULTS), entry)
    }

    /// All results in order, without lines that cannot be parsed.
    pub fn entries<Entry: DeserializeOwned>(&self) -> Result<Vec<Entry>, StoreError> {
        read_lines(&self.directory.join(RESULTS))
    }
}

/// Appends one JSON line and syncs the file. If a kill left the last line incomplete, a newline is written first.
pub(super) fn append_line(path: &Path, entry: &impl Serialize) -> Result<(), StoreError> {
    let write = || {
        let mut options = OpenOptions::new();
        let mut file = options
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path)?;
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        if is_last_line_incomplete(&file)? {
            line.insert(0, b'\n');
        }
        file.write_all(&line)?;
        file.sync_data()
    };
    write().map_err(io_error("write", path))
}

/// Reads all JSON lines in order, without those that cannot be parsed. A missing file is empty.
pub(super) fn read_lines<Entry: DeserializeOwned>(path: &Path) -> Result<Vec<Entry>, StoreError> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io_error("read", path)(error)),
    };
    let lines = text.split(|byte| *byte == b'\n');
    Ok(lines
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect())
}

/// Returns whether the last line has no newline.
fn is_last_line_incomplete(file: &fs::File) -> io::Result<bool> {
    use std::os::unix::fs::FileExt;

    let length = file.metadata()?.len();
    let mut last = [b'\n'];
    if length > 0 {
        file.read_exact_at(&mut last, length - 1)?;
    }
    Ok(last != [b'\n'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-11-15T20:45:01Z".parse().unwrap()
    }

    #[test]
    fn incomplete_line_is_skipped_and_later_results_are_read() {
        let benches = tempfile::tempdir().unwrap();
        let bench = BenchFiles::create(benches.path(), now()).unwrap();
        bench.append(&1).unwrap();
        let results = bench.directory().join(RESULTS);
        let mut file = OpenOptions::new().append(true).open(&results).unwrap();
        file.write_all(b"{\"incomplete\":").unwrap();
        bench.append(&2).unwrap();
        bench.append(&3).unwrap();
        assert_eq!(bench.entries::<u64>().unwrap(), [1, 2, 3]);
    }

    #[test]
    fn bench_is_found_by_id_prefix_directory_or_latest() {
        let benches = tempfile::tempdir().unwrap();
        let find = |name: &str| BenchFiles::find(benches.path(), name);
        assert!(matches!(find(LATEST), Err(StoreError::NoBenches { .. })));
        let old = BenchFiles::create(benches.path(), now()).unwrap();
        let new = BenchFiles::create(benches.path(), "2026-11-16T00:00:00Z".parse().unwrap()).unwrap();
        let unfinished = BenchFiles::create(benches.path(), "2026-11-17T00:00:00Z".parse().unwrap()).unwrap();
        old.write_plan(&"old").unwrap();
        new.write_plan(&"new").unwrap();
        assert_eq!(
            find(LATEST).unwrap().id(),
            new.id(),
            "a directory without a plan is ignored"
        );
        assert_eq!(find("20261115").unwrap().id(), old.id());
        assert_eq!(find(&old.directory().to_string_lossy()).unwrap().id(), old.id());
        assert_eq!(find("20261115").unwrap().read_plan::<String>().unwrap(), "old");
        assert!(matches!(find("2026"), Err(StoreError::AmbiguousBench { .. })));
        assert!(matches!(find("nope"), Err(StoreError::UnknownBench { .. })));
        let directory = unfinished.directory().to_string_lossy().into_owned();
        assert!(matches!(find(&directory), Err(StoreError::NotABench { .. })));
    }
}
