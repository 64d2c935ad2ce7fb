//! Removing old runs, and nothing else: a run is first moved aside under the workspace's lock, so that nobody can go on
//! with half of one, and then taken apart. No symbolic link is followed.

use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::index::{run_at_work, time_of};
use super::{DIRECTORY, Lock, StoreError, at};

/// What was moved aside and is about to go. What a killed `clean` leaves is taken away by the next.
const ASIDE: &str = ".gone-";

/// What was done about a list of runs.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Discarded {
    pub removed: Vec<String>,
    /// Somebody has begun to work on these.
    pub spared: Vec<String>,
}

/// Removes these runs of a workspace. One that is at work is left alone.
pub fn discard(workspace: &Path, ids: &[String], now: Timestamp) -> Result<Discarded, StoreError> {
    let agent = workspace.join(DIRECTORY);
    let runs = agent.join("runs");
    refuse_links(&[&agent, &runs])?;
    let mut discarded = Discarded::default();
    let mut aside = left_aside(&runs);
    // While we hold it, no run can begin or go on. Somebody else may hold it: then only what that one drives is spared.
    let lock = match Lock::take(&agent.join("lock"), now) {
        Ok(lock) => Some(lock),
        Err(StoreError::Locked { .. }) => None,
        Err(error) => return Err(error),
    };
    for id in ids.iter().filter(|id| time_of(id).is_some()) {
        if lock.is_none() && run_at_work(&agent).as_ref() == Some(id) {
            discarded.spared.push(id.clone());
            continue;
        }
        let (from, to) = (runs.join(id), runs.join(format!("{ASIDE}{id}")));
        match fs::rename(&from, &to) {
            Ok(()) => {
                aside.push(to);
                discarded.removed.push(id.clone());
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(at("remove", &from)(source)),
        }
    }
    drop(lock);
    for path in aside {
        fs::remove_dir_all(&path).map_err(at("remove", &path))?;
    }
    forget_link(&agent);
    Ok(discarded)
}

/// A directory that leads elsewhere could lead anywhere.
fn refuse_links(directories: &[&Path]) -> Result<(), StoreError> {
    for path in directories {
        let kind = fs::symlink_metadata(path).map_err(at("read", path))?;
        if kind.is_symlink() {
            return Err(StoreError::LeadsElsewhere {
                path: path.to_path_buf(),
            });
        }
    }
    Ok(())
}

fn left_aside(runs: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(runs).into_iter().flatten().flatten();
    let is_left = |entry: &DirEntry| {
        entry.file_name().to_string_lossy().starts_with(ASIDE)
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
    };
    entries.filter(is_left).map(|entry| entry.path()).collect()
}

/// The link to the newest journal does not outlive it.
fn forget_link(agent: &Path) {
    let link = agent.join("events.jsonl");
    let is_link = fs::symlink_metadata(&link).is_ok_and(|kind| kind.is_symlink());
    if is_link && !link.exists() {
        // It leads nowhere; if it stays, the next run replaces it.
        let _ = fs::remove_file(&link);
    }
}

/// How many bytes the files of a run hold. Links count as themselves.
pub fn size_of(run: &Path) -> u64 {
    let entries = fs::read_dir(run).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(kind) if kind.is_dir() => size_of(&entry.path()),
            Ok(kind) => kind.len(),
            Err(_) => 0,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::super::Run;
    use super::*;
    use std::os::unix::fs::symlink;

    const OLD: &str = "20200101-000000-aaaa";
    const OLDER: &str = "20190101-000000-bbbb";

    fn place() -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        for id in [OLD, OLDER] {
            let run = place.path().join(".agent/runs").join(id);
            fs::create_dir_all(run.join("iterations/0001")).unwrap();
            fs::write(run.join("events.jsonl"), "12345").unwrap();
            fs::write(run.join("iterations/0001/stdout.raw"), "123").unwrap();
        }
        place
    }

    fn ids(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn runs_go_whole_and_what_they_link_to_stays() {
        let place = place();
        let runs = place.path().join(".agent/runs");
        let treasure = place.path().join("treasure");
        fs::create_dir(&treasure).unwrap();
        fs::write(treasure.join("gold"), "").unwrap();
        symlink(&treasure, runs.join(OLD).join("link")).unwrap();
        symlink(
            "runs/20200101-000000-aaaa/events.jsonl",
            place.path().join(".agent/events.jsonl"),
        )
        .unwrap();
        fs::create_dir(runs.join(".gone-20180101-000000-cccc")).unwrap();
        assert_eq!(size_of(&runs.join(OLDER)), 8);
        let done = discard(
            place.path(),
            &ids(&[OLD, "../treasure", "notes"]),
            Timestamp::UNIX_EPOCH,
        )
        .unwrap();
        assert_eq!(done.removed, [OLD]);
        let left: Vec<_> = fs::read_dir(&runs)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(left, [OLDER]);
        assert!(treasure.join("gold").exists());
        assert!(fs::symlink_metadata(place.path().join(".agent/events.jsonl")).is_err());
    }

    #[test]
    fn a_run_at_work_is_spared_and_others_go() {
        let place = place();
        let run = Run::reopen(place.path(), OLD, Timestamp::UNIX_EPOCH).unwrap();
        run.journal().unwrap();
        let done = discard(place.path(), &ids(&[OLD, OLDER]), Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!((done.removed, done.spared), (ids(&[OLDER]), ids(&[OLD])));
        assert!(run.directory().join("events.jsonl").exists());
    }

    #[test]
    fn a_shelf_that_leads_elsewhere_is_refused() {
        let place = place();
        let elsewhere = tempfile::tempdir().unwrap();
        let (runs, moved) = (place.path().join(".agent/runs"), elsewhere.path().join("runs"));
        fs::rename(&runs, &moved).unwrap();
        symlink(&moved, &runs).unwrap();
        let refused = discard(place.path(), &ids(&[OLD]), Timestamp::UNIX_EPOCH);
        assert!(
            matches!(refused, Err(StoreError::LeadsElsewhere { .. })),
            "{refused:?}"
        );
        assert!(moved.join(OLD).exists());
    }
}
