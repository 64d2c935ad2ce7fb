//! The words after `as-claude`: ours are read, claude's are ignored.

use std::ffi::OsString;
use std::path::PathBuf;

use super::super::error::CliError;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Arguments {
    pub(super) agent: String,
    pub(super) prompt: Option<String>,
    pub(super) model: Option<String>,
    pub(super) config: Option<PathBuf>,
    pub(super) trust: bool,
}

impl Arguments {
    pub(super) fn read(given: &[OsString]) -> Result<Self, CliError> {
        let mut words = Self::default();
        let mut rest = given.iter().map(|word| word.to_string_lossy().into_owned());
        while let Some(word) = rest.next() {
            let (name, attached) = match word.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name.to_owned(), Some(value.to_owned())),
                _ => (word, None),
            };
            let mut value = || attached.clone().or_else(|| rest.next());
            match name.as_str() {
                "--agent" => words.agent = value().unwrap_or_default(),
                // Whatever follows is the prompt, even if it begins with a dash; nothing means stdin.
                "-p" | "--print" | "--prompt" => words.prompt = value(),
                "--model" => words.model = value(),
                "--config" => words.config = value().map(PathBuf::from),
                "--trust" => words.trust = true,
                _ => {}
            }
        }
        if words.agent.is_empty() {
            return Err(CliError::AsClaude(
                "which agent? --agent NAME is missing".to_owned(),
            ));
        }
        Ok(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &[&str]) -> Arguments {
        Arguments::read(&line.iter().map(OsString::from).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn claudes_own_flags_are_ignored() {
        let words = read(&[
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
        assert_eq!(words.agent, "codex");
        assert_eq!(words.prompt.as_deref(), Some("- do it"));
        assert_eq!(words.model.as_deref(), Some("o4"));
        assert_eq!(read(&["--agent=x", "-p"]).prompt, None);
        assert!(Arguments::read(&[]).is_err());
    }
}
