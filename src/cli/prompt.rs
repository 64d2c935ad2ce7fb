//! Finds the prompt: from the command line, the configuration, or `PROMPT.md`.

use std::path::{Path, PathBuf};

use crate::config::Settings;
use crate::files::{self, FileError, ReadRule};
use crate::run::PromptSource;

/// The prompt template, which `ralph run` refuses to run unchanged.
pub(super) const TEMPLATE: &str = "\
# Task

Describe the task here, as for a colleague who knows the code but not your plans.

- What should be true when it is done? (\"`cargo test` passes\", \"every page has a title\")
- What must not change?
- Which files or documents should be read first?

Work in small steps. In each iteration: check what is already done, do the next most useful step, verify it.
";

#[derive(Debug, thiserror::Error)]
pub(super) enum PromptError {
    #[error("no prompt given")]
    None,
    #[error("{what} is empty")]
    Empty { what: String },
    #[error("{} is the unchanged template of `ralph init`", path.display())]
    Template { path: PathBuf },
    #[error("cannot read the prompt file {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: FileError },
}

impl PromptError {
    /// Returns the hints for this error, one per line.
    pub(super) fn hints(&self) -> Vec<String> {
        let hints: &[&str] = match self {
            Self::None => &[
                "pass it on the command line: ralph run -p \"make the tests pass\"",
                "write it to PROMPT.md, or pass another file with -P FILE",
                "set event_loop.prompt or event_loop.prompt_file in ralph.yml",
            ],
            Self::Empty { .. } => &["describe the task for the agent"],
            Self::Template { .. } => &["write your task into it, or pass it on the command line: -p TEXT"],
            Self::Unreadable { .. } => &["check the path, or pass the prompt with -p TEXT"],
        };
        hints.iter().map(|hint| (*hint).to_owned()).collect()
    }
}

/// Refuses to run the unchanged template of `ralph init`.
pub(super) fn refuse_template(prompt: &PromptSource) -> Result<(), PromptError> {
    match prompt {
        PromptSource::File(path)
            if files::read(path, ReadRule::PROMPT).is_ok_and(|text| text == TEMPLATE.as_bytes()) =>
        {
            Err(PromptError::Template { path: path.clone() })
        }
        PromptSource::File(_) | PromptSource::Text(_) => Ok(()),
    }
}

/// Finds the prompt and reads it once, so that errors are reported before the run starts.
pub(super) fn find(settings: &Settings, cwd: &Path) -> Result<PromptSource, PromptError> {
    let text = settings.event_loop.prompt.clone().map(PromptSource::Text);
    let file = || settings.event_loop.prompt_file.clone().map(PromptSource::File);
    let default_file = || {
        Some(cwd.join("PROMPT.md"))
            .filter(|path| path.exists())
            .map(PromptSource::File)
    };
    let source = text
        .or_else(file)
        .or_else(default_file)
        .ok_or(PromptError::None)?;
    let (empty, what) = match &source {
        PromptSource::Text(text) => (text.trim().is_empty(), "the prompt".to_owned()),
        PromptSource::File(path) => {
            let text = files::read(path, ReadRule::PROMPT).map_err(|source| PromptError::Unreadable {
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
