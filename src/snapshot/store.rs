//! The bare git repository that contains a project's snapshots.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::process::{GitStore, OutputReader, Stdin, Supervisors};

use super::blobs::BlobReader;
use super::error::{SnapshotError, io_error};
use super::import::{FILES, METADATA};
use super::metadata;
use super::tree::{EntryKind, ObjectId, SnapshotId, SnapshotTree, TreeEntry};

const CONFIG: &str = "[core]\n\trepositoryformatversion = 1\n\tfilemode = true\n\tbare = true\n\
                      \tsharedRepository = 0600\n\
                      [extensions]\n\tobjectformat = sha256\n";
/// The directory with a reference for each run.
const RUNS: &str = "refs/runs";
/// The end of the references of restores, after a time like that of a run's id.
pub const RESTORE_SUFFIX: &str = "-restore";
/// More packs than this are combined before the next snapshot.
const MAX_PACKS: usize = 50;

/// The snapshots of a project.
#[derive(Debug, Clone)]
pub struct SnapshotStore {
    pub(super) git: GitStore,
}

impl SnapshotStore {
    /// The store in this directory, which may not exist yet.
    pub fn at(directory: PathBuf, supervisors: &Supervisors) -> Self {
        let git = GitStore {
            program: PathBuf::from("git"),
            supervisors: supervisors.clone(),
            directory,
        };
        Self { git }
    }

    pub fn directory(&self) -> &Path {
        &self.git.directory
    }

    /// Creates the store if it does not exist.
    pub(super) fn create(&self) -> Result<(), SnapshotError> {
        let directory = self.directory();
        // Written last, so that a store that has it is complete.
        let head = directory.join("HEAD");
        if head.symlink_metadata().is_ok() {
            return Ok(());
        }
        for name in ["objects/pack", RUNS] {
            let path = directory.join(name);
            let mut builder = DirBuilder::new();
            builder
                .recursive(true)
                .mode(0o700)
                .create(&path)
                .map_err(io_error("create", &path))?;
        }
        for (path, text) in [
            (directory.join("config"), CONFIG),
            (head, "ref: refs/heads/none\n"),
        ] {
            write_private(&path, text).map_err(io_error("write", &path))?;
        }
        Ok(())
    }

    /// The size of the store in bytes.
    pub fn size(&self) -> u64 {
        let pack = self.directory().join("objects/pack");
        let entries = fs::read_dir(pack).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| entry.metadata().ok())
            .map(|metadata| metadata.len())
            .sum()
    }

    /// The commit of a run's newest snapshot.
    pub(super) fn newest(&self, reference: &str) -> Option<String> {
        let text = fs::read_to_string(self.directory().join(reference)).ok()?;
        ObjectId::parse(text.trim().as_bytes()).map(|id| id.to_string())
    }

    /// The reference of a run.
    pub(super) fn reference(run: &str) -> String {
        format!("{RUNS}/{run}")
    }

    /// Imports a stream; returns the id of its snapshot. Only the holder of the project's lock may call this.
    pub(super) fn import(&self, reference: &str, stream: &Path) -> Result<SnapshotId, SnapshotError> {
        // A killed git leaves its lock behind.
        let lock = self.directory().join(format!("{reference}.lock"));
        if lock.symlink_metadata().is_ok() {
            fs::remove_file(&lock).map_err(io_error("remove", &lock))?;
        }
        let args = ["fast-import", "--quiet", "--done"];
        let output = self.run(args, Stdin::File(stream.to_owned()))?;
        let text = String::from_utf8_lossy(&output);
        let tree = text.strip_prefix("040000 tree ").and_then(|rest| rest.get(..64));
        let tree = tree.and_then(SnapshotId::parse);
        tree.ok_or_else(|| self.git_error("fast-import", io::Error::other("unexpected output")))
    }

    /// The entries of a snapshot.
    pub fn tree(&self, id: SnapshotId) -> Result<SnapshotTree, SnapshotError> {
        let damaged = |why| SnapshotError::Damaged { id: id.short(), why };
        let listing = self.run(
            ["ls-tree", "-r", "-z", "--full-tree", &id.to_string()],
            Stdin::Null,
        )?;
        let mut tree = SnapshotTree::default();
        let mut metadata_id = None;
        for record in listing
            .split(|byte| *byte == 0)
            .filter(|record| !record.is_empty())
        {
            let (path, entry) = parse_entry(record).ok_or_else(|| damaged("a file has an unknown kind"))?;
            match path.strip_prefix(FILES.as_bytes()) {
                Some(below) if below.starts_with(b"/") => {
                    let _ = tree.entries.insert(below[1..].to_vec(), entry);
                }
                Some(_) | None if path == METADATA.as_bytes() => metadata_id = Some(entry.id),
                Some(_) | None => {}
            }
        }
        let metadata_id = metadata_id.ok_or_else(|| damaged("its metadata is missing"))?;
        let text = BlobReader::start(self, &[metadata_id])?.read_whole()?;
        metadata::complete(&mut tree, &text).ok_or_else(|| damaged("its metadata is not valid"))?;
        Ok(tree)
    }

    /// The snapshot whose id starts with these digits.
    pub fn find(&self, digits: &str) -> Result<Option<SnapshotId>, SnapshotError> {
        let is_prefix = digits.len() >= 4 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_prefix || !self.directory().is_dir() {
            return Ok(None);
        }
        let name = format!("{digits}^{{tree}}");
        let found = self.run(
            ["rev-parse", "--verify", "--quiet", "--end-of-options", &name],
            Stdin::Null,
        );
        let id = match found {
            Ok(output) => SnapshotId::parse(String::from_utf8_lossy(&output).trim()),
            // No object or several objects have this name.
            Err(SnapshotError::Git { .. }) => None,
            Err(error) => return Err(error),
        };
        Ok(id.filter(|id| self.tree(*id).is_ok()))
    }

    /// The content of a file, or the target of a symbolic link; `None` if the snapshot does not contain it.
    pub fn read_file(&self, id: SnapshotId, path: &[u8]) -> Result<Option<Vec<u8>>, SnapshotError> {
        let tree = self.tree(id)?;
        match tree.entries.get(path) {
            Some(entry) if entry.kind != EntryKind::Directory => {
                BlobReader::start(self, &[entry.id])?.read_whole().map(Some)
            }
            Some(_) | None => Ok(None),
        }
    }

    /// Deletes the snapshots of all runs but these, and the objects that no other snapshot needs. Snapshots of restores are
    /// deleted with the last run that is older.
    pub fn keep_only(&self, runs: &[String]) -> Result<(), SnapshotError> {
        let directory = self.directory().join(RUNS);
        let mut removed = false;
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let is_restore = name.to_string_lossy().ends_with(RESTORE_SUFFIX);
            let is_kept = runs
                .iter()
                .any(|run| name == run.as_str() || is_restore && *name > *OsStr::new(run));
            if !is_kept {
                fs::remove_file(entry.path()).map_err(io_error("remove", &entry.path()))?;
                removed = true;
            }
        }
        match removed {
            true => self.repack(&["repack", "-a", "-d", "--quiet"]),
            false => Ok(()),
        }
    }

    /// Makes the snapshots of a run in another store those of a run in this one. The objects are shared as long as neither
    /// store combines its packs.
    pub fn adopt_run(&self, other: &Self, run: &str, new_run: &str) -> Result<(), SnapshotError> {
        self.adopt_objects(other)?;
        let (from, to) = (
            other.directory().join(Self::reference(run)),
            self.directory().join(Self::reference(new_run)),
        );
        fs::copy(&from, &to).map(drop).map_err(io_error("copy", &from))
    }

    /// Adds the objects of another store.
    pub fn adopt_objects(&self, other: &Self) -> Result<(), SnapshotError> {
        self.create()?;
        let (from, to) = (
            other.directory().join("objects/pack"),
            self.directory().join("objects/pack"),
        );
        let entries = fs::read_dir(&from).map_err(io_error("read", &from))?;
        let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
        // A pack is used as soon as its index exists, so the index is last.
        names.sort_by_key(|name| Path::new(name).extension() == Some(OsStr::new("idx")));
        for name in names {
            let (source, target) = (from.join(&name), to.join(&name));
            match fs::hard_link(&source, &target) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                // The stores are on different file systems.
                Err(_) => fs::copy(&source, &target)
                    .map(drop)
                    .map_err(io_error("copy", &source))?,
            }
        }
        Ok(())
    }

    /// Combines packs if there are many.
    pub(super) fn combine_packs(&self) -> Result<(), SnapshotError> {
        let pack = self.directory().join("objects/pack");
        let entries = fs::read_dir(pack).into_iter().flatten().flatten();
        let is_pack = |entry: &fs::DirEntry| entry.path().extension() == Some(OsStr::new("pack"));
        match entries.filter(is_pack).count() > MAX_PACKS {
            true => self.repack(&["repack", "--geometric=2", "-d", "--quiet"]),
            false => Ok(()),
        }
    }

    fn repack(&self, args: &[&'static str]) -> Result<(), SnapshotError> {
        self.run(args.iter().copied(), Stdin::Null).map(drop)
    }

    /// Runs a git command and returns its output.
    pub(super) fn run<'a>(
        &self,
        args: impl IntoIterator<Item = &'a str>,
        stdin: Stdin,
    ) -> Result<Vec<u8>, SnapshotError> {
        let args: Vec<&OsStr> = args.into_iter().map(OsStr::new).collect();
        let command = command_name(args[0]);
        let output = self.start(&args, stdin)?;
        output.finish().map_err(|source| self.git_error(command, source))
    }

    pub(super) fn start(&self, args: &[&OsStr], stdin: Stdin) -> Result<OutputReader, SnapshotError> {
        self.git
            .start(args.iter().copied(), stdin)
            .map_err(SnapshotError::Start)
    }

    pub(super) fn git_error(&self, command: &'static str, source: io::Error) -> SnapshotError {
        SnapshotError::Git {
            command,
            store: self.directory().to_owned(),
            source,
        }
    }
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path)?.write_all(text.as_bytes())
}

fn command_name(name: &OsStr) -> &'static str {
    const COMMANDS: [&str; 5] = ["fast-import", "ls-tree", "diff-tree", "cat-file", "repack"];
    let known = COMMANDS.into_iter().find(|command| name == *command);
    known.unwrap_or("command")
}

/// Parses `MODE TYPE ID<tab>PATH`.
fn parse_entry(record: &[u8]) -> Option<(&[u8], TreeEntry)> {
    let tab = record.iter().position(|byte| *byte == b'\t')?;
    let mut words = record[..tab].split(|byte| *byte == b' ');
    let (mode, _, id) = (words.next()?, words.next()?, words.next()?);
    let entry = TreeEntry::from_git(mode, ObjectId::parse(id)?)?;
    Some((&record[tab + 1..], entry))
}
