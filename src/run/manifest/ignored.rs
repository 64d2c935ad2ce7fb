//! Which files a manifest leaves out: those that the ignore rules of the repository matched when the run started.
//!
//! The rules are read once. A `.gitignore` that appears or changes later has no effect, because an agent could hide its
//! changes with it. Files that git tracks are never left out.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::files::{self, ReadRule};
use crate::ok_or_log;

/// Caches that test runners and linters create and exclude from git themselves, in any directory.
const TOOL_CACHES: [&[u8]; 3] = [b".pytest_cache", b".mypy_cache", b".ruff_cache"];
/// The same limit as for a manifest's control files.
const MAX_RULE_FILES: usize = 10_000;

/// The rules as they were at the start of the run.
#[derive(Debug, Default)]
pub(in crate::run) struct IgnoreRules {
    /// ralph's own directory.
    own: Vec<u8>,
    /// From the deepest directory to the top level, then the files for the whole repository; the first match decides.
    levels: Vec<(Vec<u8>, Gitignore)>,
    /// Tracked files below ignored directories, and ignored files that are tracked.
    tracked: BTreeSet<Vec<u8>>,
}

impl IgnoreRules {
    /// Leaves out only ralph's own directory.
    pub(in crate::run) fn only(own: &[u8]) -> Self {
        Self {
            own: own.to_vec(),
            ..Self::default()
        }
    }

    /// Reads the rules of a repository. `tracked` are the paths in its index. All paths are relative to `top`.
    pub(in crate::run) fn read(top: &Path, own: &[u8], exclude_files: &[PathBuf], tracked: &[&[u8]]) -> Self {
        let mut rules = Self::only(own);
        for path in exclude_files {
            rules.levels.extend(read_level(top, b"", path));
        }
        let mut directories = vec![(Vec::new(), top.to_owned())];
        let mut count = 0;
        while let Some((prefix, directory)) = directories.pop() {
            let level = read_level(&directory, &prefix, &directory.join(".gitignore"));
            rules.levels.splice(0..0, level);
            count += 1;
            let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
            for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
                let name = super::joined(&prefix, &entry.file_name());
                if entry.file_name() != ".git" && !rules.ignores(&name, true) {
                    directories.push((name, entry.path()));
                }
            }
            if count > MAX_RULE_FILES {
                break;
            }
        }
        // Deeper rules precede the rules of their parent directories.
        rules
            .levels
            .sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        let is_hidden = |name: &&[u8]| {
            let parents = name
                .iter()
                .enumerate()
                .filter(|(_, byte)| **byte == b'/')
                .map(|(at, _)| &name[..at]);
            parents.into_iter().any(|parent| rules.ignores(parent, true)) || rules.ignores(name, false)
        };
        let hidden = tracked.iter().copied().filter(|name| is_hidden(name));
        let hidden: BTreeSet<Vec<u8>> = hidden.map(<[u8]>::to_vec).collect();
        rules.tracked = hidden;
        rules
    }

    /// Whether a file or directory is left out. The parents of `name` are not.
    pub(super) fn ignores(&self, name: &[u8], is_directory: bool) -> bool {
        let last = name.rsplit(|byte| *byte == b'/').next().unwrap_or(name);
        if name == self.own || TOOL_CACHES.contains(&last) {
            return true;
        }
        for (prefix, rules) in &self.levels {
            let Some(below) = below(prefix, name) else {
                continue;
            };
            match rules.matched(OsStr::from_bytes(below), is_directory) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }

    pub(super) fn tracked_and_ignored(&self, root: &Path) -> impl Iterator<Item = (Vec<u8>, PathBuf)> {
        self.tracked
            .iter()
            .map(move |name| (name.clone(), root.join(OsStr::from_bytes(name))))
    }
}

fn below<'a>(prefix: &[u8], name: &'a [u8]) -> Option<&'a [u8]> {
    match prefix.is_empty() {
        true => Some(name),
        false => name.strip_prefix(prefix)?.strip_prefix(b"/"),
    }
}

/// The rules in one file. Patterns that cannot be parsed match nothing, as in git.
fn read_level(directory: &Path, prefix: &[u8], path: &Path) -> Option<(Vec<u8>, Gitignore)> {
    let text = files::read(path, ReadRule::CONFIG).ok()?;
    let mut builder = GitignoreBuilder::new(directory);
    for line in String::from_utf8_lossy(&text).lines() {
        ok_or_log!(
            builder.add_line(None, line),
            "a pattern in {} matches nothing",
            path.display()
        );
    }
    let rules = ok_or_log!(builder.build(), "ignoring {}", path.display())?;
    (!rules.is_empty()).then(|| (prefix.to_vec(), rules))
}
