//! Calls of git. Hooks, the file system monitor and maintenance of a workspace do not run.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::ProvisionError;

const SETTINGS: [&str; 5] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.detachedHead=false",
];

/// Git in one directory.
#[derive(Debug, Clone)]
pub(crate) struct Git {
    directory: PathBuf,
    variables: Vec<(OsString, OsString)>,
}

impl Git {
    pub(crate) fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            variables: Vec::new(),
        }
    }

    /// Sets a variable for all calls.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Git with an index of its own, so that the agent's index stays as it is.
    pub(crate) fn with_index(&self, index: &Path) -> Self {
        self.clone().with("GIT_INDEX_FILE", index)
    }

    /// Runs git, which must succeed, and returns its trimmed output.
    pub(crate) fn run(&self, args: &[&str]) -> Result<String, ProvisionError> {
        self.run_with(args, None)
    }

    pub(crate) fn run_with(&self, args: &[&str], stdin: Option<&[u8]>) -> Result<String, ProvisionError> {
        let (ok, out, err) = self.output(args, stdin)?;
        match ok {
            true => Ok(String::from_utf8_lossy(&out).trim_end().to_owned()),
            false => Err(failed(args, &last_line(&err))),
        }
    }

    /// Returns the output as it is.
    pub(crate) fn bytes(&self, args: &[&str]) -> Result<Vec<u8>, ProvisionError> {
        let (ok, out, err) = self.output(args, None)?;
        match ok {
            true => Ok(out),
            false => Err(failed(args, &last_line(&err))),
        }
    }

    /// Runs git and returns whether it succeeded, with everything that it printed.
    pub(crate) fn try_run(&self, args: &[&str]) -> Result<(bool, String), ProvisionError> {
        let (ok, out, err) = self.output(args, None)?;
        let text = format!(
            "{}{}",
            String::from_utf8_lossy(&out),
            String::from_utf8_lossy(&err)
        );
        Ok((ok, text))
    }

    fn output(
        &self,
        args: &[&str],
        stdin: Option<&[u8]>,
    ) -> Result<(bool, Vec<u8>, Vec<u8>), ProvisionError> {
        let mut command = Command::new("git");
        command.current_dir(&self.directory);
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        command
            .args(args)
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("LC_ALL", "C")
            .envs(self.variables.iter().cloned())
            .stdin(if stdin.is_some() {
                Stdio::piped()
            } else {
                Stdio::null()
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "ralph");
            command.env(format!("GIT_{role}_EMAIL"), "ralph@localhost");
        }
        let lost = |error: std::io::Error| failed(args, &error.to_string());
        let mut child = command.spawn().map_err(lost)?;
        if let (Some(bytes), Some(mut pipe)) = (stdin, child.stdin.take()) {
            // The commands that read stdin print nothing before they have read all of it.
            pipe.write_all(bytes).map_err(lost)?;
        }
        let output = child.wait_with_output().map_err(lost)?;
        Ok((output.status.success(), output.stdout, output.stderr))
    }

    /// The object of a name; `None` if there is none.
    pub(crate) fn resolve(&self, name: &str) -> Option<String> {
        self.run(&["rev-parse", "--verify", "--quiet", "--end-of-options", name])
            .ok()
    }
}

fn failed(args: &[&str], why: &str) -> ProvisionError {
    let command = args.iter().find(|word| !word.starts_with('-')).copied();
    ProvisionError::Git {
        command: command.unwrap_or_default().to_owned(),
        why: redacted(why),
    }
}

fn last_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let line = text.lines().rev().find(|line| !line.trim().is_empty());
    line.unwrap_or("it failed").trim().to_owned()
}

/// A text without the passwords of URLs: `https://user:secret@host` becomes `https://host`.
pub(crate) fn redacted(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let end = after.find(|letter: char| letter == '/' || letter.is_whitespace());
        let authority = &after[..end.unwrap_or(after.len())];
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        out.push_str(host);
        rest = &after[authority.len()..];
    }
    out.push_str(rest);
    out
}
