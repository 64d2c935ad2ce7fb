//! The differences between two snapshots.

use std::ffi::OsStr;

use crate::process::Stdin;

use super::error::SnapshotError;
use super::import::FILES;
use super::store::SnapshotStore;
use super::tree::SnapshotId;

/// How a file differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    Added,
    Removed,
    Modified,
}

/// A file that differs between two snapshots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    pub path: Vec<u8>,
    pub kind: ChangeKind,
    /// Number of added and removed lines; `None` for binary files.
    pub lines: Option<(u64, u64)>,
}

impl SnapshotStore {
    /// The files that differ, in the order of their paths. Exact permissions and empty directories are not compared.
    pub fn changed_paths(&self, from: SnapshotId, to: SnapshotId) -> Result<Vec<FileChange>, SnapshotError> {
        let (from, to) = (from.to_string(), to.to_string());
        let args = [
            "diff-tree",
            "-r",
            "-z",
            "--raw",
            "--numstat",
            "--no-renames",
            &from,
            &to,
            "--",
            FILES,
        ];
        let output = self.run(args, Stdin::Null)?;
        let mut fields = output.split(|byte| *byte == 0).peekable();
        let mut kinds = Vec::new();
        while let Some(raw) = fields.next_if(|field| field.starts_with(b":")) {
            let kind = match raw.last() {
                Some(b'A') => ChangeKind::Added,
                Some(b'D') => ChangeKind::Removed,
                _ => ChangeKind::Modified,
            };
            kinds.push((fields.next().unwrap_or_default(), kind));
        }
        let changes = kinds.into_iter().zip(fields).map(|((path, kind), counts)| {
            let mut words = counts.split(|byte| *byte == b'\t');
            let mut count = || std::str::from_utf8(words.next()?).ok()?.parse().ok();
            FileChange {
                path: below_files(path),
                kind,
                lines: count().zip(count()),
            }
        });
        Ok(changes.collect())
    }

    /// The differences as a patch. `paths` limits it to files and directories; empty selects all.
    pub fn diff(
        &self,
        from: SnapshotId,
        to: SnapshotId,
        paths: &[Vec<u8>],
    ) -> Result<Vec<u8>, SnapshotError> {
        use std::os::unix::ffi::OsStrExt;

        let (from, to) = (from.to_string(), to.to_string());
        let mut args: Vec<&OsStr> = [
            "--literal-pathspecs",
            "diff-tree",
            "-r",
            "-p",
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            "--relative=files/",
            &from,
            &to,
            "--",
        ]
        .map(OsStr::new)
        .to_vec();
        let limited: Vec<Vec<u8>> = match paths.is_empty() {
            true => vec![FILES.as_bytes().to_vec()],
            false => paths
                .iter()
                .map(|path| [FILES.as_bytes(), b"/", path].concat())
                .collect(),
        };
        args.extend(limited.iter().map(|path| OsStr::from_bytes(path)));
        self.start(&args, Stdin::Null)?
            .finish()
            .map_err(|source| self.git_error("diff-tree", source))
    }
}

fn below_files(path: &[u8]) -> Vec<u8> {
    let below = path
        .strip_prefix(FILES.as_bytes())
        .and_then(|path| path.strip_prefix(b"/"));
    below.unwrap_or(path).to_vec()
}
