//! The PATH of agents, on which `ralph` is this program: agents call `ralph emit`, and another program of that name
//! would answer.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};

/// PATH with a directory in front that contains only this program as `ralph`. `None` if `ralph` is this program already,
/// or if the directory cannot be created.
pub(super) fn with_this_program(environment: &[(OsString, OsString)], run: &Path) -> Option<OsString> {
    let program = std::env::current_exe().ok()?;
    let (_, path) = environment.iter().find(|(name, _)| name == "PATH")?;
    with_program(&program, path, &run.join("bin"))
}

fn with_program(program: &Path, path: &OsStr, directory: &Path) -> Option<OsString> {
    let program = program.canonicalize().ok()?;
    let found = std::env::split_paths(path)
        .map(|directory| directory.join("ralph"))
        .find(|candidate| candidate.is_file());
    if found.and_then(|found| found.canonicalize().ok()).as_ref() == Some(&program) {
        return None;
    }
    create_link(&program, directory).ok()?;
    let directories = std::iter::once(directory.to_owned()).chain(std::env::split_paths(path));
    std::env::join_paths(directories.collect::<Vec<PathBuf>>()).ok()
}

fn create_link(program: &Path, directory: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let link = directory.join("ralph");
    match fs::remove_file(&link) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    symlink(program, link)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_program_of_the_same_name_is_hidden() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        for name in ["own", "other"] {
            fs::create_dir(path(name)).expect("a directory");
            fs::write(path(name).join("ralph"), name).expect("a file");
        }
        let (program, bin) = (path("own/ralph"), path("bin"));
        let own_first = std::env::join_paths([path("own"), path("other")]).expect("a PATH");
        assert_eq!(with_program(&program, &own_first, &bin), None);
        let other_first = std::env::join_paths([path("other"), path("own")]).expect("a PATH");
        // Twice, as for a resumed run.
        for _ in 0..2 {
            let changed = with_program(&program, &other_first, &bin).expect("a changed PATH");
            let first = std::env::split_paths(&changed).next().expect("a directory");
            assert_eq!(fs::read_to_string(first.join("ralph")).expect("a link"), "own");
        }
    }
}
