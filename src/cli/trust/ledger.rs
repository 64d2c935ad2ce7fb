//! What the user has allowed, by content: one file outside of any repository.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::cli::context::state_directory;

const VERSION: u32 = 1;

/// One content that was allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// `sha256:` and the digest.
    pub(super) content: String,
    /// Where it was when it was allowed.
    pub(super) path: PathBuf,
    #[serde(default)]
    pub(super) commands: Vec<String>,
    pub(super) at: Timestamp,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Book {
    version: u32,
    allowed: Vec<Entry>,
}

#[derive(Debug)]
pub(super) struct Ledger {
    path: PathBuf,
    pub(super) entries: Vec<Entry>,
}

impl Ledger {
    /// `$XDG_STATE_HOME/ralph/trust.json`, or else under `~/.local/state`.
    pub(super) fn open() -> io::Result<Self> {
        let state = state_directory()
            .ok_or_else(|| io::Error::other("neither XDG_STATE_HOME nor HOME says where to remember it"))?;
        Self::at(state.join("trust.json"))
    }

    pub(super) fn at(path: PathBuf) -> io::Result<Self> {
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self {
                    path,
                    entries: Vec::new(),
                });
            }
            Err(error) => return Err(error),
        };
        let broken =
            |why: String| io::Error::other(format!("{}: {why}; remove it to begin anew", path.display()));
        let book: Book = serde_json::from_slice(&text).map_err(|error| broken(error.to_string()))?;
        if book.version != VERSION {
            return Err(broken(format!(
                "is of version {}, and this is {VERSION}",
                book.version
            )));
        }
        Ok(Self {
            path,
            entries: book.allowed,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn allows(&self, content: &str) -> bool {
        self.entries.iter().any(|entry| entry.content == content)
    }

    pub(super) fn allow(&mut self, entry: Entry) {
        self.entries.retain(|known| known.content != entry.content);
        self.entries.push(entry);
    }

    /// What was allowed by this content, or lay at this path, is allowed no more.
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
        let book = Book {
            version: VERSION,
            allowed: self.entries.clone(),
        };
        // Readable by the user alone, as every temporary file is; there whole, or not at all.
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        file.write_all(&serde_json::to_vec_pretty(&book)?)?;
        file.write_all(b"\n")?;
        file.persist(&self.path)?;
        Ok(())
    }
}
