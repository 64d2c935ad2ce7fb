//! Starts ralph with its output in files, or with the TUI on a terminal.

use std::fs;
use std::time::Duration;

use crate::sandbox::{Running, Sandbox};
use crate::tui::terminal::Terminal;

/// The time in which the watchdog must restore the terminal after ralph was killed.
const RESTORE_LIMIT: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputTarget {
    Files,
    Screen,
}

pub(super) enum RunningOn {
    Files(Running, std::path::PathBuf),
    Screen(Box<Terminal>),
}

/// State after ralph has exited.
pub(super) struct End {
    /// None if a signal ended it.
    pub(super) code: Option<i32>,
    pub(super) text: String,
    pub(super) terminal_is_restored: bool,
}

impl RunningOn {
    pub(super) fn start(sandbox: &Sandbox, target: OutputTarget, arguments: &[&str]) -> Self {
        let path = format!("{}:/usr/bin:/bin", sandbox.path("bin").display());
        match target {
            OutputTarget::Files => {
                let mut command = sandbox.command(arguments);
                // Into files, because the test does not read while ralph runs.
                let stderr = sandbox.path("stderr");
                command
                    .env("PATH", path)
                    .stdout(fs::File::create(sandbox.path("stdout")).expect("a file"))
                    .stderr(fs::File::create(&stderr).expect("a file"));
                Self::Files(Running::start(&mut command), stderr)
            }
            OutputTarget::Screen => {
                let arguments: Vec<&str> = arguments.iter().copied().chain(["--tui"]).collect();
                let environment = [("PATH", path.as_str())];
                Self::Screen(Box::new(Terminal::start_with(
                    sandbox,
                    &arguments,
                    (90, 30),
                    &environment,
                )))
            }
        }
    }

    pub(super) fn pid(&self) -> i32 {
        match self {
            Self::Files(running, _) => running.pid(),
            Self::Screen(terminal) => terminal.pid(),
        }
    }

    pub(super) fn has_ended_within(&mut self, limit: Duration) -> bool {
        match self {
            Self::Files(running, _) => running.has_ended_within(limit),
            Self::Screen(terminal) => terminal.status_within(limit).is_some(),
        }
    }

    /// Collects the state of a ralph that has exited.
    pub(super) fn into_end(self) -> End {
        match self {
            Self::Files(running, stderr) => End {
                code: running.finish().code(),
                text: fs::read_to_string(stderr).unwrap_or_default(),
                terminal_is_restored: true,
            },
            Self::Screen(terminal) => {
                let status = terminal.status_within(Duration::ZERO).unwrap_or_default();
                let code = status.strip_prefix("exit status: ");
                End {
                    code: code.and_then(|code| code.parse().ok()),
                    terminal_is_restored: terminal.is_restored_within(RESTORE_LIMIT),
                    text: String::from_utf8_lossy(&terminal.bytes()).into_owned(),
                }
            }
        }
    }
}
