//! Finding what earlier runs left: a run by its name, and the run that a raw capture belongs to.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::event::RunHeader;

use super::{DIRECTORY, StoreError, at};

/// The name that always stands for the newest run.
pub const LATEST: &str = "latest";

/// No header of a run is longer; what is longer is no journal.
const LONGEST_HEADER: u64 = 1 << 20;

/// The directory of the run that is called so: its id, a beginning of it that no other has, or `latest`.
pub fn find_run(workspace: &Path, name: &str) -> Result<PathBuf, StoreError> {
    let runs = workspace.join(DIRECTORY).join("runs");
    let mut ids = ids_in(&runs);
    let Some(newest) = ids.last() else {
        return Err(StoreError::NoRuns { runs });
    };
    if name == LATEST {
        return Ok(runs.join(newest));
    }
    if ids.iter().any(|id| id == name) {
        return Ok(runs.join(name));
    }
    let newest = newest.clone();
    ids.retain(|id| !name.is_empty() && id.starts_with(name));
    match ids.as_slice() {
        [] => Err(StoreError::UnknownRun {
            name: name.to_owned(),
            newest,
        }),
        [only] => Ok(runs.join(only)),
        _ => Err(StoreError::AmbiguousRun {
            name: name.to_owned(),
            candidates: ids,
        }),
    }
}

/// The ids of all runs, the oldest first: they begin with the time.
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

/// The journal that a path leads to: a run's directory, or a file that begins as a journal does.
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
    // A pipe gives its first line only once, and holds no journal.
    if !path.is_file() {
        return Ok(None);
    }
    let mut first = Vec::new();
    let file = File::open(path).map_err(at("read", path))?;
    BufReader::new(file.take(LONGEST_HEADER))
        .read_until(b'\n', &mut first)
        .map_err(at("read", path))?;
    let first: Value = serde_json::from_slice(&first).unwrap_or_default();
    let is_journal = first["seq"].is_u64() && first["type"] == "run_started";
    Ok(is_journal.then(|| path.to_owned()))
}

/// What a run's own files say about the output that it kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureContext {
    /// The name of the format that the run read it by.
    pub transcript: String,
    pub prompt: String,
}

/// The context of `…/iterations/NNNN/stdout.raw`; of any other file nothing is known.
pub fn context_of_capture(path: &Path) -> Option<CaptureContext> {
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

    fn workspace(ids: &[&str]) -> tempfile::TempDir {
        let workspace = tempfile::tempdir().unwrap();
        for id in ids {
            fs::create_dir_all(workspace.path().join(".agent/runs").join(id)).unwrap();
        }
        workspace
    }

    #[test]
    fn a_run_is_found_by_id_by_a_unique_beginning_and_as_the_latest() {
        let place = workspace(&["20261115-204501-aaaa", "20261115-214501-bbbb", "20261116-aaaa"]);
        let found = |name| {
            let run = find_run(place.path(), name).map_err(|error| error.to_string());
            run.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        };
        assert_eq!(found("latest").as_deref(), Ok("20261116-aaaa"));
        assert_eq!(
            found("20261115-204501-aaaa").as_deref(),
            Ok("20261115-204501-aaaa")
        );
        assert_eq!(found("20261115-21").as_deref(), Ok("20261115-214501-bbbb"));
        assert!(found("20261115").unwrap_err().contains("more than one run"));
        assert!(found("2025").unwrap_err().contains("no run"));
        assert!(found("").unwrap_err().contains("no run"));
    }

    #[test]
    fn a_workspace_without_runs_says_so() {
        let place = workspace(&[]);
        let error = find_run(place.path(), "latest").unwrap_err().to_string();
        assert!(error.starts_with("there is no run in "), "{error}");
    }

    #[test]
    fn only_what_begins_as_a_journal_is_one() {
        let place = workspace(&[]);
        let path = place.path().join("any.name");
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
        assert!(journal_at(place.path()).is_err(), "a directory that is no run");
    }
}
