//! A git repository in a sandbox: commits are possible, but neither its configuration nor its hooks can be changed, because the
//! user's next git command would run them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::files::GitDirectory;
use crate::process::{Access, PathRule};

use super::resolver::Resolver;

/// Files that decide what git runs, in the directory of a repository, a worktree or a submodule.
const CONTROL_FILES: &[&str] = &["config", "config.worktree", "hooks", "commondir", "gitdir"];
/// The parts of a shared directory that a commit in a linked worktree changes.
const SHARED: &[&str] = &["objects", "refs", "logs", "lfs"];
/// Submodules can contain submodules.
const MODULE_DEPTH: usize = 4;

/// The rules for the repository around a directory, if there is one.
pub(super) fn rules(directory: &Path, resolver: &Resolver) -> Vec<PathRule> {
    let Some((top, git)) = GitDirectory::around(directory) else {
        return Vec::new();
    };
    let Some((own, common)) = directories(&top, &git, resolver) else {
        return Vec::new();
    };
    let shared = SHARED.iter().map(|name| common.join(name));
    let mut resolver = resolver.clone();
    resolver.add_writable([own.clone()].into_iter().chain(shared));
    let mut rules = Rules {
        found: Vec::new(),
        resolver,
    };
    // A mount of its own cannot be renamed or replaced.
    rules.add(&own, Access::Write);
    if own == common {
        prepare(&own);
    } else {
        create_directory(&common.join("logs"));
        for name in SHARED {
            rules.add(&common.join(name), Access::Write);
        }
    }
    rules.protect(&own);
    rules.protect_below(&own.join("worktrees"), 1);
    rules.protect_below(&own.join("modules"), MODULE_DEPTH);
    let link = top.join(".git");
    if link.is_file() {
        rules.add(&link, Access::Read);
    }
    rules.found
}

/// The directory of a worktree and the one that all worktrees share. A `.git` file and a `commondir` can be written by a job, so what
/// they name counts only if it names the worktree in turn, in a file that no job can write.
fn directories(top: &Path, git: &GitDirectory, resolver: &Resolver) -> Option<(PathBuf, PathBuf)> {
    let link = top.join(".git");
    let own = resolver.real(git.own())?;
    if link.is_dir() {
        return Some((own.clone(), own));
    }
    let common = resolver.real(git.common())?;
    if resolver.is_writable(&own) {
        let is_inside = resolver.is_writable(&common);
        return Some((own.clone(), if is_inside { common } else { own }));
    }
    let text = |name: &str| fs::read_to_string(own.join(name)).unwrap_or_default();
    let names_this = |path: &str, wanted: &Path| {
        let named = own.join(path.trim()).canonicalize();
        named.is_ok_and(|named| wanted.canonicalize().is_ok_and(|wanted| named == wanted))
    };
    let worktrees = own.parent().filter(|parent| parent.ends_with("worktrees"));
    if worktrees.and_then(Path::parent) == Some(&*common) && names_this(&text("gitdir"), &link) {
        return Some((own, common));
    }
    let config = text("config");
    let mut settings = config.lines().filter_map(|line| line.split_once('='));
    let is_module = settings.any(|(key, value)| key.trim() == "worktree" && names_this(value, top));
    (is_module && own == common).then_some((own, common))
}

struct Rules {
    found: Vec<PathRule>,
    resolver: Resolver,
}

impl Rules {
    /// A path that exists, and that no job has linked to another place.
    fn add(&mut self, path: &Path, access: Access) {
        if let Some(path) = self.resolver.real(path) {
            self.found.push(PathRule { path, access });
        }
    }

    fn protect(&mut self, directory: &Path) {
        for name in CONTROL_FILES {
            self.add(&directory.join(name), Access::Read);
        }
    }

    fn protect_below(&mut self, directory: &Path, depth: usize) {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            let path = entry.path();
            if path.join("HEAD").is_file() {
                self.protect(&path);
            }
            if depth > 1 && entry.file_name() != "objects" {
                self.protect_below(&path, depth - 1);
            }
        }
    }
}

/// Creates what has to exist so that it can be protected. Git treats it like missing files.
fn prepare(own: &Path) {
    create_directory(&own.join("hooks"));
    let config = fs::read_to_string(own.join("config")).unwrap_or_default();
    let of_worktrees = own.join("config.worktree");
    if config.to_lowercase().contains("worktreeconfig") && !of_worktrees.exists() {
        let _ = fs::File::create_new(of_worktrees);
    }
}

/// If the directory cannot be created, it is not writable for the agent either.
fn create_directory(path: &Path) {
    let _ = fs::create_dir(path);
}

/// The file with which an agent could move the configuration of a repository elsewhere. It cannot be protected before it exists.
pub(super) fn planted_files(directory: &Path) -> Vec<PathBuf> {
    let Some(top) = directory.ancestors().find(|top| top.join(".git").is_dir()) else {
        return Vec::new();
    };
    let planted = top.join(".git/commondir");
    match planted.symlink_metadata() {
        Ok(_) => vec![planted],
        Err(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(rules: &[PathRule], path: &Path) -> Option<Access> {
        let path = path.canonicalize().expect("a path");
        let found = rules.iter().rev().find(|rule| rule.path == path);
        found.map(|rule| rule.access.clone())
    }

    #[test]
    fn a_repository_is_writable_except_its_configuration_and_hooks() {
        let base = tempfile::tempdir().expect("a directory");
        let git = base.path().join(".git");
        fs::create_dir_all(git.join("modules/lib/hooks")).expect("a directory");
        fs::write(git.join("config"), "[extensions]\n\tworktreeConfig = true\n").expect("a file");
        fs::write(git.join("modules/lib/HEAD"), "ref: refs/heads/main\n").expect("a file");
        let rules = rules(base.path(), &Resolver::default());
        assert_eq!(access(&rules, &git), Some(Access::Write));
        for name in ["config", "config.worktree", "hooks", "modules/lib/hooks"] {
            assert_eq!(access(&rules, &git.join(name)), Some(Access::Read), "{name}");
        }
    }

    #[test]
    fn a_linked_worktree_writes_only_the_shared_objects_and_references() {
        let base = tempfile::tempdir().expect("a directory");
        let (common, work) = (base.path().join("main/.git"), base.path().join("task"));
        let own = common.join("worktrees/task");
        for directory in [&own, &common.join("objects"), &common.join("refs"), &work] {
            fs::create_dir_all(directory).expect("a directory");
        }
        fs::write(own.join("commondir"), "../..\n").expect("a file");
        let back = format!("{}\n", work.join(".git").display());
        fs::write(own.join("gitdir"), back).expect("a file");
        fs::write(work.join(".git"), format!("gitdir: {}\n", own.display())).expect("a file");
        let rules = rules(&work, &Resolver::default());
        assert_eq!(access(&rules, &common), None);
        for (path, expected) in [
            (own.clone(), Access::Write),
            (common.join("objects"), Access::Write),
            (common.join("logs"), Access::Write),
            (own.join("commondir"), Access::Read),
            (work.join(".git"), Access::Read),
        ] {
            assert_eq!(access(&rules, &path), Some(expected), "{}", path.display());
        }
    }

    #[test]
    fn what_a_job_has_planted_opens_no_other_directory() {
        use std::os::unix::fs::symlink;

        let base = tempfile::tempdir().expect("a directory");
        let base = base.path().canonicalize().expect("a path");
        let (work, other) = (base.join("work"), base.join("other/.git"));
        for directory in [
            &work.join("sub"),
            &other.join("worktrees/x/objects"),
            &base.join("keys"),
        ] {
            fs::create_dir_all(directory).expect("a directory");
        }
        fs::write(base.join("keys/id"), "").expect("a file");
        let mut resolver = Resolver::default();
        resolver.add_writable([work.clone()]);
        let planted = |own: &Path| {
            fs::write(work.join(".git"), format!("gitdir: {}\n", own.display())).expect("a file");
            rules(&work, &resolver)
        };
        assert_eq!(planted(&base.join("keys")), []);
        assert_eq!(planted(&other), []);
        assert_eq!(planted(&other.join("worktrees/x")), []);
        // A directory of the job's own, which names a foreign one.
        fs::write(work.join("sub/commondir"), format!("{}\n", other.display())).expect("a file");
        let found = planted(&work.join("sub"));
        assert!(found.iter().all(|rule| rule.path.starts_with(&work)), "{found:?}");
        fs::remove_file(work.join(".git")).expect("a file");
        symlink(&other, work.join(".git")).expect("a link");
        assert_eq!(rules(&work, &resolver), []);
        fs::remove_file(work.join(".git")).expect("a link");
        fs::create_dir_all(work.join(".git/modules/x")).expect("a directory");
        fs::write(work.join(".git/modules/x/HEAD"), "x").expect("a file");
        for link in ["config.worktree", "modules/x/config"] {
            symlink(base.join("keys/id"), work.join(".git").join(link)).expect("a link");
        }
        let found = rules(&work, &resolver);
        assert!(found.iter().all(|rule| rule.path.starts_with(&work)), "{found:?}");
    }

    #[test]
    fn a_planted_common_directory_is_found() {
        let base = tempfile::tempdir().expect("a directory");
        fs::create_dir(base.path().join(".git")).expect("a directory");
        assert!(planted_files(base.path()).is_empty());
        fs::write(base.path().join(".git/commondir"), "../evil").expect("a file");
        assert_eq!(planted_files(base.path()).len(), 1);
    }
}
