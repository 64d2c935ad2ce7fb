//! Reads files that other programs can replace: only regular files, up to a size limit, without blocking on a FIFO or a device.

mod free_space;
mod git_directory;
mod stat;

pub use free_space::free_space;
pub use git_directory::{GitDirectory, Head};
pub use stat::FileStat;

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// The rule for reading a file: its maximum size, and whether it may be a symbolic link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadRule {
    pub max_bytes: u64,
    pub links: Links,
}

/// Whether the last component of a path may be a symbolic link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// For files that users commonly link to, such as a prompt or a configuration.
    Follow,
    /// For files that ralph creates itself.
    Refuse,
}

impl ReadRule {
    /// Prompts, which an agent or a repository can replace.
    pub const PROMPT: Self = Self::following(16 << 20);
    /// Configuration, price lists and task lists.
    pub const CONFIG: Self = Self::following(1 << 20);
    /// Driver scripts.
    pub const SCRIPT: Self = Self::following(16 << 20);
    /// Small files in ralph's own directories.
    pub const STATE: Self = Self {
        max_bytes: 1 << 20,
        links: Links::Refuse,
    };

    pub const fn following(max_bytes: u64) -> Self {
        Self {
            max_bytes,
            links: Links::Follow,
        }
    }
}

/// Why a file was not read. The messages do not contain the path; `Display` of the caller's error does.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("it is {kind}, not a regular file")]
    NotRegular { kind: &'static str },
    #[error("it is a symbolic link")]
    Link,
    #[error("it is larger than {max_bytes} bytes")]
    TooLarge { max_bytes: u64 },
    #[error("it is not valid UTF-8")]
    NotUtf8,
}

impl FileError {
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }

    /// The error for callers that report every failure as an input/output error.
    pub fn into_io(self) -> io::Error {
        match self {
            Self::Io(error) => error,
            other => io::Error::new(io::ErrorKind::InvalidInput, other.to_string()),
        }
    }
}

/// Opens a regular file. Opening neither blocks on a FIFO nor has an effect on a device.
pub fn open(path: &Path, links: Links) -> Result<File, FileError> {
    let before = match links {
        Links::Follow => path.metadata()?,
        Links::Refuse => path.symlink_metadata()?,
    };
    require_regular(before.file_type())?;
    let nofollow = match links {
        Links::Follow => OFlags::empty(),
        Links::Refuse => OFlags::NOFOLLOW,
    };
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | nofollow;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    // The file at this path may have been replaced since the first check.
    require_regular(file.metadata()?.file_type())?;
    Ok(file)
}

fn require_regular(kind: std::fs::FileType) -> Result<(), FileError> {
    let kind = match kind {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_symlink() => return Err(FileError::Link),
        kind if kind.is_dir() => "a directory",
        kind if kind.is_fifo() => "a FIFO",
        kind if kind.is_socket() => "a socket",
        kind if kind.is_char_device() || kind.is_block_device() => "a device",
        _ => "a special file",
    };
    Err(FileError::NotRegular { kind })
}

/// Reads a whole file.
pub fn read(path: &Path, rule: ReadRule) -> Result<Vec<u8>, FileError> {
    let file = open(path, rule.links)?;
    let mut bytes = Vec::new();
    // The size is checked while reading: a file can grow, and some file systems report none.
    file.take(rule.max_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > rule.max_bytes {
        let max_bytes = rule.max_bytes;
        return Err(FileError::TooLarge { max_bytes });
    }
    Ok(bytes)
}

/// Reads a whole file that must be UTF-8.
pub fn read_text(path: &Path, rule: ReadRule) -> Result<String, FileError> {
    String::from_utf8(read(path, rule)?).map_err(|_| FileError::NotUtf8)
}

/// Returns the target of a path if it is outside of all `roots`; `None` if it is inside one, or does not exist.
pub fn leads_outside(path: &Path, roots: &[&Path]) -> Option<PathBuf> {
    let real = path.canonicalize().ok()?;
    let is_inside = roots.iter().any(|root| {
        let root = root.canonicalize();
        root.is_ok_and(|root| real.starts_with(root))
    });
    (!is_inside).then_some(real)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn message(path: &Path, rule: ReadRule) -> String {
        read(path, rule).map_or_else(
            |error| error.to_string(),
            |bytes| format!("{} bytes", bytes.len()),
        )
    }

    #[test]
    fn only_regular_files_are_read() {
        let directory = tempfile::tempdir().expect("a directory");
        let fifo = directory.path().join("fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .expect("a FIFO");
        let zero = directory.path().join("zero");
        symlink("/dev/zero", &zero).expect("a link");
        let socket = directory.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
        assert_eq!(
            message(&fifo, ReadRule::PROMPT),
            "it is a FIFO, not a regular file"
        );
        assert_eq!(
            message(&zero, ReadRule::PROMPT),
            "it is a device, not a regular file"
        );
        assert_eq!(
            message(&socket, ReadRule::PROMPT),
            "it is a socket, not a regular file"
        );
        assert_eq!(
            message(directory.path(), ReadRule::PROMPT),
            "it is a directory, not a regular file"
        );
    }

    #[test]
    fn links_are_followed_only_where_the_rule_allows_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        std::fs::write(&file, "text").expect("a file");
        symlink(&file, &link).expect("a link");
        assert_eq!(message(&link, ReadRule::CONFIG), "4 bytes");
        assert_eq!(message(&link, ReadRule::STATE), "it is a symbolic link");
    }

    #[test]
    fn files_beyond_the_limit_are_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("file");
        std::fs::write(&file, [b'x'; 11]).expect("a file");
        assert_eq!(message(&file, ReadRule::following(11)), "11 bytes");
        assert_eq!(
            message(&file, ReadRule::following(10)),
            "it is larger than 10 bytes"
        );
        assert!(
            read(&directory.path().join("none"), ReadRule::CONFIG).is_err_and(|error| error.is_missing())
        );
    }

    #[test]
    fn a_path_leads_outside_through_a_link_or_a_parent_directory() {
        let directory = tempfile::tempdir().expect("a directory");
        let (inside, outside) = (directory.path().join("in"), directory.path().join("out"));
        std::fs::create_dir(&inside).expect("a directory");
        std::fs::write(&outside, "").expect("a file");
        std::fs::write(inside.join("own"), "").expect("a file");
        symlink("../out", inside.join("link")).expect("a link");
        assert_eq!(leads_outside(&inside.join("own"), &[&inside]), None);
        for name in ["link", "../out"] {
            assert!(leads_outside(&inside.join(name), &[&inside]).is_some(), "{name}");
        }
    }
}
