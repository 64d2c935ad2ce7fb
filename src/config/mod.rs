//! Configuration: merges `ralph.yml` files, the environment and the command line into one `Settings`, and reports
//! errors with file, line and column.
//!
//! Layers in ascending precedence: defaults, imported files of other tools, the user's file, the project's file, the
//! environment, the command line. The `agent` module resolves the configured agent.

mod checks;
mod commands;
mod diagnostic;
mod environment;
mod expected;
mod flatten;
mod import;
mod layers;
mod partial;
mod pattern;
mod prices;
mod schema;
mod settings;
mod shell_words;
mod spans;
mod suite;
mod user;
mod yaml;

#[cfg(test)]
mod tests;

pub use commands::FileCommands;
pub use diagnostic::ConfigError;
pub use flatten::flatten;
pub use import::{
    ImportSource, ImportedFile, convert_orchestrator, convert_to_yaml, nearest_import, to_yaml,
};
pub use pattern::PathPattern;
pub use prices::{PriceList, load_prices};
pub use schema::schema;
pub use settings::{
    AdapterSettings, Cli, EventLoop, Mode, OutputFormat, PartialAdapter, PartialCli, PartialEventLoop,
    PartialSettings, PromptMode, Settings, SnapshotSettings, ThemeName,
};
pub use shell_words::{SplitError, split_words};
pub use suite::{CellLimits, Suite, SuiteAgent, SuiteTask, load_suite};
pub use user::user_directory;

use std::io;
use std::path::{Path, PathBuf};

use checks::KnownNames;
use environment::EnvironmentLayer;
use layers::{FILE_NAME, Layer, entry_exists, find_project_file};

/// Set by a bench for its cells: only the file given with `--config` is read, so that all cells are equal.
pub const CONFIG_ALONE: &str = "RALPH_CONFIG_ALONE";

/// The sources to load settings from.
#[derive(Debug, Clone)]
pub struct LoadRequest<'a> {
    /// The working directory. The project's file is searched for here, then in each parent directory.
    pub cwd: &'a Path,
    /// The user's configuration directory.
    pub user_dir: Option<&'a Path>,
    /// The file named with `--config`. It replaces the project's file and must exist.
    pub file: Option<&'a Path>,
    /// The process environment. Only `RALPH_*` variables, and those of imported files, are used.
    pub environment: &'a [(String, String)],
    /// Settings from the command line.
    pub flags: PartialSettings,
    /// The names of the built-in agents.
    pub agents: &'a [&'a str],
    /// The names of the transcript formats.
    pub transcripts: &'a [&'a str],
}

impl<'a> LoadRequest<'a> {
    /// A request for the settings of one file, without any other layer.
    pub fn of_file(file: &'a Path, agents: &'a [&'a str], transcripts: &'a [&'a str]) -> Self {
        Self {
            cwd: file.parent().unwrap_or(file),
            user_dir: None,
            file: Some(file),
            environment: &[],
            flags: PartialSettings::default(),
            agents,
            transcripts,
        }
    }
}

/// The merged settings and the origin of each.
#[derive(Debug, Default)]
pub struct LoadedConfig {
    pub settings: Settings,
    /// The files that were read, in ascending precedence.
    pub files: Vec<PathBuf>,
    /// Non-fatal problems to report to the user.
    pub warnings: Vec<String>,
    layers: Vec<Layer>,
}

/// The source of a setting's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Default,
    File { path: PathBuf, line: usize },
    Environment { variable: String },
    Flag,
}

/// Reads and merges all layers. Stops at the first error.
pub fn load(request: &LoadRequest<'_>) -> Result<LoadedConfig, ConfigError> {
    let known = KnownNames {
        agents: request.agents,
        transcripts: request.transcripts,
    };
    let cwd = std::path::absolute(request.cwd).map_err(|source| ConfigError::Unreadable {
        path: request.cwd.to_owned(),
        source,
    })?;
    let mut loaded = LoadedConfig::default();
    let user = request
        .user_dir
        .map(|directory| cwd.join(directory).join(FILE_NAME));
    let project = match request.file {
        Some(file) => Some(require_file(cwd.join(file))?),
        None => find_project_file(&cwd, &mut loaded.warnings),
    };
    if request.file.is_none() {
        for (format, path) in import::find(&cwd, request.user_dir) {
            loaded.add_imported_file(format, &path, request)?;
        }
    }
    // In the user's configuration directory, the user's file and the project's file are the same.
    if let Some(path) = user.filter(|path| entry_exists(path) && project.as_ref() != Some(path)) {
        loaded.add_file(&path, known)?;
    }
    if let Some(path) = project {
        loaded.add_file(&path, known)?;
    }
    loaded.add_environment(EnvironmentLayer::read(request.environment)?, known, &cwd)?;
    loaded.add_flags(request.flags.clone(), known, &cwd)?;
    Ok(loaded)
}

impl LoadedConfig {
    /// The source of the setting with this dotted key, such as `event_loop.max_iterations`.
    pub fn origin(&self, key: &str) -> Origin {
        let origin = self.layers.iter().rev().find_map(|layer| layer.origin(key));
        origin.unwrap_or(Origin::Default)
    }
}

fn require_file(path: PathBuf) -> Result<PathBuf, ConfigError> {
    match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(ConfigError::Missing { path }),
        _ => Ok(path),
    }
}
