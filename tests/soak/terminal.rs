//! Where ralph sits: with files for its output, or at a terminal with its screen on it.

use std::fs;
use std::time::Duration;

use crate::sandbox::{Running, Sandbox};
use crate::tui::terminal::Terminal;

/// How long whoever gives the terminal back after a kill may take.
const GIVEN_BACK: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seat {
    Files,
    Screen,
}

pub(super) enum Seated {
    AtFiles(Running, std::path::PathBuf),
    AtScreen(Box<Terminal>),
}

/// What is left when ralph has ended.
pub(super) struct End {
    /// None if a signal ended it.
    pub(super) code: Option<i32>,
    pub(super) said: String,
    pub(super) terminal_is_as_it_was: bool,
}

impl Seated {
    pub(super) fn start(sandbox: &Sandbox, seat: Seat, words: &[&str]) -> Self {
        let path = format!("{}:/usr/bin:/bin", sandbox.path("bin").display());
        match seat {
            Seat::Files => {
                let mut command = sandbox.command(words);
                // Into files: nobody reads along.
                let said = sandbox.path("said");
                command
                    .env("PATH", path)
                    .stdout(fs::File::create(sandbox.path("shown")).expect("a file"))
                    .stderr(fs::File::create(&said).expect("a file"));
                Self::AtFiles(Running::start(&mut command), said)
            }
            Seat::Screen => {
                let words: Vec<&str> = words.iter().copied().chain(["--tui"]).collect();
                let environment = [("PATH", path.as_str())];
                Self::AtScreen(Box::new(Terminal::start_with(
                    sandbox,
                    &words,
                    (90, 30),
                    &environment,
                )))
            }
        }
    }

    pub(super) fn pid(&self) -> i32 {
        match self {
            Self::AtFiles(running, _) => running.pid(),
            Self::AtScreen(terminal) => terminal.pid(),
        }
    }

    pub(super) fn has_ended_within(&mut self, limit: Duration) -> bool {
        match self {
            Self::AtFiles(running, _) => running.has_ended_within(limit),
            Self::AtScreen(terminal) => terminal.status_within(limit).is_some(),
        }
    }

    /// Only of one that has ended.
    pub(super) fn look_back(self) -> End {
        match self {
            Self::AtFiles(running, said) => End {
                code: running.finish().code(),
                said: fs::read_to_string(said).unwrap_or_default(),
                terminal_is_as_it_was: true,
            },
            Self::AtScreen(terminal) => {
                let status = terminal.status_within(Duration::ZERO).unwrap_or_default();
                let code = status.strip_prefix("exit status: ");
                End {
                    code: code.and_then(|code| code.parse().ok()),
                    terminal_is_as_it_was: terminal.is_given_back_within(GIVEN_BACK),
                    said: String::from_utf8_lossy(&terminal.bytes()).into_owned(),
                }
            }
        }
    }
}
