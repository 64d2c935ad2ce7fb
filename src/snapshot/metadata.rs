//! What git does not store about files: exact permissions, and directories without files.
//!
//! The text starts with a version and the most common permissions of files, executable files and directories. Then follows
//! a record for each path that differs: its kind, its permissions in octal, and the path. All records end with NUL.

use std::collections::{BTreeMap, HashSet};

use super::tree::{EntryKind, SnapshotTree, TreeEntry, parent};

const VERSION: &[u8] = b"1";

/// Returns the metadata of a tree.
pub(super) fn encode(tree: &SnapshotTree) -> Vec<u8> {
    let defaults = Class::ALL.map(|class| most_common(tree, class));
    let parents: HashSet<&[u8]> = tree.entries.keys().filter_map(|path| parent(path)).collect();
    let mut text = VERSION.to_vec();
    text.push(0);
    for default in defaults {
        text.extend(format!("{default:o}\0").into_bytes());
    }
    for (path, entry) in &tree.entries {
        let Some(class) = Class::of(entry) else {
            continue;
        };
        let is_implied = match class {
            Class::Directory => parents.contains(path.as_slice()),
            Class::File | Class::Executable => true,
        };
        if is_implied && entry.permissions == defaults[class as usize] {
            continue;
        }
        let kind = match class {
            Class::Directory => 'd',
            Class::File | Class::Executable => 'f',
        };
        text.extend(format!("{kind}{:o} ", entry.permissions).into_bytes());
        text.extend(path);
        text.push(0);
    }
    text
}

/// Completes a tree that contains the files with the metadata. Returns `None` if it is not valid.
pub(super) fn complete(tree: &mut SnapshotTree, text: &[u8]) -> Option<()> {
    let mut records = text.strip_suffix(b"\0")?.split(|byte| *byte == 0);
    if records.next()? != VERSION {
        return None;
    }
    let mut defaults = [0; 3];
    for default in &mut defaults {
        *default = octal(records.next()?)?;
    }
    for entry in tree.entries.values_mut() {
        if let Some(class) = Class::of(entry) {
            entry.permissions = defaults[class as usize];
        }
    }
    for record in records {
        let (kind, rest) = record.split_first()?;
        let space = rest.iter().position(|byte| *byte == b' ')?;
        let (permissions, path) = (octal(&rest[..space])?, &rest[space + 1..]);
        match kind {
            b'd' => {
                let entry = TreeEntry::directory(permissions);
                tree.entries.insert(path.to_vec(), entry);
            }
            b'f' => tree.entries.get_mut(path)?.permissions = permissions,
            _ => return None,
        }
    }
    add_implied_directories(tree, defaults[Class::Directory as usize]);
    Some(())
}

fn add_implied_directories(tree: &mut SnapshotTree, permissions: u32) {
    let mut implied: HashSet<&[u8]> = HashSet::new();
    for path in tree.entries.keys() {
        let mut path = path.as_slice();
        while let Some(directory) = parent(path) {
            if tree.entries.contains_key(directory) || !implied.insert(directory) {
                break;
            }
            path = directory;
        }
    }
    let implied: Vec<Vec<u8>> = implied.into_iter().map(<[u8]>::to_vec).collect();
    for path in implied {
        tree.entries.insert(path, TreeEntry::directory(permissions));
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    File,
    Executable,
    Directory,
}

impl Class {
    const ALL: [Self; 3] = [Self::File, Self::Executable, Self::Directory];

    /// `None` for symbolic links, which have no permissions.
    fn of(entry: &TreeEntry) -> Option<Self> {
        match entry.kind {
            EntryKind::Symlink => None,
            EntryKind::Directory => Some(Self::Directory),
            EntryKind::File if entry.is_executable() => Some(Self::Executable),
            EntryKind::File => Some(Self::File),
        }
    }

    fn usual_permissions(self) -> u32 {
        match self {
            Self::File => 0o644,
            Self::Executable | Self::Directory => 0o755,
        }
    }
}

/// The permissions that most entries of a class have. Of several, the smallest, so that equal trees have equal metadata.
fn most_common(tree: &SnapshotTree, class: Class) -> u32 {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    for entry in tree.entries.values() {
        if Class::of(entry) == Some(class) {
            *counts.entry(entry.permissions).or_default() += 1;
        }
    }
    let most = counts.into_iter().rev().max_by_key(|(_, count)| *count);
    most.map_or_else(|| class.usual_permissions(), |(permissions, _)| permissions)
}

fn octal(digits: &[u8]) -> Option<u32> {
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 8)
        .ok()
        .filter(|permissions| *permissions <= 0o7777)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::tree::ObjectId;

    fn file(permissions: u32) -> TreeEntry {
        TreeEntry {
            kind: EntryKind::File,
            permissions,
            id: ObjectId::of_blob(b""),
        }
    }

    #[test]
    fn permissions_and_empty_directories_survive() {
        let link = TreeEntry {
            kind: EntryKind::Symlink,
            permissions: 0,
            id: ObjectId::of_blob(b"a"),
        };
        let entries: [(&[u8], TreeEntry); 9] = [
            (b"a", file(0o644)),
            (b"b", file(0o600)),
            (b"c", file(0o4755)),
            (b"empty", TreeEntry::directory(0o755)),
            (b"link", link),
            (b"new\nline", file(0o000)),
            (b"sub", TreeEntry::directory(0o755)),
            (b"sub/private", TreeEntry::directory(0o700)),
            (b"sub/private/d", file(0o644)),
        ];
        let entries: BTreeMap<Vec<u8>, TreeEntry> = entries
            .into_iter()
            .map(|(path, entry)| (path.to_vec(), entry))
            .collect();
        let tree = SnapshotTree { entries };
        let text = encode(&tree);
        // git stores the paths and whether a file is executable.
        let mut read = SnapshotTree::default();
        for (path, entry) in &tree.entries {
            let from_git = TreeEntry::from_git(entry.git_mode().as_bytes(), entry.id).unwrap();
            if entry.kind != EntryKind::Directory {
                read.entries.insert(path.clone(), from_git);
            }
        }
        complete(&mut read, &text).unwrap();
        assert_eq!(read, tree);
        let text = String::from_utf8(text).unwrap();
        assert!(
            !text.contains("f644 a") && !text.contains("d755 sub\x00"),
            "{text}"
        );
    }

    #[test]
    fn damaged_metadata_is_refused() {
        let completed = |text: &str| {
            let text = text.replace('|', "\0");
            complete(&mut SnapshotTree::default(), text.as_bytes())
        };
        for text in [
            "",
            "1",
            "2|644|755|755|",
            "1|644|755|",
            "1|644|755|755|x644 a|",
            "1|644|755|755|f644 missing|",
            "1|644|755|777777|",
        ] {
            assert_eq!(completed(text), None, "{text:?}");
        }
        assert_eq!(completed("1|644|755|755|"), Some(()));
    }
}
