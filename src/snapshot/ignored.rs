//! Decides which files git ignores, while a directory tree is walked. Unlike in git, the rules of a `.gitignore` hold
//! whether or not the project is in a repository.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::files::{self, FileStat, GitDirectory, ReadRule};

use super::git_files::GitFiles;

/// The rules of one file with patterns, and those of the files that it takes precedence over.
#[derive(Debug)]
pub(super) struct IgnoreLevel {
    patterns: Arc<Gitignore>,
    /// Paths are matched relative to the directory of the file: without this many leading bytes …
    strip: usize,
    /// … and after this prefix, for a directory above the root.
    prepend: Vec<u8>,
    next: Option<Arc<Self>>,
}

impl IgnoreLevel {
    /// Whether a path is ignored. Its parents are not.
    fn ignores(self: &Arc<Self>, path: &[u8], is_directory: bool) -> bool {
        let mut level = Some(self);
        while let Some(current) = level {
            let below = [&current.prepend, &path[current.strip..]].concat();
            match current.patterns.matched(OsStr::from_bytes(&below), is_directory) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => level = current.next.as_ref(),
            }
        }
        false
    }
}

/// The levels that apply in a directory.
pub(super) type Levels = Option<Arc<IgnoreLevel>>;

pub(super) fn is_ignored(levels: &Levels, path: &[u8], is_directory: bool) -> bool {
    levels
        .as_ref()
        .is_some_and(|level| level.ignores(path, is_directory))
}

/// The directory that the patterns of a file are relative to.
struct Anchor<'a> {
    directory: &'a Path,
    strip: usize,
    prepend: Vec<u8>,
}

impl<'a> Anchor<'a> {
    /// The root or a directory above it, with the path from there to the root.
    fn above(directory: &'a Path, prepend: Vec<u8>) -> Self {
        Self {
            directory,
            strip: 0,
            prepend,
        }
    }

    fn below(directory: &'a Path, strip: usize) -> Self {
        Self {
            directory,
            strip,
            prepend: Vec::new(),
        }
    }
}

/// Parsed files with ignore rules.
#[derive(Debug, Default)]
pub(super) struct IgnoreFiles {
    parsed: HashMap<PathBuf, (FileStat, Option<Arc<Gitignore>>)>,
}

impl IgnoreFiles {
    /// The levels of the files that apply to the whole project.
    pub(super) fn global(&mut self, root: &Path, git: &GitFiles) -> Levels {
        let top = git.top.as_deref().unwrap_or(root);
        let prefix = |directory: &Path| {
            let below = root.strip_prefix(directory).unwrap_or(Path::new(""));
            match below.as_os_str().is_empty() {
                true => Vec::new(),
                false => [below.as_os_str().as_bytes(), b"/"].concat(),
            }
        };
        let mut levels = None;
        for path in git.exclude_files.iter().rev() {
            levels = self.push(levels, path, Anchor::above(top, prefix(top)));
        }
        let above = root.ancestors().skip(1).take_while(|path| path.starts_with(top));
        let above: Vec<&Path> = above.collect();
        for directory in above.into_iter().rev() {
            levels = self.push(
                levels,
                &directory.join(".gitignore"),
                Anchor::above(directory, prefix(directory)),
            );
        }
        levels
    }

    /// The levels of a directory: those of its parent, and its own files.
    pub(super) fn enter(&mut self, parent: &Levels, directory: &Path, name: &[u8], own: RuleFiles) -> Levels {
        let strip = match name.is_empty() {
            true => 0,
            false => name.len() + 1,
        };
        let mut levels = parent.clone();
        if own.nested_repository
            && let Some(git) = GitDirectory::at(&directory.join(".git"))
        {
            levels = self.push(levels, &git.exclude_file(), Anchor::below(directory, strip));
        }
        match own.gitignore {
            true => self.push(
                levels,
                &directory.join(".gitignore"),
                Anchor::below(directory, strip),
            ),
            false => levels,
        }
    }

    fn push(&mut self, next: Levels, file: &Path, anchor: Anchor<'_>) -> Levels {
        let Anchor {
            directory,
            strip,
            prepend,
        } = anchor;
        match self.parse(file, directory) {
            None => next,
            Some(patterns) => Some(Arc::new(IgnoreLevel {
                patterns,
                strip,
                prepend,
                next,
            })),
        }
    }

    /// Patterns that cannot be parsed match nothing, as in git.
    fn parse(&mut self, file: &Path, directory: &Path) -> Option<Arc<Gitignore>> {
        let stat = FileStat::of(&file.symlink_metadata().ok()?);
        if let Some((known, patterns)) = self.parsed.get(file)
            && *known == stat
        {
            return patterns.clone();
        }
        let text = files::read(file, ReadRule::CONFIG).unwrap_or_default();
        let mut builder = GitignoreBuilder::new(directory);
        for line in String::from_utf8_lossy(&text).lines() {
            let _ = builder.add_line(None, line);
        }
        let patterns = builder.build().ok().filter(|patterns| !patterns.is_empty());
        let patterns = patterns.map(Arc::new);
        self.parsed.insert(file.to_owned(), (stat, patterns.clone()));
        patterns
    }
}

/// The files with rules that a directory contains.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RuleFiles {
    pub(super) gitignore: bool,
    pub(super) nested_repository: bool,
}
