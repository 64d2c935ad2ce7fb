//! Resolves paths without a symbolic link that a program in a sandbox could have made. A job's rules name places in directories that
//! earlier jobs could write; a link there must not choose what the next job sees.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// No path needs more symbolic links.
const MAX_LINKS: usize = 40;

/// Resolves paths.
#[derive(Debug, Clone, Default)]
pub(super) struct Resolver {
    /// Directories that jobs can write, without symbolic links.
    writable: Vec<PathBuf>,
}

impl Resolver {
    /// Jobs can write these too. Only root's sandbox can have a writable `/`, in which nothing is protected.
    pub(super) fn add_writable(&mut self, paths: impl IntoIterator<Item = PathBuf>) {
        let paths = paths.into_iter().filter(|path| path.parent().is_some());
        self.writable.extend(paths);
    }

    /// Whether jobs can write a path.
    pub(super) fn is_writable(&self, path: &Path) -> bool {
        self.writable.iter().any(|root| path.starts_with(root))
    }

    /// The real path; `None` if it does not exist, or if a job could have made one of the links on the way.
    pub(super) fn real(&self, path: &Path) -> Option<PathBuf> {
        if !path.is_absolute() {
            return None;
        }
        let mut place = PathBuf::from("/");
        let mut rest = Vec::new();
        let mut links = 0;
        push(&mut rest, path);
        while let Some(name) = rest.pop() {
            if name == ".." {
                place.pop();
                continue;
            }
            let next = place.join(&name);
            if !next.symlink_metadata().ok()?.is_symlink() {
                place = next;
                continue;
            }
            links += 1;
            if self.is_writable(&place) || links > MAX_LINKS {
                return None;
            }
            let target = next.read_link().ok()?;
            if target.is_absolute() {
                place = PathBuf::from("/");
            }
            push(&mut rest, &target);
        }
        Some(place)
    }
}

/// Adds the names of a path so that the first is the next.
fn push(rest: &mut Vec<OsString>, path: &Path) {
    let names = path.components().rev().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    rest.extend(names);
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_of_the_user_is_followed_and_one_of_a_job_is_not() {
        let base = tempfile::tempdir().expect("a directory");
        let base = base.path().canonicalize().expect("a path");
        for name in ["secrets", "work/src", "dotfiles/cache"] {
            fs::create_dir_all(base.join(name)).expect("a directory");
        }
        for (link, target) in [
            ("work/planted", "../secrets"),
            ("work/far", "/etc"),
            ("cache", "dotfiles/cache"),
            ("dotfiles/cache/planted", "../../secrets"),
            ("loop", "loop"),
        ] {
            symlink(target, base.join(link)).expect("a link");
        }
        let mut resolver = Resolver::default();
        resolver.add_writable([base.join("work"), base.join("dotfiles/cache"), PathBuf::from("/")]);
        let real = |path: &str| resolver.real(&base.join(path));
        assert_eq!(real("cache"), Some(base.join("dotfiles/cache")));
        assert_eq!(real("work/src"), Some(base.join("work/src")));
        assert_eq!(real("work/../secrets"), Some(base.join("secrets")));
        for path in [
            "work/planted",
            "work/planted/key",
            "work/far",
            "cache/planted",
            "loop",
            "missing",
        ] {
            assert_eq!(real(path), None, "{path}");
        }
    }
}
