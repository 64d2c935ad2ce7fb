//! The trust store: which file contents the user has allowed, in one file outside of any repository.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::files::{self, FileError, ReadRule};
use crate::store::state_directory;

/// Far more than thousands of entries need.
const MAX_BYTES: u64 = 64 << 20;
const VERSION: u32 = 1;

/// An allowed file content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustEntry {
    /// `sha256:` and the digest.
    pub content: String,
    /// The file's path when it was allowed.
    pub path: PathBuf,
    #[serde(default)]
    pub commands: Vec<String>,
    pub at: Timestamp,
}

/// The format of trust.json.
#[derive(Debug, Default, Serialize, Deserialize)]
struct TrustFile {
    version: u32,
    allowed: Vec<TrustEntry>,
}

#[derive(Debug)]
pub(super) struct TrustStore {
    path: PathBuf,
    pub(super) entries: Vec<TrustEntry>,
}

impl TrustStore {
    /// Opens `trust/trust.json` in the state directory. The answers of an earlier version, which stored them in
    /// `trust.json`, are moved there by the next answer.
    pub(super) fn open() -> io::Result<Self> {
        let state = state_directory().map_err(io::Error::other)?;
        let (path, earlier) = (
            state.path().join("trust/trust.json"),
            state.path().join("trust.json"),
        );
        if !path.exists() && earlier.exists() {
            let store = Self::at(earlier)?;
            return Ok(Self { path, ..store });
        }
        Self::at(path)
    }

    pub(super) fn at(path: PathBuf) -> io::Result<Self> {
        let text = match files::read(&path, ReadRule::following(MAX_BYTES)).map_err(FileError::into_io) {
            Ok(text) => text,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                return Ok(Self {
                    path,
                    entries: Vec::new(),
                });
            }
            Err(error) => return Err(error),
        };
        let broken =
            |why: String| io::Error::other(format!("{}: {why}; remove it to start over", path.display()));
        let file: TrustFile = serde_json::from_slice(&text).map_err(|error| broken(error.to_string()))?;
        if file.version != VERSION {
            return Err(broken(format!(
                "unsupported version {} (expected {VERSION})",
                file.version
            )));
        }
        Ok(Self {
            path,
            entries: file.allowed,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn allows(&self, content: &str) -> bool {
        self.entries.iter().any(|entry| entry.content == content)
    }

    pub(super) fn allow(&mut self, entry: TrustEntry) {
        self.entries.retain(|known| known.content != entry.content);
        self.entries.push(entry);
    }

    /// Removes the entries with this content or path.
    pub(super) fn revoke(&mut self, content: Option<&str>, path: &Path) {
        self.entries
            .retain(|entry| content != Some(entry.content.as_str()) && entry.path != path);
    }

    pub(super) fn save(&self) -> io::Result<()> {
        let directory = self.path.parent().unwrap_or(Path::new("/"));
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
        let contents = TrustFile {
            version: VERSION,
            allowed: self.entries.clone(),
        };
        // A temporary file (mode 0600) and a rename: private, and complete or absent.
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        file.write_all(&serde_json::to_vec_pretty(&contents)?)?;
        file.write_all(b"\n")?;
        file.persist(&self.path)?;
        Ok(())
    }
}
