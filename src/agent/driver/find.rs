//! Which file a driver's name stands for. Nothing is run here.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::DriverError;

/// The drivers that come with ralph.
pub static EMBEDDED: &[(&str, &str)] = &[
    ("claude-code", include_str!("../../../drivers/claude-code.sh")),
    ("codex", include_str!("../../../drivers/codex.sh")),
    ("copilot", include_str!("../../../drivers/copilot.sh")),
    ("cursor", include_str!("../../../drivers/cursor.sh")),
    ("opencode", include_str!("../../../drivers/opencode.sh")),
];

/// Where a driver's text comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Script {
    File(PathBuf),
    Embedded { name: &'static str, text: &'static str },
}

impl Script {
    /// As the user is told.
    pub fn place(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Embedded { .. } => "comes with ralph".to_owned(),
        }
    }
}

/// Where drivers are looked for: a directory that was named, then the project's own.
#[derive(Debug, Clone, Default)]
pub struct Places {
    pub named: Option<PathBuf>,
    /// Where ralph was called, and where its configuration is.
    pub projects: Vec<PathBuf>,
}

impl Places {
    pub fn directories(&self) -> Vec<PathBuf> {
        let own = self
            .projects
            .iter()
            .flat_map(|project| [project.join(".ralph/drivers"), project.join("ralph/drivers")]);
        let mut directories: Vec<PathBuf> = self.named.iter().cloned().chain(own).collect();
        let mut seen = Vec::new();
        directories.retain(|directory| {
            !seen.contains(directory) && {
                seen.push(directory.clone());
                true
            }
        });
        directories
    }

    /// The script of this name. A file of the project goes before the one that comes with ralph.
    pub fn find(&self, name: &str) -> Result<Script, DriverError> {
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
                return Ok(Script::File(path));
            }
        }
        let embedded = EMBEDDED.iter().find(|(embedded, _)| *embedded == name);
        match embedded {
            Some((name, text)) => Ok(Script::Embedded { name, text }),
            None => Err(DriverError::NotFound {
                name: name.to_owned(),
                looked: directories,
            }),
        }
    }

    /// Every driver that there is, by name; a file hides an embedded one.
    pub fn all(&self) -> Vec<(String, Result<Script, DriverError>)> {
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

/// A file that somebody else can change, or that is really elsewhere, is not the driver that it seems to be.
fn check(directory: &Path, path: &Path) -> Result<(), DriverError> {
    let unreadable = |source| DriverError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let real = path.canonicalize().map_err(unreadable)?;
    let home = directory.canonicalize().map_err(unreadable)?;
    if !real.starts_with(&home) {
        return Err(DriverError::Outside {
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
    fs::File::open(&real).map_err(unreadable).map(|_| ())
}
