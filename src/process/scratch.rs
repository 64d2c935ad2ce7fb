//! Temporary directories for what children read and write: private, whatever the user's mask says.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;

/// A new directory that goes when it is dropped.
pub fn scratch(prefix: &str) -> io::Result<TempDir> {
    tempfile::Builder::new()
        .prefix(prefix)
        .permissions(Permissions::from_mode(0o700))
        .tempdir()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_directory_is_its_users_alone() {
        let directory = scratch("ralph-").unwrap();
        let mode = directory.path().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
}
