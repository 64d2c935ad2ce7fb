//! `.agent/events.jsonl` in the project root: a link to the newest journal, for users and their tools. ralph never reads
//! it.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, mkdirat, openat, renameat, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use crate::ok_or_log;

use super::{DIRECTORY, Project, private_files};

const LINK: &str = "events.jsonl";

/// Links the journal. The link is made only in a directory of the user's own that is no symbolic link, and it replaces
/// only an earlier link.
pub(super) fn link_journal(project: &Project, journal: &Path) -> io::Result<()> {
    let path = project.root().join(DIRECTORY);
    match mkdirat(CWD, &path, Mode::from_raw_mode(0o700)) {
        Err(error) if error != Errno::EXIST => return Err(error.into()),
        _ => {}
    }
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = openat(CWD, &path, flags, Mode::empty())?;
    if !private_files::is_owned_by_user(rustix::fs::fstat(&directory)?.st_uid) {
        return Err(Errno::PERM.into());
    }
    // Keeps the link out of `git status`, and out of an agent's `git add -A`.
    let ignore = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(&directory, ".gitignore", ignore, Mode::from_raw_mode(0o600)) {
        Ok(file) => File::from(file).write_all(b"*\n")?,
        Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    match statat(&directory, LINK, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink => {
            return Err(Errno::EXIST.into());
        }
        Ok(_) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    let temporary = format!(".{LINK}.{}", std::process::id());
    match unlinkat(&directory, &temporary, AtFlags::empty()) {
        Err(error) if error != Errno::NOENT => return Err(error.into()),
        _ => {}
    }
    symlinkat(journal, &directory, &temporary)?;
    renameat(&directory, &temporary, &directory, LINK)?;
    Ok(())
}

/// Removes the link if its journal no longer exists.
pub(super) fn remove_dangling_link(project: &Project) {
    let link = project.root().join(DIRECTORY).join(LINK);
    let target = std::fs::read_link(&link);
    if target.is_ok_and(|target| target.starts_with(project.directory()) && !target.exists()) {
        // An error is harmless, because the next run replaces the link.
        ok_or_log!(std::fs::remove_file(&link), "cannot remove a dangling link");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::StateDirectory;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn project(base: &Path) -> Project {
        fs::create_dir(base.join("work")).unwrap();
        StateDirectory::at(base.join("state")).project(&base.join("work"))
    }

    #[test]
    fn newest_journal_is_linked_in_an_ignored_directory() {
        let base = tempfile::tempdir().unwrap();
        let project = project(base.path());
        let agent = project.root().join(DIRECTORY);
        for journal in ["/first", "/second"] {
            link_journal(&project, Path::new(journal)).unwrap();
            assert_eq!(fs::read_link(agent.join(LINK)).unwrap(), Path::new(journal));
        }
        assert_eq!(fs::read_to_string(agent.join(".gitignore")).unwrap(), "*\n");
        assert_eq!(fs::read_dir(&agent).unwrap().count(), 2);
    }

    #[test]
    fn linked_directories_and_existing_files_are_left_alone() {
        let base = tempfile::tempdir().unwrap();
        let project = project(base.path());
        let (agent, elsewhere) = (project.root().join(DIRECTORY), base.path().join("elsewhere"));
        fs::create_dir(&elsewhere).unwrap();
        symlink(&elsewhere, &agent).unwrap();
        assert!(link_journal(&project, Path::new("/journal")).is_err());
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
        fs::remove_file(&agent).unwrap();
        fs::create_dir(&agent).unwrap();
        fs::write(agent.join(LINK), "the user's own").unwrap();
        assert!(link_journal(&project, Path::new("/journal")).is_err());
        assert_eq!(fs::read_to_string(agent.join(LINK)).unwrap(), "the user's own");
    }
}
