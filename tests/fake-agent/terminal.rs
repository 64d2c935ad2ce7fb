//! The part of a shell: a session with a terminal of its own, one program in its foreground, and a note of how that
//! ended. It stays until the terminal goes away, so that what the program left of the terminal can be looked at.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::thread;

pub(crate) const ARGUMENT: &str = "__terminal";

/// `TERMINAL NOTES PROGRAM ARGUMENTS…`
pub(crate) fn hold(arguments: &[OsString]) -> io::Result<u8> {
    let [terminal, notes, program, rest @ ..] = arguments else {
        return Err(io::Error::other(
            "a terminal, a directory and a program are needed",
        ));
    };
    let notes = PathBuf::from(notes);
    rustix::process::setsid()?;
    // The first terminal that the leader of a session opens is the session's own.
    let terminal = File::options().read(true).write(true).open(terminal)?;
    rustix::stdio::dup2_stdin(&terminal)?;
    rustix::stdio::dup2_stdout(&terminal)?;
    rustix::stdio::dup2_stderr(&terminal)?;
    drop(terminal);
    let mut child = Command::new(program).args(rest).spawn()?;
    note(&notes, "pid", &child.id().to_string())?;
    let status = child.wait()?;
    note(&notes, "status", &status.to_string())?;
    loop {
        thread::park();
    }
}

/// A note is there whole, or not at all.
fn note(notes: &std::path::Path, name: &str, text: &str) -> io::Result<()> {
    fs::write(notes.join(".new"), text)?;
    fs::rename(notes.join(".new"), notes.join(name))
}
