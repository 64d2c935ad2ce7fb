//! Where the task comes from: the command line, the configuration, or `PROMPT.md`; and what can be wrong with it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::config::Settings;
use crate::run::PromptSource;

use super::init;

#[derive(Debug, thiserror::Error)]
pub(super) enum PromptError {
    #[error("there is no prompt")]
    None,
    #[error("{what} is empty")]
    Empty { what: String },
    #[error("{} is still what `ralph init` wrote", path.display())]
    Template { path: PathBuf },
    #[error("cannot read the prompt file {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
}

impl PromptError {
    /// What the user can do about it, a line each.
    pub(super) fn hints(&self) -> Vec<String> {
        let hints: &[&str] = match self {
            Self::None => &[
                "give it on the command line: ralph run -p \"make the tests pass\"",
                "or in a file: write PROMPT.md here, or name one with -P FILE",
                "or in ralph.yml: event_loop.prompt, event_loop.prompt_file",
            ],
            Self::Empty { .. } => &["say what the agent is to do"],
            Self::Template { .. } => &["write your task into it, or give it on the command line: -p TEXT"],
            Self::Unreadable { .. } => &["check the path, or give the prompt with -p TEXT"],
        };
        hints.iter().map(|hint| (*hint).to_owned()).collect()
    }
}

/// A night spent on "say here what is to be done" is a night lost.
pub(super) fn refuse_template(prompt: &PromptSource) -> Result<(), PromptError> {
    match prompt {
        PromptSource::File(path) if fs::read(path).is_ok_and(|text| text == init::PROMPT.as_bytes()) => {
            Err(PromptError::Template { path: path.clone() })
        }
        PromptSource::File(_) | PromptSource::Text(_) => Ok(()),
    }
}

/// The flag or the configuration, else `PROMPT.md` where we are. Read once now, so that a mistake shows at once.
pub(super) fn find(settings: &Settings, cwd: &Path) -> Result<PromptSource, PromptError> {
    let written = settings.event_loop.prompt.clone().map(PromptSource::Text);
    let named = || settings.event_loop.prompt_file.clone().map(PromptSource::File);
    let usual = || {
        Some(cwd.join("PROMPT.md"))
            .filter(|path| path.exists())
            .map(PromptSource::File)
    };
    let source = written.or_else(named).or_else(usual).ok_or(PromptError::None)?;
    let (empty, what) = match &source {
        PromptSource::Text(text) => (text.trim().is_empty(), "the prompt".to_owned()),
        PromptSource::File(path) => {
            let text = fs::read(path).map_err(|source| PromptError::Unreadable {
                path: path.clone(),
                source,
            })?;
            (
                text.trim_ascii().is_empty(),
                format!("the prompt file {}", path.display()),
            )
        }
    };
    if empty {
        Err(PromptError::Empty { what })
    } else {
        Ok(source)
    }
}
