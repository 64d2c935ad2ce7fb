//! The parts of a `.git` directory that matter to a manifest: the files that can make git run commands or overlook changes,
//! and the current commit. They are read as files; git is not asked.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::{Links, ReadRule, read_text};

/// Files and directories that decide what git executes and what it reports.
const CONTROL_PATHS: [&str; 5] = [
    "config",
    "config.worktree",
    "hooks",
    "info",
    "objects/info/alternates",
];
/// No repository needs more hooks or deeper directories.
const MAX_CONTROL_FILES: usize = 10_000;
const PACKED_REFS: ReadRule = ReadRule {
    max_bytes: 256 << 20,
    links: Links::Refuse,
};

/// A repository's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitDirectory {
    /// The directory of this worktree: `HEAD` and `config.worktree`.
    own: PathBuf,
    /// The directory that all worktrees share: configuration, hooks and references.
    common: PathBuf,
}

/// What `HEAD` refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Head {
    Commit(String),
    /// A branch without a commit.
    Unborn,
    /// The repository stores references in a format that only git reads.
    AskGit,
    /// There is no valid `HEAD`.
    Broken,
}

impl GitDirectory {
    /// Follows `.git`, which is a directory, or a file that names one (in a worktree or a submodule).
    pub fn at(path: &Path) -> Option<Self> {
        let own = match fs::metadata(path).ok()? {
            metadata if metadata.is_dir() => path.to_owned(),
            _ => {
                let text = read_text(path, ReadRule::CONFIG).ok()?;
                path.parent()?.join(text.strip_prefix("gitdir:")?.trim())
            }
        };
        let common = read_text(&own.join("commondir"), ReadRule::CONFIG)
            .map_or_else(|_| own.clone(), |text| own.join(text.trim()));
        Some(Self { own, common })
    }

    /// The repository that contains a directory: its top level and its `.git`.
    pub fn around(directory: &Path) -> Option<(PathBuf, Self)> {
        directory.ancestors().find_map(|top| {
            let git = Self::at(&top.join(".git"))?;
            Some((top.to_owned(), git))
        })
    }

    /// The directory of this worktree.
    pub fn own(&self) -> &Path {
        &self.own
    }

    /// The directory that all worktrees share.
    pub fn common(&self) -> &Path {
        &self.common
    }

    /// The ignore rules of this repository that are not committed.
    pub fn exclude_file(&self) -> PathBuf {
        self.common.join("info/exclude")
    }

    /// The files that are watched, with their paths below `.git`.
    pub fn control_files(&self) -> Vec<(Vec<u8>, PathBuf)> {
        let mut found = Vec::new();
        let directories: &[&PathBuf] = match self.own == self.common {
            true => &[&self.common],
            false => &[&self.common, &self.own],
        };
        for directory in directories {
            let mut pending: Vec<PathBuf> = CONTROL_PATHS.iter().map(|name| directory.join(name)).collect();
            while let Some(path) = pending.pop() {
                let Ok(metadata) = fs::symlink_metadata(&path) else {
                    continue;
                };
                if metadata.is_dir() {
                    let entries = fs::read_dir(&path).into_iter().flatten().flatten();
                    pending.extend(entries.map(|entry| entry.path()));
                } else if let Ok(below) = path.strip_prefix(directory) {
                    found.push((below.as_os_str().as_bytes().to_vec(), path.clone()));
                }
                if found.len() > MAX_CONTROL_FILES {
                    return found;
                }
            }
        }
        found
    }

    pub fn head(&self) -> Head {
        let Ok(text) = read_text(&self.own.join("HEAD"), ReadRule::CONFIG) else {
            return Head::Broken;
        };
        let text = text.trim();
        let Some(reference) = text.strip_prefix("ref:").map(str::trim) else {
            return commit(text).unwrap_or(Head::Broken);
        };
        if reference == "refs/heads/.invalid" {
            return Head::AskGit;
        }
        let is_plain = Path::new(reference)
            .components()
            .all(|component| matches!(component, Component::Normal(_)));
        if !is_plain || !reference.starts_with("refs/") {
            return Head::Broken;
        }
        let loose = |directory: &Path| read_text(&directory.join(reference), ReadRule::CONFIG).ok();
        if let Some(text) = loose(&self.own).or_else(|| loose(&self.common)) {
            return commit(text.trim()).unwrap_or(Head::Broken);
        }
        let Ok(packed) = read_text(&self.common.join("packed-refs"), PACKED_REFS) else {
            return Head::Unborn;
        };
        let named = packed.lines().find_map(|line| {
            let (hash, name) = line.split_once(' ')?;
            (name == reference).then_some(hash)
        });
        named.map_or(Head::Unborn, |hash| commit(hash).unwrap_or(Head::Broken))
    }
}

fn commit(text: &str) -> Option<Head> {
    let is_hash = matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| Head::Commit(text.to_owned()))
}
