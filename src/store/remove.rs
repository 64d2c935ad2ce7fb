//! Removing old runs. A run directory is renamed while the project is locked, so that a partly removed run cannot be
//! resumed, and then deleted. Symbolic links are not followed.

use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::index::{is_running, time_from_id};
use super::view::remove_dangling_link;
use super::{Lock, Project, StoreError, io_error, private_files};

/// Prefix of renamed run directories. If `clean` is killed, the next one deletes them.
const REMOVED_PREFIX: &str = ".gone-";

/// The result of `remove_runs`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RunRemoval {
    pub removed: Vec<String>,
    /// Runs that were not removed because they are running.
    pub running: Vec<String>,
}

/// Removes these runs of a project, except for one that is running.
pub fn remove_runs(project: &Project, ids: &[String], now: Timestamp) -> Result<RunRemoval, StoreError> {
    let runs = project.runs();
    private_files::check_directory(&runs)?;
    let mut removal = RunRemoval::default();
    let mut renamed = find_renamed(&runs);
    // While the lock is held, no run can start or be resumed. If another process holds it, only its run is skipped.
    let lock = match Lock::acquire(&project.lock_path(), now) {
        Ok(lock) => Some(lock),
        Err(StoreError::Locked { .. }) => None,
        Err(error) => return Err(error),
    };
    for id in ids.iter().filter(|id| time_from_id(id).is_some()) {
        let (from, to) = (runs.join(id), runs.join(format!("{REMOVED_PREFIX}{id}")));
        if lock.is_none() && is_running(&from) {
            removal.running.push(id.clone());
            continue;
        }
        match fs::rename(&from, &to) {
            Ok(()) => {
                renamed.push(to);
                removal.removed.push(id.clone());
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(io_error("remove", &from)(source)),
        }
    }
    drop(lock);
    for path in renamed {
        fs::remove_dir_all(&path).map_err(io_error("remove", &path))?;
    }
    remove_dangling_link(project);
    Ok(removal)
}

/// Directories that an earlier, killed `clean` renamed but did not delete.
fn find_renamed(runs: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(runs).into_iter().flatten().flatten();
    let is_renamed = |entry: &DirEntry| {
        entry.file_name().to_string_lossy().starts_with(REMOVED_PREFIX)
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
    };
    entries.filter(is_renamed).map(|entry| entry.path()).collect()
}

/// The total size of the files in a directory, in bytes. Symbolic links are not followed.
pub fn directory_size(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(kind) if kind.is_dir() => directory_size(&entry.path()),
            Ok(kind) => kind.len(),
            Err(_) => 0,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Run, StateDirectory};
    use std::os::unix::fs::symlink;

    const OLD: &str = "20200101-000000-aaaa";
    const OLDER: &str = "20190101-000000-bbbb";

    fn project_with_two_runs(base: &Path) -> Project {
        let project = StateDirectory::at(base.join("state")).project(base);
        project.create().unwrap();
        for id in [OLD, OLDER] {
            let run = project.runs().join(id);
            fs::create_dir_all(run.join("iterations/0001")).unwrap();
            fs::write(run.join("events.jsonl"), "12345").unwrap();
            fs::write(run.join("iterations/0001/stdout.raw"), "123").unwrap();
        }
        project
    }

    fn ids(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn runs_are_removed_and_link_targets_are_not() {
        let base = tempfile::tempdir().unwrap();
        let project = project_with_two_runs(base.path());
        let target = base.path().join("target");
        fs::create_dir(&target).unwrap();
        fs::write(target.join("file"), "").unwrap();
        let view = project.root().join(".agent/events.jsonl");
        drop(
            Run::reopen(&project, OLD, Timestamp::UNIX_EPOCH)
                .unwrap()
                .journal(),
        );
        assert!(view.exists());
        symlink(&target, project.runs().join(OLD).join("link")).unwrap();
        fs::create_dir(project.runs().join(".gone-20180101-000000-cccc")).unwrap();
        assert_eq!(directory_size(&project.runs().join(OLDER)), 8);
        let names = ids(&[OLD, "../target", "notes"]);
        let removal = remove_runs(&project, &names, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(removal.removed, [OLD]);
        let remaining: Vec<_> = fs::read_dir(project.runs())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(remaining, [OLDER]);
        assert!(target.join("file").exists());
        assert!(fs::symlink_metadata(view).is_err());
    }

    #[test]
    fn running_run_is_not_removed() {
        let base = tempfile::tempdir().unwrap();
        let project = project_with_two_runs(base.path());
        let run = Run::reopen(&project, OLD, Timestamp::UNIX_EPOCH).unwrap();
        let removal = remove_runs(&project, &ids(&[OLD, OLDER]), Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!((removal.removed, removal.running), (ids(&[OLDER]), ids(&[OLD])));
        assert!(run.directory().join("events.jsonl").exists());
    }

    #[test]
    fn runs_directory_that_is_a_symlink_is_refused() {
        let base = tempfile::tempdir().unwrap();
        let project = project_with_two_runs(base.path());
        let moved = base.path().join("moved");
        fs::rename(project.runs(), &moved).unwrap();
        symlink(&moved, project.runs()).unwrap();
        let refused = remove_runs(&project, &ids(&[OLD]), Timestamp::UNIX_EPOCH);
        assert!(matches!(refused, Err(StoreError::Symlink { .. })), "{refused:?}");
        assert!(moved.join(OLD).exists());
    }
}
