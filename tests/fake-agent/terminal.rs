//! Stands in for a login shell: leads a session on a terminal, runs one program in the foreground and records its status. It
//! stays until the terminal disappears, so that a test can inspect the state in which the program left the terminal.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::thread;

use crate::signals::with_default_signals;

pub(crate) const ARGUMENT: &str = "__terminal";

/// `TERMINAL NOTES PROGRAM ARGUMENTS…`
pub(crate) fn hold(arguments: &[OsString]) -> io::Result<u8> {
    let [terminal, notes, program, rest @ ..] = arguments else {
        return Err(io::Error::other("expected a terminal, a directory and a program"));
    };
    let notes = PathBuf::from(notes);
    rustix::process::setsid()?;
    // The first terminal that a session leader opens becomes its controlling terminal.
    let terminal = File::options().read(true).write(true).open(terminal)?;
    rustix::stdio::dup2_stdin(&terminal)?;
    rustix::stdio::dup2_stdout(&terminal)?;
    rustix::stdio::dup2_stderr(&terminal)?;
    drop(terminal);
    let mut command = Command::new(program);
    let mut child = with_default_signals(command.args(rest)).spawn()?;
    note(&notes, "pid", &child.id().to_string())?;
    let status = child.wait()?;
    note(&notes, "status", &status.to_string())?;
    loop {
        thread::park();
    }
}

/// Writes a file atomically.
fn note(notes: &std::path::Path, name: &str, text: &str) -> io::Result<()> {
    fs::write(notes.join(".new"), text)?;
    fs::rename(notes.join(".new"), notes.join(name))
}
