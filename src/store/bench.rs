//! What a bench leaves on disk: a directory under a name that begins with the time, a versioned plan, and the results,
//! one line each, appended as they come. Knows lines and files, not what they mean.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::find::{LATEST, ids_in};
use super::{Lock, StoreError, at, make_directory, make_run_directory, replace};

const PLAN: &str = "bench.json";
const RESULTS: &str = "results.jsonl";

/// One bench on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BenchFiles {
    directory: PathBuf,
}

impl BenchFiles {
    /// Makes the directory of a new bench among the others.
    pub fn create(benches: &Path, now: Timestamp) -> Result<Self, StoreError> {
        make_directory(benches)?;
        let (_, directory) = make_run_directory(benches, now)?;
        Ok(Self { directory })
    }

    /// The bench that is called so: its id, a beginning of it that no other has, `latest`, or its directory.
    pub fn find(benches: &Path, name: &str) -> Result<Self, StoreError> {
        let named = Path::new(name);
        if named.join(PLAN).is_file() {
            return Ok(Self {
                directory: fs::canonicalize(named).map_err(at("find", named))?,
            });
        }
        if named.is_dir() && name.contains('/') {
            let path = named.to_owned();
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

    /// Every bench that has a plan, the oldest first.
    pub fn all(benches: &Path) -> Vec<Self> {
        let directories = ids_in(benches).into_iter().map(|id| benches.join(id));
        let all = directories.map(|directory| Self { directory });
        all.filter(|bench| bench.plan_path().is_file()).collect()
    }

    pub fn id(&self) -> String {
        super::id_of(&self.directory)
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub fn plan_path(&self) -> PathBuf {
        self.directory.join(PLAN)
    }

    /// One process at a time works on a bench.
    pub fn lock(&self, now: Timestamp) -> Result<Lock, StoreError> {
        Lock::take(&self.directory.join("lock"), now)
    }

    pub fn write_plan(&self, plan: &impl Serialize) -> Result<(), StoreError> {
        let path = self.plan_path();
        let mut text = serde_json::to_vec_pretty(plan)
            .map_err(io::Error::from)
            .map_err(at("write", &path))?;
        text.push(b'\n');
        replace(&path, &text)
    }

    pub fn read_plan<Plan: DeserializeOwned>(&self) -> Result<Plan, StoreError> {
        let path = self.plan_path();
        let text = fs::read(&path).map_err(at("read", &path))?;
        serde_json::from_slice(&text)
            .map_err(io::Error::from)
            .map_err(at("read", &path))
    }

    /// Adds one line, whole, and only then returns. What a kill tore off before is closed first.
    pub fn append(&self, entry: &impl Serialize) -> Result<(), StoreError> {
        let path = self.directory.join(RESULTS);
        let write = || {
            let mut options = OpenOptions::new();
            let mut file = options
                .read(true)
                .append(true)
                .create(true)
                .mode(0o600)
                .open(&path)?;
            let mut line = serde_json::to_vec(entry)?;
            line.push(b'\n');
            if is_torn(&file)? {
                line.insert(0, b'\n');
            }
            file.write_all(&line)?;
            file.sync_data()
        };
        write().map_err(at("write", &path))
    }

    /// Every line that was written whole, in order; what cannot be read is passed over.
    pub fn entries<Entry: DeserializeOwned>(&self) -> Result<Vec<Entry>, StoreError> {
        let path = self.directory.join(RESULTS);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(at("read", &path)(error)),
        };
        let lines = text.split(|byte| *byte == b'\n');
        Ok(lines
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect())
    }
}

/// Whether the last line has no end.
fn is_torn(file: &fs::File) -> io::Result<bool> {
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
    fn a_torn_line_is_dropped_and_never_blocks_later_ones() {
        let place = tempfile::tempdir().unwrap();
        let bench = BenchFiles::create(place.path(), now()).unwrap();
        bench.append(&1).unwrap();
        let results = bench.directory().join(RESULTS);
        let mut file = OpenOptions::new().append(true).open(&results).unwrap();
        file.write_all(b"{\"half\":").unwrap();
        bench.append(&2).unwrap();
        bench.append(&3).unwrap();
        assert_eq!(bench.entries::<u64>().unwrap(), [1, 2, 3]);
    }

    #[test]
    fn a_bench_is_found_by_id_beginning_directory_or_as_the_latest() {
        let place = tempfile::tempdir().unwrap();
        let find = |name: &str| BenchFiles::find(place.path(), name);
        assert!(matches!(find(LATEST), Err(StoreError::NoBenches { .. })));
        let old = BenchFiles::create(place.path(), now()).unwrap();
        let new = BenchFiles::create(place.path(), "2026-11-16T00:00:00Z".parse().unwrap()).unwrap();
        let unfinished = BenchFiles::create(place.path(), "2026-11-17T00:00:00Z".parse().unwrap()).unwrap();
        old.write_plan(&"old").unwrap();
        new.write_plan(&"new").unwrap();
        assert_eq!(find(LATEST).unwrap().id(), new.id(), "one without a plan is none");
        assert_eq!(find("20261115").unwrap().id(), old.id());
        assert_eq!(find(&old.directory().to_string_lossy()).unwrap().id(), old.id());
        assert_eq!(find("20261115").unwrap().read_plan::<String>().unwrap(), "old");
        assert!(matches!(find("2026"), Err(StoreError::AmbiguousBench { .. })));
        assert!(matches!(find("nope"), Err(StoreError::UnknownBench { .. })));
        let directory = unfinished.directory().to_string_lossy().into_owned();
        assert!(matches!(find(&directory), Err(StoreError::NotABench { .. })));
    }
}
