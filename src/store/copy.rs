//! A directory, copied: files with their permissions, symbolic links as links.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::{DIRECTORY, StoreError, at};

/// Copies what a directory holds into another one that exists, but for the runs that were made in it.
pub fn copy_tree(from: &Path, to: &Path) -> Result<(), StoreError> {
    let inside = fs::canonicalize(from).map_err(at("read", from))?;
    if fs::canonicalize(to).map_err(at("find", to))?.starts_with(inside) {
        let path = from.to_owned();
        return Err(StoreError::CopyIntoItself { path });
    }
    copy_entries(from, to, Some(DIRECTORY))
}

fn copy_entries(from: &Path, to: &Path, without: Option<&str>) -> Result<(), StoreError> {
    for entry in fs::read_dir(from).map_err(at("read", from))? {
        let entry = entry.map_err(at("read", from))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if without.is_some_and(|name| entry.file_name() == name) {
            continue;
        }
        let kind = entry.file_type().map_err(at("read", &source))?;
        let copied = if kind.is_symlink() {
            fs::read_link(&source).and_then(|leads_to| symlink(leads_to, &target))
        } else if kind.is_dir() {
            fs::create_dir(&target).map_err(at("create", &target))?;
            copy_entries(&source, &target, None)?;
            fs::metadata(&source).and_then(|found| fs::set_permissions(&target, found.permissions()))
        } else if kind.is_file() {
            fs::copy(&source, &target).map(drop)
        } else {
            // A socket or a pipe is nothing without the process behind it.
            Ok(())
        };
        copied.map_err(at("copy", &source))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn links_and_permissions_are_kept_and_runs_stay_behind() {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        fs::create_dir_all(from.join("deep/er")).unwrap();
        fs::create_dir_all(from.join(".agent/runs")).unwrap();
        fs::create_dir(&to).unwrap();
        fs::write(from.join("deep/er/run.sh"), "true").unwrap();
        fs::set_permissions(from.join("deep/er/run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("nowhere", from.join("link")).unwrap();
        copy_tree(&from, &to).unwrap();
        let copied = fs::metadata(to.join("deep/er/run.sh")).unwrap();
        assert_eq!(copied.permissions().mode() & 0o777, 0o755);
        assert_eq!(fs::read_link(to.join("link")).unwrap(), Path::new("nowhere"));
        assert!(!to.join(".agent").exists());
    }

    #[test]
    fn a_directory_is_not_copied_into_itself() {
        let place = tempfile::tempdir().unwrap();
        let inside = place.path().join("bench/workspace");
        fs::create_dir_all(&inside).unwrap();
        let refused = copy_tree(place.path(), &inside);
        assert!(
            matches!(refused, Err(StoreError::CopyIntoItself { .. })),
            "{refused:?}"
        );
    }
}
