//! The wishes: `ralph.yml`, the environment and the command line become one `Settings`, and a mistake in any of them
//! is explained where it was made. Which agent a wish stands for, and whether it is installed, is not decided here.
//!
//! Layers, later wins: defaults, the files of other Ralphs, the user's file, the project's file, the environment, the
//! command line.

mod checks;
mod commands;
mod diagnostic;
mod environment;
mod expected;
mod import;
mod layers;
mod partial;
mod pattern;
mod prices;
mod schema;
mod settings;
mod spans;
mod suite;
mod words;
mod yaml;

#[cfg(test)]
mod tests;

pub use commands::FileCommands;
pub use diagnostic::{ConfigError, Diagnostic, Problem};
pub use import::{ImportedFile, Theirs, as_yaml, equivalent_yaml, nearest_foreign};
pub use partial::{
    Partial, PartialAdapter, PartialCli, PartialDriver, PartialEventLoop, PartialHat, PartialHooks,
};
pub use pattern::{PathPattern, PatternError};
pub use prices::{ModelPrice, PriceList, load_prices};
pub use schema::schema;
pub use settings::{
    AdapterSettings, Cli, CompletionMatch, DriverSettings, EventLoop, Gate, Hat, Hooks, Mode, OnFailure,
    OutputFormat, PromptMode, Session, Settings,
};
pub use suite::{CellLimits, Suite, SuiteAgent, Task, load_suite};
pub use words::{SplitError, split_words};

use std::io;
use std::path::{Path, PathBuf};

use checks::Known;
use environment::Environment;
use layers::{FILE_NAME, Layer, find_project_file, is_there};

/// Where to look for wishes.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// Where `ralph` was called: the project's file is looked for here, then in each directory above.
    pub cwd: &'a Path,
    /// The user's own configuration directory.
    pub user_dir: Option<&'a Path>,
    /// A file named on the command line: it stands in for the project's file and must exist.
    pub file: Option<&'a Path>,
    /// The process environment, of which only `RALPH_*` is looked at.
    pub environment: &'a [(String, String)],
    /// What the command line said.
    pub flags: Partial,
    /// The names of the built-in agents.
    pub agents: &'a [&'a str],
    /// The names of the transcript formats.
    pub transcripts: &'a [&'a str],
}

/// The settings, and where they come from.
#[derive(Debug, Default)]
pub struct Loaded {
    pub settings: Settings,
    /// The files that were read, the one that wins last.
    pub files: Vec<PathBuf>,
    /// What the user should be told, though it stops nothing.
    pub warnings: Vec<String>,
    layers: Vec<Layer>,
}

/// Who decided a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Default,
    File { path: PathBuf, line: usize },
    Environment { variable: String },
    Flag,
}

/// Reads every layer and lays them over one another. The first mistake ends it.
pub fn load(request: &Request<'_>) -> Result<Loaded, ConfigError> {
    let known = Known {
        agents: request.agents,
        transcripts: request.transcripts,
    };
    let cwd = std::path::absolute(request.cwd).map_err(|source| ConfigError::Unreadable {
        path: request.cwd.to_owned(),
        source,
    })?;
    let mut loaded = Loaded::default();
    let user = request
        .user_dir
        .map(|directory| cwd.join(directory).join(FILE_NAME));
    let project = match request.file {
        Some(named) => Some(existing(cwd.join(named))?),
        None => find_project_file(&cwd, &mut loaded.warnings),
    };
    if request.file.is_none() {
        for (whose, path) in import::find(&cwd, request.user_dir) {
            loaded.lay_foreign(whose, &path, request)?;
        }
    }
    // Called from inside the user's own directory, one file would be both.
    if let Some(path) = user.filter(|path| is_there(path) && project.as_ref() != Some(path)) {
        loaded.lay_file(&path, known)?;
    }
    if let Some(path) = project {
        loaded.lay_file(&path, known)?;
    }
    loaded.lay_environment(Environment::read(request.environment)?, known, &cwd)?;
    loaded.lay_flags(request.flags.clone(), known, &cwd)?;
    Ok(loaded)
}

impl Loaded {
    /// Who decided the setting with this dotted key, such as `event_loop.max_iterations`.
    pub fn origin(&self, key: &str) -> Origin {
        let said = self.layers.iter().rev().find_map(|layer| layer.origin(key));
        said.unwrap_or(Origin::Default)
    }
}

fn existing(path: PathBuf) -> Result<PathBuf, ConfigError> {
    match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(ConfigError::Missing { path }),
        _ => Ok(path),
    }
}
