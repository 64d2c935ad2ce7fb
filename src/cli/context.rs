//! What most commands need first: where we are, what is configured, which agent that means.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::agent::{self, PathProbe, Probe};
use crate::config::{self, Loaded, Partial, Request, Settings};
use crate::process::Supervisors;
use crate::transcript;

use super::error::CliError;

/// Set by a bench for its cells: nothing but the file that was named is read, so that all cells are alike.
pub(super) const ALONE: &str = "RALPH_CONFIG_ALONE";

/// Where and how `ralph` was called.
pub(super) struct Context {
    pub(super) cwd: PathBuf,
    pub(super) supervisors: Supervisors,
}

impl Context {
    pub(super) fn here() -> Result<Self, CliError> {
        // Once it is gone, only the shell's word for it is left.
        let lost = || std::env::var_os("PWD").map_or_else(|| PathBuf::from("."), PathBuf::from);
        let cwd =
            std::env::current_dir().map_err(|source| CliError::WorkingDirectory { path: lost(), source })?;
        // It may exist and still be closed to us.
        std::fs::metadata(cwd.join(".")).map_err(|source| CliError::WorkingDirectory {
            path: cwd.clone(),
            source,
        })?;
        Ok(Self {
            cwd,
            supervisors: Supervisors::current(),
        })
    }

    /// Reads the configuration in all its layers.
    pub(super) fn load(&self, overrides: Partial, file: Option<&PathBuf>) -> Result<Loaded, CliError> {
        let environment: Vec<(String, String)> = std::env::vars_os()
            .filter_map(|(name, value)| {
                Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))
            })
            .collect();
        let user_dir = user_directory().filter(|_| std::env::var_os(ALONE).is_none());
        Ok(config::load(&Request {
            cwd: &self.cwd,
            user_dir: user_dir.as_deref(),
            file: file.map(PathBuf::as_path),
            environment: &environment,
            flags: overrides,
            agents: &agent::names(),
            transcripts: &transcript::names().collect::<Vec<_>>(),
        })?)
    }

    pub(super) fn probe(&self) -> Arc<dyn Probe> {
        let (cwd, supervisors) = (self.cwd.clone(), self.supervisors.clone());
        Arc::new(PathProbe {
            path: std::env::var_os("PATH"),
            cwd,
            supervisors,
        })
    }
}

/// `$XDG_CONFIG_HOME/ralph`, or else `~/.config/ralph`.
pub(super) fn user_directory() -> Option<PathBuf> {
    let set = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let base = set("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
    base.or_else(|| set("HOME").map(|home| home.join(".config")))
        .map(|base| base.join("ralph"))
}

/// `$XDG_STATE_HOME/ralph`, or else `~/.local/state/ralph`.
pub(super) fn state_directory() -> Option<PathBuf> {
    let set = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let base = set("XDG_STATE_HOME").or_else(|| set("HOME").map(|home| home.join(".local/state")));
    base.map(|base| base.join("ralph"))
}

/// The settings of one file, and of nothing else.
pub(super) fn settings_of(file: &Path) -> Result<Settings, CliError> {
    let loaded = config::load(&Request {
        cwd: file.parent().unwrap_or(file),
        user_dir: None,
        file: Some(file),
        environment: &[],
        flags: Partial::default(),
        agents: &agent::names(),
        transcripts: &transcript::names().collect::<Vec<_>>(),
    })?;
    Ok(loaded.settings)
}
