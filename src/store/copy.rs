//! Copying a directory, with permissions; symbolic links are copied as links.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::{DIRECTORY, StoreError, io_error};

/// Copies the contents of a directory, except for its runs, into another existing directory.
pub fn copy_tree(from: &Path, to: &Path) -> Result<(), StoreError> {
    let source = fs::canonicalize(from).map_err(io_error("read", from))?;
    if fs::canonicalize(to)
        .map_err(io_error("find", to))?
        .starts_with(source)
    {
        let path = from.to_owned();
        return Err(StoreError::CopyIntoItself { path });
    }
    copy_entries(from, to, Some(DIRECTORY))
}

fn copy_entries(from: &Path, to: &Path, excluded: Option<&str>) -> Result<(), StoreError> {
    for entry in fs::read_dir(from).map_err(io_error("read", from))? {
        let entry = entry.map_err(io_error("read", from))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if excluded.is_some_and(|name| entry.file_name() == name) {
            continue;
        }
        let kind = entry.file_type().map_err(io_error("read", &source))?;
        let copied = if kind.is_symlink() {
            fs::read_link(&source).and_then(|link_target| symlink(link_target, &target))
        } else if kind.is_dir() {
            fs::create_dir(&target).map_err(io_error("create", &target))?;
            copy_entries(&source, &target, None)?;
            fs::metadata(&source).and_then(|metadata| fs::set_permissions(&target, metadata.permissions()))
        } else if kind.is_file() {
            fs::copy(&source, &target).map(drop)
        } else {
            // Sockets and pipes are useless without the process that created them.
            Ok(())
        };
        copied.map_err(io_error("copy", &source))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn links_and_permissions_are_copied_and_runs_are_not() {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (directory.path().join("from"), directory.path().join("to"));
        fs::create_dir_all(from.join("nested/inner")).unwrap();
        fs::create_dir_all(from.join(".agent/runs")).unwrap();
        fs::create_dir(&to).unwrap();
        fs::write(from.join("nested/inner/run.sh"), "true").unwrap();
        fs::set_permissions(
            from.join("nested/inner/run.sh"),
            fs::Permissions::from_mode(0o755),
        )
        .unwrap();
        symlink("missing", from.join("link")).unwrap();
        copy_tree(&from, &to).unwrap();
        let copied = fs::metadata(to.join("nested/inner/run.sh")).unwrap();
        assert_eq!(copied.permissions().mode() & 0o777, 0o755);
        assert_eq!(fs::read_link(to.join("link")).unwrap(), Path::new("missing"));
        assert!(!to.join(".agent").exists());
    }

    #[test]
    fn directory_is_not_copied_into_itself() {
        let directory = tempfile::tempdir().unwrap();
        let inside = directory.path().join("bench/workspace");
        fs::create_dir_all(&inside).unwrap();
        let refused = copy_tree(directory.path(), &inside);
        assert!(
            matches!(refused, Err(StoreError::CopyIntoItself { .. })),
            "{refused:?}"
        );
    }
}
