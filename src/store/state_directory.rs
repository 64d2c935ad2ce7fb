//! The state directory, which contains everything that ralph stores about the projects of a user. It lies outside of
//! all workspaces, so that neither an agent's cleanup nor a cloned repository can change it by accident.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::find::ids_in;
use super::{Project, StoreError, private_files};

/// The variable that overrides the location of the state directory.
pub const STATE_VARIABLE: &str = "RALPH_STATE_DIR";

/// `$RALPH_STATE_DIR`, or else `$XDG_STATE_HOME/ralph`, or else `~/.local/state/ralph`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateDirectory {
    path: PathBuf,
}

/// The state directory of this user, from the environment of this process.
pub fn state_directory() -> Result<StateDirectory, StoreError> {
    StateDirectory::locate(|name| std::env::var_os(name).map(PathBuf::from))
}

impl StateDirectory {
    pub fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Determines the location from environment variables.
    pub fn locate(variable: impl Fn(&str) -> Option<PathBuf>) -> Result<Self, StoreError> {
        let set = |name| variable(name).filter(|path| !path.as_os_str().is_empty());
        if let Some(path) = set(STATE_VARIABLE) {
            return match path.is_absolute() {
                true => Ok(Self { path }),
                false => Err(StoreError::RelativeState { path }),
            };
        }
        let absolute = |name| set(name).filter(|path| path.is_absolute());
        let base =
            absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
        base.map(|base| Self::at(base.join("ralph")))
            .ok_or(StoreError::NoState)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The project with this root. Nothing is created.
    pub fn project(&self, root: &Path) -> Project {
        Project::of(self.clone(), root)
    }

    /// All projects of this user that have files.
    pub fn projects(&self) -> Vec<Project> {
        let names = ids_in(&self.projects_path());
        names
            .iter()
            .filter_map(|name| Project::stored(self.clone(), name))
            .collect()
    }

    pub(super) fn projects_path(&self) -> PathBuf {
        self.path.join("projects")
    }

    /// Creates the directory if it is missing, and checks that only the user can access it.
    pub(super) fn create(&self) -> Result<(), StoreError> {
        let create = || -> io::Result<()> {
            DirBuilder::new().recursive(true).mode(0o700).create(&self.path)?;
            let metadata = fs::metadata(&self.path)?;
            if !private_files::is_owned_by_user(metadata.uid()) {
                return Err(io::Error::other("it belongs to another user"));
            }
            match metadata.mode() & 0o077 {
                0 => Ok(()),
                _ => fs::set_permissions(&self.path, fs::Permissions::from_mode(0o700)),
            }
        };
        create().map_err(|source| StoreError::StateUnusable {
            path: self.path.clone(),
            source,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_set_variable_determines_the_location() {
        let locate = |set: &[(&str, &str)]| {
            let variable = |name: &str| {
                let found = set.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| PathBuf::from(value))
            };
            StateDirectory::locate(variable)
                .map(|state| state.path)
                .map_err(|error| error.to_string())
        };
        let all = [
            ("RALPH_STATE_DIR", "/r"),
            ("XDG_STATE_HOME", "/x"),
            ("HOME", "/h"),
        ];
        assert_eq!(locate(&all), Ok("/r".into()));
        assert_eq!(locate(&all[1..]), Ok("/x/ralph".into()));
        assert_eq!(locate(&all[2..]), Ok("/h/.local/state/ralph".into()));
        assert_eq!(
            locate(&[("XDG_STATE_HOME", "x"), ("HOME", "/h")]),
            Ok("/h/.local/state/ralph".into())
        );
        assert!(
            locate(&[("RALPH_STATE_DIR", "r")])
                .unwrap_err()
                .contains("absolute")
        );
        assert!(locate(&[]).is_err());
    }

    #[test]
    fn directory_is_private() {
        let base = tempfile::tempdir().unwrap();
        let state = StateDirectory::at(base.path().join("a/state"));
        state.create().unwrap();
        let mode = || fs::metadata(state.path()).unwrap().mode() & 0o777;
        assert_eq!(mode(), 0o700);
        fs::set_permissions(state.path(), fs::Permissions::from_mode(0o755)).unwrap();
        state.create().unwrap();
        assert_eq!(mode(), 0o700);
        let file = base.path().join("file");
        fs::write(&file, "").unwrap();
        let unusable = StateDirectory::at(file.join("state")).create();
        assert!(matches!(unusable, Err(StoreError::StateUnusable { .. })));
    }
}
