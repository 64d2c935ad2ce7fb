//! The working directory, configuration and environment that most commands need.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::agent::{self, PathProbe, Probe};
use crate::config::{
    self, CONFIG_ALONE, LoadRequest, LoadedConfig, Origin, PartialSettings, Settings, user_directory,
};
use crate::policy::Gate;
use crate::run::Host;
use crate::store::{Project, StateDirectory, project_root, state_directory};
use crate::transcript;
use crate::trust::{Git, Trust, TrustError};

use super::error::CliError;

/// The working directory and the host of this invocation.
pub(super) struct Context {
    pub(super) cwd: PathBuf,
    pub(super) host: Host,
    /// Replaces the user's state directory.
    pub(super) state: Option<StateDirectory>,
}

impl Context {
    pub(super) fn here(host: &Host) -> Result<Self, CliError> {
        Ok(Self {
            cwd: working_directory()?,
            host: host.clone(),
            state: None,
        })
    }

    /// Loads and merges all configuration layers.
    pub(super) fn load(
        &self,
        overrides: PartialSettings,
        file: Option<&PathBuf>,
    ) -> Result<LoadedConfig, CliError> {
        load(&self.cwd, overrides, file)
    }

    /// The project that this invocation belongs to.
    pub(super) fn project(&self) -> Result<Project, CliError> {
        let state = self.state.clone().map_or_else(state_directory, Ok)?;
        Ok(state.project(&root_of(&self.cwd)))
    }

    /// The directory in which the commands of a setting run by default.
    pub(super) fn command_directory(&self, loaded: &LoadedConfig, key: &str) -> PathBuf {
        command_directory(&self.cwd, loaded, key)
    }

    pub(super) fn probe(&self) -> Arc<dyn Probe> {
        let (cwd, supervisors) = (self.cwd.clone(), self.host.supervisors().clone());
        Arc::new(PathProbe {
            path: std::env::var_os("PATH"),
            cwd,
            supervisors,
        })
    }

    /// Returns a git runner that executes nothing that a repository configures.
    pub(super) fn git(&self) -> Git {
        Git {
            program: self.probe().find("git"),
            supervisors: self.host.supervisors().clone(),
        }
    }

    /// The top of the git repository of the working directory.
    pub(super) fn repository(&self) -> Option<PathBuf> {
        let cwd = std::fs::canonicalize(&self.cwd).unwrap_or_else(|_| self.cwd.clone());
        let top = cwd.ancestors().find(|directory| directory.join(".git").exists());
        top.map(Path::to_owned)
    }

    /// Opens the trust store.
    pub(super) fn trust(&self) -> Result<Trust, TrustError> {
        Trust::open(self.git())
    }
}

/// Returns the working directory.
pub(super) fn working_directory() -> Result<PathBuf, CliError> {
    // If the directory was deleted, only $PWD still has its path.
    let shell_path = || std::env::var_os("PWD").map_or_else(|| PathBuf::from("."), PathBuf::from);
    let cwd = std::env::current_dir().map_err(|source| CliError::WorkingDirectory {
        path: shell_path(),
        source,
    })?;
    // The directory may exist but be inaccessible.
    std::fs::metadata(cwd.join(".")).map_err(|source| CliError::WorkingDirectory {
        path: cwd.clone(),
        source,
    })?;
    Ok(cwd)
}

/// Loads and merges all configuration layers of a directory.
pub(super) fn load(
    cwd: &Path,
    overrides: PartialSettings,
    file: Option<&PathBuf>,
) -> Result<LoadedConfig, CliError> {
    let environment: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.to_string_lossy().into_owned())))
        .collect();
    let user_dir = user_directory().filter(|_| std::env::var_os(CONFIG_ALONE).is_none());
    let mut loaded = config::load(&LoadRequest {
        cwd,
        user_dir: user_dir.as_deref(),
        file: file.map(PathBuf::as_path),
        environment: &environment,
        flags: overrides,
        agents: &agent::names(),
        transcripts: &transcript::names().collect::<Vec<_>>(),
    })?;
    let directory = command_directory(cwd, &loaded, "gates");
    if directory != cwd {
        for gate in &mut loaded.settings.gates {
            gate.cwd.get_or_insert_with(|| directory.clone());
        }
    }
    let root = root_of(cwd);
    add_gates(&mut loaded.settings, (root != cwd).then_some(root));
    Ok(loaded)
}

/// Adds the gates of the command line. The command is the name.
fn add_gates(settings: &mut Settings, directory: Option<PathBuf>) {
    for command in &settings.cli.extra_gates {
        let name = command.split_whitespace().collect::<Vec<_>>().join(" ");
        let is_known = |name: &str, gates: &[Gate]| gates.iter().any(|gate| gate.name == name);
        let names = std::iter::once(name.clone()).chain((2..).map(|number| format!("{name} ({number})")));
        let name = names.into_iter().find(|name| !is_known(name, &settings.gates));
        settings.gates.push(Gate {
            cwd: directory.clone(),
            ..Gate::new(name.unwrap_or_default(), command.clone())
        });
    }
}

/// The project of the working directory.
pub(super) fn current_project() -> Result<Project, CliError> {
    Ok(state_directory()?.project(&root_of(&working_directory()?)))
}

/// The root of the project that a directory belongs to.
fn root_of(cwd: &Path) -> PathBuf {
    // The workspace of a bench's cell is a project of its own, wherever it lies.
    if std::env::var_os(CONFIG_ALONE).is_some() {
        return cwd.to_owned();
    }
    let home = std::env::var_os("HOME").map(PathBuf::from);
    project_root(cwd, home.as_deref())
}

/// The directory in which the commands of a setting run by default: that of the project's file that defines them, else the
/// project root. A gate that finds nothing to check in a subdirectory would pass there.
fn command_directory(cwd: &Path, loaded: &LoadedConfig, key: &str) -> PathBuf {
    let root = root_of(cwd);
    let Origin::File { path, .. } = loaded.origin(key) else {
        return root;
    };
    let parent = path
        .parent()
        .and_then(|parent| std::fs::canonicalize(parent).ok());
    let user = user_directory().and_then(|user| std::fs::canonicalize(user).ok());
    parent
        .filter(|parent| parent.starts_with(&root) && user.as_ref() != Some(parent))
        .unwrap_or(root)
}

/// Loads the settings of one file, without any other layer.
pub(super) fn settings_of(file: &Path) -> Result<Settings, CliError> {
    let (agents, transcripts) = (agent::names(), transcript::names().collect::<Vec<_>>());
    Ok(config::load(&LoadRequest::of_file(file, &agents, &transcripts))?.settings)
}
