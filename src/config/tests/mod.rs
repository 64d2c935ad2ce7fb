//! The room as a whole, with real files: a place to put them, and the three things that are tested there.

mod diagnostics;
mod documented;
mod layering;
mod prices;
mod suite;

use std::fs;
use std::path::{Path, PathBuf};

use super::{ConfigError, Loaded, Partial, Request, load};

const AGENTS: &[&str] = &[
    "claude", "kiro", "gemini", "codex", "amp", "opencode", "copilot", "cursor",
];
const TRANSCRIPTS: &[&str] = &["plain", "rtf1", "claude", "codex", "codex-text", "gemini"];

/// A directory with `home/` and `project/` in it, and what a call of `ralph` there would bring along.
struct Place {
    root: tempfile::TempDir,
    cwd: PathBuf,
    file: Option<PathBuf>,
    environment: Vec<(String, String)>,
    flags: Partial,
}

impl Place {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a temporary directory");
        let cwd = root.path().join("project");
        fs::create_dir(&cwd).expect("a project directory");
        Self {
            root,
            cwd,
            file: None,
            environment: Vec::new(),
            flags: Partial::default(),
        }
    }

    fn write(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(path, content).expect("a written file");
        self
    }

    fn set(mut self, variable: &str, value: &str) -> Self {
        self.environment.push((variable.to_owned(), value.to_owned()));
        self
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    fn load(&self) -> Result<Loaded, ConfigError> {
        load(&Request {
            cwd: &self.cwd,
            user_dir: Some(&self.path("home")),
            file: self.file.as_deref(),
            environment: &self.environment,
            flags: self.flags.clone(),
            agents: AGENTS,
            transcripts: TRANSCRIPTS,
        })
    }

    fn loaded(&self) -> Loaded {
        self.load()
            .unwrap_or_else(|error| panic!("{}", self.anonymous(&error)))
    }

    /// The text that the user would see, with a fixed name for the temporary directory.
    fn complaint(&self) -> String {
        self.load().map_or_else(
            |error| self.anonymous(&error),
            |_| "no mistake was found".to_owned(),
        )
    }

    fn anonymous(&self, error: &ConfigError) -> String {
        let root = self.root.path().display().to_string();
        error.to_string().replace(&root, "/tmp/x")
    }
}

/// The complaint about a project file with this text.
fn complaint_about(text: impl AsRef<[u8]>) -> String {
    Place::new().write("project/ralph.yml", text).complaint()
}

/// The settings from a project file with this text.
fn settings_of(text: &str) -> super::Settings {
    Place::new().write("project/ralph.yml", text).loaded().settings
}

fn in_dir<'a>(loaded: &'a Loaded, root: &Path) -> Vec<&'a Path> {
    let files = loaded.files.iter();
    files
        .map(|file| file.strip_prefix(root).expect("a file of this place"))
        .collect()
}
