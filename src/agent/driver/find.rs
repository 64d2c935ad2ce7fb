//! Finds the script of a driver by name and checks that it is safe to source. Runs nothing.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::files::{self, FileError, Links};

use super::DriverError;

/// The built-in drivers.
pub static EMBEDDED: &[(&str, &str)] = &[
    ("claude-code", include_str!("../../../drivers/claude-code.sh")),
    ("codex", include_str!("../../../drivers/codex.sh")),
    ("copilot", include_str!("../../../drivers/copilot.sh")),
    ("cursor", include_str!("../../../drivers/cursor.sh")),
    ("opencode", include_str!("../../../drivers/opencode.sh")),
];

/// The source of a driver script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DriverScript {
    File(PathBuf),
    Embedded { name: &'static str, text: &'static str },
}

impl DriverScript {
    /// The path, or a note that the driver is built in.
    pub fn location(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Embedded { .. } => "built-in".to_owned(),
        }
    }
}

/// The directories in which drivers are searched for: the configured one, then those of the project.
#[derive(Debug, Clone, Default)]
pub struct DriverDirs {
    /// `cli.driver_dir`.
    pub configured: Option<PathBuf>,
    /// From the working directory up to the project root.
    pub projects: Vec<PathBuf>,
}

impl DriverDirs {
    pub fn directories(&self) -> Vec<PathBuf> {
        let project_dirs = self
            .projects
            .iter()
            .flat_map(|project| [project.join(".ralph/drivers"), project.join("ralph/drivers")]);
        let mut directories: Vec<PathBuf> = self.configured.iter().cloned().chain(project_dirs).collect();
        let mut seen = Vec::new();
        directories.retain(|directory| {
            !seen.contains(directory) && {
                seen.push(directory.clone());
                true
            }
        });
        directories
    }

    /// Finds the script by name. A project's file takes precedence over a built-in driver.
    pub fn find(&self, name: &str) -> Result<DriverScript, DriverError> {
        if !is_name(name) {
            return Err(DriverError::BadName {
                name: name.to_owned(),
            });
        }
        let directories = self.directories();
        for directory in &directories {
            let path = directory.join(format!("{name}.sh"));
            if path.symlink_metadata().is_ok() {
                check(directory, &path)?;
                return Ok(DriverScript::File(path));
            }
        }
        let embedded = EMBEDDED.iter().find(|(embedded, _)| *embedded == name);
        match embedded {
            Some((name, text)) => Ok(DriverScript::Embedded { name, text }),
            None => Err(DriverError::NotFound {
                name: name.to_owned(),
                searched: directories,
            }),
        }
    }

    /// All drivers by name. A file hides a built-in driver of the same name.
    pub fn all(&self) -> Vec<(String, Result<DriverScript, DriverError>)> {
        let mut names: Vec<String> = EMBEDDED.iter().map(|(name, _)| (*name).to_owned()).collect();
        for entry in self
            .directories()
            .iter()
            .filter_map(|directory| fs::read_dir(directory).ok())
            .flatten()
        {
            let name = entry.ok().and_then(|entry| entry.file_name().into_string().ok());
            let name = name.and_then(|name| name.strip_suffix(".sh").map(str::to_owned));
            names.extend(name.filter(|name| is_name(name)));
        }
        names.sort_unstable();
        names.dedup();
        names
            .into_iter()
            .map(|name| (name.clone(), self.find(&name)))
            .collect()
    }
}

fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty() && name.len() <= 64 && name.chars().all(plain) && !name.starts_with(['-', '.'])
}

/// Rejects files that other users can modify and links that leave the directory.
fn check(directory: &Path, path: &Path) -> Result<(), DriverError> {
    let unreadable = |source| DriverError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let real = path.canonicalize().map_err(unreadable)?;
    let directory = directory.canonicalize().map_err(unreadable)?;
    if !real.starts_with(&directory) {
        return Err(DriverError::OutsideDirectory {
            path: path.to_owned(),
            real,
        });
    }
    let metadata = real.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(DriverError::NotAFile {
            path: path.to_owned(),
        });
    }
    if metadata.mode() & 0o002 != 0 {
        return Err(DriverError::WorldWritable {
            path: path.to_owned(),
        });
    }
    let opened = files::open(&real, Links::Follow).map_err(FileError::into_io);
    opened.map_err(unreadable).map(|_| ())
}
