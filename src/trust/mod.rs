//! Trust: decides whether the commands in a repository's files may run. Files that are tracked in a repository with a remote may
//! come from other people; the user allows each content once.

mod git;
mod store;

pub use git::Git;
pub use store::TrustEntry;

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::agent::driver::DriverScript;
use crate::agent::{self, DRIVER};
use crate::config::{FileCommands, LoadedConfig, user_directory};
use crate::files::{self, FileError, Links};

use git::FileOwner;
use store::TrustStore;

/// A file that defines commands, and whether they may run.
#[derive(Debug, Clone, Serialize)]
pub struct FileTrust {
    pub path: PathBuf,
    pub commands: Vec<String>,
    /// The digest; not calculated for the user's own files.
    content: Option<String>,
    #[serde(rename = "standing")]
    pub status: TrustStatus,
    /// The reason for the status.
    pub why: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrustStatus {
    /// The user's own.
    Own,
    Allowed,
    /// Must be allowed before its commands run.
    Unknown,
}

/// Which files are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustScope {
    /// The files whose commands this invocation would run.
    Command,
    /// Also every driver of the project, because `ralph trust` allows all of them.
    Project,
}

/// Whether the command line or the environment already allows all commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    Given,
    Required,
}

impl Consent {
    /// Whether `--trust` or `RALPH_TRUST=1` is given.
    pub fn of(flag: bool) -> Self {
        let given = std::env::var("RALPH_TRUST").is_ok_and(|value| value == "1" || value == "true");
        if flag || given {
            Self::Given
        } else {
            Self::Required
        }
    }
}

/// Why trust cannot be determined or stored.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error("cannot access the trust store: {0}")]
    Store(#[source] io::Error),
    #[error("cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("refusing to change trust from inside run {run}: an agent may have started this command")]
    InsideRun { run: String },
    #[error("refusing to run the commands of {}: every user of this machine can write it", path.display())]
    WorldWritable { path: PathBuf },
}

/// Determines which files are trusted, and records what the user allows.
#[derive(Debug)]
pub struct Trust {
    git: Git,
    store: TrustStore,
}

impl Trust {
    /// Opens the trust store in the user's state directory.
    pub fn open(git: Git) -> Result<Self, TrustError> {
        let store = TrustStore::open().map_err(TrustError::Store)?;
        Ok(Self { git, store })
    }

    /// Determines the trust status of each file.
    pub fn check(&self, found: Vec<FileCommands>) -> Result<Vec<FileTrust>, TrustError> {
        found
            .into_iter()
            .map(|commands| self.check_file(commands))
            .collect()
    }

    /// Allows the current content of these files.
    pub fn allow(&mut self, files: &[FileTrust]) -> Result<(), TrustError> {
        for file in files {
            self.store.allow(TrustEntry {
                content: file.content.clone().unwrap_or_default(),
                path: file.path.clone(),
                commands: file.commands.clone(),
                at: Timestamp::now(),
            });
        }
        if files.is_empty() {
            return Ok(());
        }
        self.store.save().map_err(TrustError::Store)
    }

    /// Revokes the trust in these files, regardless of their allowed content.
    pub fn revoke(&mut self, files: &[FileTrust]) -> Result<(), TrustError> {
        for file in files {
            self.store.revoke(file.content.as_deref(), &file.path);
        }
        self.store.save().map_err(TrustError::Store)
    }

    /// Everything that the user has allowed.
    pub fn entries(&self) -> &[TrustEntry] {
        &self.store.entries
    }

    /// The file in which trust is stored.
    pub fn path(&self) -> &Path {
        self.store.path()
    }

    fn check_file(&self, executes: FileCommands) -> Result<FileTrust, TrustError> {
        let FileCommands { file, text, commands } = executes;
        if fs::metadata(&file).is_ok_and(|metadata| metadata.is_file() && metadata.mode() & 0o002 != 0) {
            return Err(TrustError::WorldWritable { path: file });
        }
        let config_directory = user_directory().and_then(|directory| directory.parent().map(Path::to_owned));
        let is_own = config_directory.is_some_and(|base| {
            ["ralph", "ralphex"]
                .iter()
                .any(|name| file.starts_with(base.join(name)))
        });
        let owner = if is_own {
            FileOwner::User("in your own configuration directory")
        } else {
            self.git.owner(&file)
        };
        let (status, why, content) = match owner {
            FileOwner::User(why) => (TrustStatus::Own, why.to_owned(), None),
            FileOwner::Others(why) => {
                let content = digest(&file, text.as_deref()).map_err(|source| TrustError::Unreadable {
                    path: file.clone(),
                    source,
                })?;
                let status = if self.store.allows(&content) {
                    TrustStatus::Allowed
                } else {
                    TrustStatus::Unknown
                };
                (status, why, Some(content))
            }
        };
        Ok(FileTrust {
            path: file,
            commands,
            content,
            status,
            why,
        })
    }
}

impl FileTrust {
    /// Whether the user must allow the file before its commands run.
    pub fn is_unknown(&self) -> bool {
        self.status == TrustStatus::Unknown
    }
}

/// Lists every file that defines commands: configuration, driver scripts, and programs in the project that the
/// configuration refers to.
pub fn commands_to_run(loaded: &LoadedConfig, cwd: &Path, scope: TrustScope) -> Vec<FileCommands> {
    let mut found = loaded.file_commands();
    let settings = &loaded.settings;
    let directories = agent::driver_dirs(settings, cwd);
    let selected = settings
        .cli
        .backend
        .strip_prefix(DRIVER)
        .map(|name| directories.find(name));
    let scripts = match scope {
        TrustScope::Command => selected.into_iter().collect(),
        TrustScope::Project => directories
            .all()
            .into_iter()
            .map(|(_, script)| script)
            .collect::<Vec<_>>(),
    };
    found.extend(scripts.into_iter().filter_map(|script| match script {
        Ok(DriverScript::File(file)) => Some(FileCommands {
            file,
            text: None,
            commands: vec!["the script itself, in bash".to_owned()],
        }),
        Ok(DriverScript::Embedded { .. }) | Err(_) => None,
    }));
    let prompt = settings.event_loop.prompt_file.as_deref();
    found.extend(prompt_link(&cwd.join(prompt.unwrap_or(Path::new("PROMPT.md")))));
    // A bare name is searched for in PATH, which the user controls; a path may point into the project.
    let named = [&settings.cli.command, &settings.cli.claude_command];
    let programs = named
        .into_iter()
        .flatten()
        .filter(|command| command.contains('/'));
    let programs = programs
        .map(|command| cwd.join(command))
        .filter(|path| path.is_file());
    found.extend(programs.map(|file| FileCommands {
        file,
        text: None,
        commands: vec!["the program itself, as the agent".to_owned()],
    }));
    found
}

/// A prompt that is a link to a file outside of its project: a repository could have the agent read any file of the user.
fn prompt_link(path: &Path) -> Option<FileCommands> {
    let target = path.canonicalize().ok()?;
    let directory = path.parent()?.canonicalize().ok()?;
    let project = directory
        .ancestors()
        .find(|directory| directory.join(".git").symlink_metadata().is_ok())
        .unwrap_or(&directory);
    let is_outside = !target.starts_with(project);
    is_outside.then(|| FileCommands {
        file: path.to_owned(),
        // The link is what the user allows, whatever the file contains.
        text: Some(target.display().to_string()),
        commands: vec![format!(
            "the text of {} is sent to the agent as the prompt",
            target.display()
        )],
    })
}

/// Hashes a file, or the text that was read from it; for a driver also the files next to it, because the driver may call them.
fn digest(path: &Path, parsed: Option<&str>) -> io::Result<String> {
    let mut hash = Sha256::new();
    match parsed {
        Some(text) => {
            hash_header(path, text.len() as u64, &mut hash);
            hash.update(text);
        }
        None => hash_file(path, &mut hash)?,
    }
    if path.extension().is_some_and(|extension| extension == "sh")
        && path.parent().is_some_and(|parent| parent.ends_with("drivers"))
    {
        let directory = path.parent().unwrap_or(path);
        let mut siblings: Vec<PathBuf> = fs::read_dir(directory)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()?;
        siblings.retain(|other| other != path && other.is_file());
        siblings.sort();
        for other in siblings {
            hash_file(&other, &mut hash)?;
        }
    }
    let digest: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("sha256:{digest}"))
}

/// The name and length, so that different sets of files cannot have the same digest.
fn hash_header(path: &Path, length: u64, hash: &mut Sha256) {
    hash.update(path.file_name().unwrap_or_default().as_encoded_bytes());
    hash.update([0]);
    hash.update(length.to_le_bytes());
}

fn hash_file(path: &Path, hash: &mut Sha256) -> io::Result<()> {
    let mut file = files::open(path, Links::Follow).map_err(FileError::into_io)?;
    let length = file.metadata()?.len();
    hash_header(path, length, hash);
    // Read in chunks: an agent's program may have hundreds of megabytes.
    let mut chunk = vec![0; 64 * 1024];
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(()),
            count => hash.update(&chunk[..count]),
        }
    }
}

/// Lists the files and their commands, for a question or an error.
pub fn describe(files: &[FileTrust]) -> String {
    let mut text = String::from("the files of this repository would run these commands:\n");
    for file in files {
        text.push_str(&format!("  {} ({})\n", file.path.display(), file.why));
        for command in &file.commands {
            text.push_str(&format!("    {}\n", command.replace('\n', "\n      ")));
        }
    }
    text.pop();
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_that_was_parsed_is_hashed_and_not_the_file_as_it_is_now() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("ralph.yml");
        fs::write(&path, "evil").expect("a file");
        let evil = digest(&path, None).expect("a digest");
        fs::write(&path, "harmless").expect("a file");
        let harmless = digest(&path, None).expect("a digest");
        assert_eq!(digest(&path, Some("evil")).expect("a digest"), evil);
        assert_ne!(evil, harmless);
    }
}
