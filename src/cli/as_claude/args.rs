//! Parses the arguments of `ralph as-claude`; unknown claude options are ignored.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::cli::error::CliError;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct AsClaudeOptions {
    pub(super) agent: String,
    pub(super) prompt: Option<String>,
    pub(super) model: Option<String>,
    pub(super) config: Option<PathBuf>,
    pub(super) trust: bool,
}

impl AsClaudeOptions {
    pub(super) fn parse(given: &[OsString]) -> Result<Self, CliError> {
        let mut options = Self::default();
        let mut rest = given.iter().map(|word| word.to_string_lossy().into_owned());
        while let Some(word) = rest.next() {
            let (name, inline) = match word.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name.to_owned(), Some(value.to_owned())),
                _ => (word, None),
            };
            let mut value = || inline.clone().or_else(|| rest.next());
            match name.as_str() {
                "--agent" => options.agent = value().unwrap_or_default(),
                // The next argument is the prompt, even if it starts with a dash; without one, stdin is read.
                "-p" | "--print" | "--prompt" => options.prompt = value(),
                "--model" => options.model = value(),
                "--config" => options.config = value().map(PathBuf::from),
                "--trust" => options.trust = true,
                _ => {}
            }
        }
        if options.agent.is_empty() {
            return Err(CliError::AsClaude("--agent NAME is missing".to_owned()));
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &[&str]) -> AsClaudeOptions {
        AsClaudeOptions::parse(&line.iter().map(OsString::from).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn other_claude_flags_are_ignored() {
        let options = parse(&[
            "--agent",
            "codex",
            "--dangerously-skip-permissions",
            "--output-format",
            "stream-json",
            "--verbose",
            "--model=o4",
            "-p",
            "- do it",
        ]);
        assert_eq!(options.agent, "codex");
        assert_eq!(options.prompt.as_deref(), Some("- do it"));
        assert_eq!(options.model.as_deref(), Some("o4"));
        assert_eq!(parse(&["--agent=x", "-p"]).prompt, None);
        assert!(AsClaudeOptions::parse(&[]).is_err());
    }
}
