//! Finding a run by name, the journal at a path, and the run that a raw output file belongs to.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::event::RunHeader;

use super::{Project, RunIndex, StoreError, io_error, open_file};

/// The alias of the newest run.
pub const LATEST: &str = "latest";

/// Maximum length of a journal's first record. A file with a longer first line is not a journal.
const MAX_HEADER_BYTES: u64 = 1 << 20;

impl Project {
    /// Finds the directory of a run by its id, a unique prefix of its id, or `latest`. Runs of this project come first,
    /// then those of all projects of this user.
    pub fn find_run(&self, name: &str) -> Result<PathBuf, StoreError> {
        let index = RunIndex::load(self);
        match resolve(&index, name) {
            Found::One(id) => Ok(index.directory(&id)),
            Found::Many(candidates) => Err(ambiguous(name, candidates)),
            Found::None if name == LATEST => Err(self.no_runs()),
            Found::None => self.find_elsewhere(name, &index),
        }
    }

    /// Finds a run of this project that can be resumed.
    pub(super) fn find_own_run(&self, name: &str) -> Result<PathBuf, StoreError> {
        let index = RunIndex::load(self);
        match resolve(&index.without_legacy(), name) {
            Found::One(id) => return Ok(self.runs().join(id)),
            Found::Many(candidates) => return Err(ambiguous(name, candidates)),
            Found::None => {}
        }
        if let Found::One(id) = resolve(&index, name) {
            return Err(StoreError::LegacyRun { id });
        }
        if name == LATEST {
            return Err(self.no_runs());
        }
        let directory = self.find_elsewhere(name, &index)?;
        let id = super::id_from_path(&directory);
        let other = self.state().projects().into_iter();
        let root = other
            .filter(|other| directory.starts_with(other.directory()))
            .map(|other| other.root().to_owned())
            .next();
        let root = root.unwrap_or_default();
        Err(StoreError::OtherProject { id, root })
    }

    /// Finds a run of another project.
    fn find_elsewhere(&self, name: &str, own: &RunIndex) -> Result<PathBuf, StoreError> {
        let mut found: Vec<PathBuf> = Vec::new();
        for project in self.state().projects() {
            let runs = project.runs();
            let matching = ids_in(&runs).into_iter();
            found.extend(
                matching
                    .filter(|id| !name.is_empty() && id.starts_with(name))
                    .map(|id| runs.join(id)),
            );
        }
        let exact = found.iter().position(|run| run.ends_with(name));
        if let Some(exact) = exact {
            return Ok(found.swap_remove(exact));
        }
        match found.as_slice() {
            [] => match own.newest_first().next() {
                None => Err(self.no_runs()),
                Some(newest) => Err(StoreError::UnknownRun {
                    name: name.to_owned(),
                    newest: newest.to_owned(),
                }),
            },
            [only] => Ok(only.clone()),
            _ => Err(ambiguous(
                name,
                found.iter().map(|run| super::id_from_path(run)).collect(),
            )),
        }
    }

    fn no_runs(&self) -> StoreError {
        StoreError::NoRuns {
            root: self.root().to_owned(),
        }
    }
}

enum Found {
    None,
    One(String),
    Many(Vec<String>),
}

fn resolve(index: &RunIndex, name: &str) -> Found {
    let mut ids = index.newest_first();
    if name == LATEST {
        return ids
            .next()
            .map_or(Found::None, |newest| Found::One(newest.to_owned()));
    }
    let mut matching: Vec<String> = ids
        .filter(|id| !name.is_empty() && id.starts_with(name))
        .map(str::to_owned)
        .collect();
    if matching.iter().any(|id| id == name) {
        return Found::One(name.to_owned());
    }
    matching.reverse();
    match matching.len() {
        0 => Found::None,
        1 => Found::One(matching.swap_remove(0)),
        _ => Found::Many(matching),
    }
}

fn ambiguous(name: &str, candidates: Vec<String>) -> StoreError {
    StoreError::AmbiguousRun {
        name: name.to_owned(),
        candidates,
    }
}

/// The ids of all runs. They start with the time, so the oldest is first.
pub(super) fn ids_in(runs: &Path) -> Vec<String> {
    let entries = fs::read_dir(runs).into_iter().flatten().flatten();
    let mut ids: Vec<String> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.'))
        .collect();
    ids.sort_unstable();
    ids
}

/// Returns the journal at a path, which is a run directory or a file whose first line is that of a journal.
pub fn journal_at(path: &Path) -> Result<Option<PathBuf>, StoreError> {
    if path.is_dir() {
        let journal = path.join("events.jsonl");
        return if journal.is_file() {
            Ok(Some(journal))
        } else {
            Err(StoreError::NotARun {
                path: path.to_owned(),
            })
        };
    }
    // Reading the first line of a pipe would consume it.
    if !path.is_file() {
        return Ok(None);
    }
    let mut first = Vec::new();
    let file = open_file(path)?;
    BufReader::new(file.take(MAX_HEADER_BYTES))
        .read_until(b'\n', &mut first)
        .map_err(io_error("read", path))?;
    let first: Value = serde_json::from_slice(&first).unwrap_or_default();
    let is_journal = first["seq"].is_u64() && first["type"] == "run_started";
    Ok(is_journal.then(|| path.to_owned()))
}

/// The facts about a raw output file that the files of its run contain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureContext {
    /// The name of the transcript format.
    pub transcript: String,
    pub prompt: String,
}

/// Returns the context of `…/iterations/NNNN/stdout.raw`, and `None` for any other file.
pub fn capture_context(path: &Path) -> Option<CaptureContext> {
    let path = fs::canonicalize(path).ok()?;
    let iteration = path
        .parent()
        .filter(|_| path.file_name() == Some(OsStr::new("stdout.raw")))?;
    let iterations = iteration
        .parent()
        .filter(|parent| parent.file_name() == Some(OsStr::new("iterations")))?;
    let header = fs::read(iterations.parent()?.join("run.json")).ok()?;
    let header: RunHeader = serde_json::from_slice(&header).ok()?;
    let prompt = fs::read(iteration.join("prompt.md")).unwrap_or_default();
    Some(CaptureContext {
        transcript: header.transcript,
        prompt: String::from_utf8_lossy(&prompt).into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::StateDirectory;

    fn project(base: &Path, name: &str, ids: &[&str]) -> Project {
        let root = base.join(name);
        fs::create_dir_all(&root).unwrap();
        let project = StateDirectory::at(base.join("state")).project(&root);
        project.create().unwrap();
        for id in ids {
            fs::create_dir_all(project.runs().join(id)).unwrap();
        }
        project
    }

    const IDS: [&str; 3] = [
        "20261115-204501-aaaa",
        "20261115-214501-bbbb",
        "20261116-000000-aaaa",
    ];

    #[test]
    fn run_is_found_by_id_unique_prefix_or_latest() {
        let base = tempfile::tempdir().unwrap();
        let project = project(base.path(), "work", &IDS);
        let find = |name| {
            let run = project.find_run(name).map_err(|error| error.to_string());
            run.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        };
        assert_eq!(find("latest").as_deref(), Ok(IDS[2]));
        assert_eq!(find(IDS[0]).as_deref(), Ok(IDS[0]));
        assert_eq!(find("20261115-21").as_deref(), Ok(IDS[1]));
        assert!(find("20261115").unwrap_err().contains("several run ids"));
        for name in ["2025", "", "..", "a/b"] {
            assert!(find(name).unwrap_err().contains("no run id"), "{name}");
        }
    }

    #[test]
    fn run_of_another_project_is_found_but_not_resumed() {
        let base = tempfile::tempdir().unwrap();
        let own = project(base.path(), "own", &[]);
        let error = own.find_run(LATEST).unwrap_err().to_string();
        assert!(error.starts_with("no runs found in "), "{error}");
        let other = project(base.path(), "other", &IDS[..2]);
        let found = own.find_run("20261115-20").unwrap();
        assert_eq!(found, other.runs().join(IDS[0]));
        match own.find_own_run(IDS[0]) {
            Err(StoreError::OtherProject { root, .. }) => assert_eq!(root, other.root()),
            unexpected => panic!("{unexpected:?}"),
        }
        assert!(matches!(
            own.find_run("2026"),
            Err(StoreError::AmbiguousRun { .. })
        ));
        assert!(other.find_own_run(IDS[1]).is_ok());
    }

    #[test]
    fn run_stored_in_the_workspace_is_found_but_not_resumed() {
        let base = tempfile::tempdir().unwrap();
        let project = project(base.path(), "work", &[]);
        let old = project.root().join(".agent/runs").join(IDS[0]);
        fs::create_dir_all(&old).unwrap();
        assert_eq!(project.find_run(LATEST).unwrap(), old);
        assert!(matches!(
            project.find_own_run(LATEST),
            Err(StoreError::LegacyRun { .. })
        ));
        fs::rename(base.path().join("work/.agent"), base.path().join("moved")).unwrap();
        std::os::unix::fs::symlink(base.path().join("moved"), base.path().join("work/.agent")).unwrap();
        assert!(project.find_run(LATEST).is_err(), "a linked directory");
    }

    #[test]
    fn journal_is_recognized_by_its_first_line() {
        let workspace = tempfile::tempdir().unwrap();
        let path = workspace.path().join("any.name");
        let header = r#"{"seq":1,"at":"2026-11-15T20:45:01Z","type":"run_started"}"#;
        for (text, is_journal) in [
            (header, true),
            ("", false),
            (r#"{"type":"run_started"}"#, false),
            ("text", false),
        ] {
            fs::write(&path, text).unwrap();
            assert_eq!(journal_at(&path).unwrap().is_some(), is_journal, "{text}");
        }
        assert!(
            journal_at(workspace.path()).is_err(),
            "a directory without a journal"
        );
    }
}
