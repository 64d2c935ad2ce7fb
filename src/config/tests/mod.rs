//! Tests of the configuration with real files.

mod diagnostics;
mod documented;
mod layering;
mod prices;
mod suite;

use std::fs;
use std::path::{Path, PathBuf};

use super::{ConfigError, LoadRequest, LoadedConfig, PartialSettings, load};

const AGENTS: &[&str] = &[
    "claude", "kiro", "gemini", "codex", "amp", "opencode", "copilot", "cursor",
];
const TRANSCRIPTS: &[&str] = &["plain", "rtf1", "claude", "codex", "codex-text", "gemini"];

/// A temporary directory with `home/` and `project/`, and the other inputs of `load`.
struct ConfigFixture {
    root: tempfile::TempDir,
    cwd: PathBuf,
    file: Option<PathBuf>,
    environment: Vec<(String, String)>,
    flags: PartialSettings,
}

impl ConfigFixture {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a temporary directory");
        let cwd = root.path().join("project");
        fs::create_dir(&cwd).expect("a project directory");
        Self {
            root,
            cwd,
            file: None,
            environment: Vec::new(),
            flags: PartialSettings::default(),
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

    fn load(&self) -> Result<LoadedConfig, ConfigError> {
        load(&LoadRequest {
            cwd: &self.cwd,
            user_dir: Some(&self.path("home")),
            file: self.file.as_deref(),
            environment: &self.environment,
            flags: self.flags.clone(),
            agents: AGENTS,
            transcripts: TRANSCRIPTS,
        })
    }

    fn loaded(&self) -> LoadedConfig {
        self.load()
            .unwrap_or_else(|error| panic!("{}", self.redact(&error)))
    }

    /// The error message, with a fixed name for the temporary directory.
    fn error(&self) -> String {
        self.load()
            .map_or_else(|error| self.redact(&error), |_| "no error".to_owned())
    }

    fn redact(&self, error: &ConfigError) -> String {
        let root = self.root.path().display().to_string();
        error.to_string().replace(&root, "/tmp/x")
    }
}

/// The error message for a project file with this text.
fn error_for(text: impl AsRef<[u8]>) -> String {
    ConfigFixture::new().write("project/ralph.yml", text).error()
}

/// The settings from a project file with this text.
fn settings_of(text: &str) -> super::Settings {
    ConfigFixture::new()
        .write("project/ralph.yml", text)
        .loaded()
        .settings
}

fn relative_files<'a>(loaded: &'a LoadedConfig, root: &Path) -> Vec<&'a Path> {
    let files = loaded.files.iter();
    files
        .map(|file| file.strip_prefix(root).expect("a file of this fixture"))
        .collect()
}
