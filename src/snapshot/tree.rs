//! The contents of a snapshot: a path, a kind, permissions and an object id for each file and directory.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use sha2::{Digest as _, Sha256};

/// Permissions of a new file or directory when nothing else is known.
const FILE_PERMISSIONS: u32 = 0o644;
const EXECUTABLE_PERMISSIONS: u32 = 0o755;

/// The SHA-256 hash by which git names an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId([u8; 32]);

impl ObjectId {
    /// Stands for a directory, which has no object of its own.
    pub(super) const NONE: Self = Self([0; 32]);

    pub fn of_blob(content: &[u8]) -> Self {
        let mut hasher = BlobHasher::new(content.len() as u64);
        hasher.update(content);
        hasher.finish()
    }

    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let mut bytes = [0; 32];
        if text.len() != 64 {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(text.chunks(2)) {
            let digit = |letter: u8| char::from(letter).to_digit(16);
            *byte = u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok()?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Hashes a blob of known size piece by piece.
pub(super) struct BlobHasher(Sha256);

impl BlobHasher {
    pub(super) fn new(size: u64) -> Self {
        Self(Sha256::new().chain_update(format!("blob {size}\0")))
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(super) fn finish(self) -> ObjectId {
        ObjectId(self.0.finalize().into())
    }
}

/// The name of a snapshot. Equal contents and permissions have equal ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SnapshotId(ObjectId);

impl SnapshotId {
    pub fn parse(text: &str) -> Option<Self> {
        ObjectId::parse(text.as_bytes()).map(Self)
    }

    /// The first digits, for people.
    pub fn short(self) -> String {
        let mut text = self.to_string();
        text.truncate(12);
        text
    }
}

impl fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    File,
    Symlink,
    Directory,
}

/// A file, a symbolic link or a directory of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeEntry {
    pub kind: EntryKind,
    /// Permission bits, including those of set-user-ID and the like; 0 for a symbolic link.
    pub permissions: u32,
    /// The content, or the target of a symbolic link.
    pub id: ObjectId,
}

impl TreeEntry {
    /// The mode that git stores.
    pub fn git_mode(&self) -> &'static str {
        match self.kind {
            EntryKind::Symlink => "120000",
            EntryKind::File if self.is_executable() => "100755",
            EntryKind::File | EntryKind::Directory => "100644",
        }
    }

    pub(super) fn is_executable(&self) -> bool {
        self.permissions & 0o100 != 0
    }

    /// An entry with the permissions that its mode implies.
    pub(super) fn from_git(mode: &[u8], id: ObjectId) -> Option<Self> {
        let (kind, permissions) = match mode {
            b"100644" => (EntryKind::File, FILE_PERMISSIONS),
            b"100755" => (EntryKind::File, EXECUTABLE_PERMISSIONS),
            b"120000" => (EntryKind::Symlink, 0),
            _ => return None,
        };
        Some(Self {
            kind,
            permissions,
            id,
        })
    }

    pub(super) fn directory(permissions: u32) -> Self {
        Self {
            kind: EntryKind::Directory,
            permissions,
            id: ObjectId::NONE,
        }
    }
}

/// The entries of a snapshot by path relative to the project root, parents before their contents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SnapshotTree {
    pub entries: BTreeMap<Vec<u8>, TreeEntry>,
}

impl SnapshotTree {
    /// The files and symbolic links, without directories.
    pub fn files(&self) -> impl Iterator<Item = (&Vec<u8>, &TreeEntry)> {
        self.entries
            .iter()
            .filter(|(_, entry)| entry.kind != EntryKind::Directory)
    }

    /// The SHA-256 of all paths, contents and executable bits. Unlike the id of a snapshot, it is the same in every clone
    /// of a repository, because git stores neither exact permissions nor empty directories.
    pub fn content_sha256(&self) -> String {
        let mut hasher = Sha256::new();
        for (path, entry) in self.files() {
            hasher.update(format!("{} {}\t", entry.git_mode(), entry.id));
            hasher.update(path);
            hasher.update([0]);
        }
        ObjectId(hasher.finalize().into()).to_string()
    }
}

/// The path of the directory that contains a path; `None` at the root.
pub(super) fn parent(path: &[u8]) -> Option<&[u8]> {
    let slash = path.iter().rposition(|byte| *byte == b'/')?;
    Some(&path[..slash])
}

/// A path in the quotes that git understands, whatever bytes it contains.
pub(super) fn quoted(path: &[u8]) -> String {
    let mut text = String::from("\"");
    for byte in path {
        match byte {
            b'"' | b'\\' => {
                text.push('\\');
                text.push(char::from(*byte));
            }
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => {
                let _ = write!(text, "\\{byte:03o}");
            }
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blob_has_the_id_that_git_gives_it() {
        let expected = "c1cf6e465077930e88dc5136641d402f72a229ddd996f627d60e9639eaba35a6";
        assert_eq!(ObjectId::of_blob(b"abc").to_string(), expected);
        assert_eq!(
            ObjectId::parse(expected.as_bytes()),
            Some(ObjectId::of_blob(b"abc"))
        );
        for invalid in ["", "abc", &"g".repeat(64), &"a".repeat(63)] {
            assert_eq!(ObjectId::parse(invalid.as_bytes()), None, "{invalid}");
        }
    }

    #[test]
    fn every_byte_of_a_path_is_quoted() {
        assert_eq!(quoted(b"a \"b\"\\\n\xff"), "\"a \\\"b\\\"\\\\\\012\\377\"");
    }
}
