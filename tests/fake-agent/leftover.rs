//! Processes that the fake agent leaves behind: this program, started with a hidden first argument.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::steps;

pub(crate) const ARGUMENT: &str = "__leftover";

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leftover {
    HoldingStdout,
    OwnSession,
    /// Its parent exits before the agent does.
    Reparented,
}

const NAMES: &[(&str, Leftover)] = &[
    ("holding-stdout", Leftover::HoldingStdout),
    ("own-session", Leftover::OwnSession),
    ("reparented", Leftover::Reparented),
];

impl Leftover {
    fn name(self) -> &'static str {
        NAMES
            .iter()
            .find(|(_, leftover)| *leftover == self)
            .map_or("", |(name, _)| name)
    }

    /// Starts the process and returns when it is set up.
    pub(crate) fn leave(self, directory: &Path, seconds: &str, ignored: &[String]) -> io::Result<()> {
        let mut command = command(self, seconds, ignored)?;
        if self == Self::HoldingStdout {
            command.stdout(Stdio::inherit());
        }
        let mut child = command.spawn()?;
        match self {
            Self::HoldingStdout | Self::OwnSession => wait_until_recorded(directory, child.id()),
            Self::Reparented => child.wait().map(|_| ()),
        }
    }
}

fn command(leftover: Leftover, seconds: &str, ignored: &[String]) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([ARGUMENT, leftover.name(), seconds]).args(ignored);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Ok(command)
}

/// Runs as a leftover: `KIND SECONDS [IGNORED SIGNALS…]`.
pub(crate) fn run(arguments: &[OsString]) -> io::Result<()> {
    let arguments: Vec<String> = arguments
        .iter()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let [kind, seconds, ignored @ ..] = arguments.as_slice() else {
        return Err(io::Error::other("expected a kind and a number of seconds"));
    };
    let directory = PathBuf::from(std::env::var_os("FAKE_AGENT").unwrap_or_default());
    let kind = NAMES
        .iter()
        .find(|(name, _)| name == kind)
        .map(|(_, leftover)| *leftover);
    match kind.ok_or_else(|| io::Error::other("unknown kind of leftover"))? {
        Leftover::HoldingStdout => {}
        Leftover::OwnSession => {
            rustix::process::setsid()?;
        }
        Leftover::Reparented => {
            let child = command(Leftover::OwnSession, seconds, ignored)?.spawn()?;
            return wait_until_recorded(&directory, child.id());
        }
    }
    for name in ignored {
        steps::ignore_signal(steps::signal(name)?)?;
    }
    record_pid(&directory)?;
    thread::sleep(Duration::from_secs(seconds.parse().map_err(io::Error::other)?));
    Ok(())
}

/// Adds this process to the list of processes that must not survive the test.
pub(crate) fn record_pid(directory: &Path) -> io::Result<()> {
    let mut pids = OpenOptions::new()
        .create(true)
        .append(true)
        .open(directory.join("pids"))?;
    pids.write_all(format!("{}\n", std::process::id()).as_bytes())
}

fn wait_until_recorded(directory: &Path, pid: u32) -> io::Result<()> {
    let pid = pid.to_string();
    while !fs::read_to_string(directory.join("pids"))?
        .lines()
        .any(|line| line == pid)
    {
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}
