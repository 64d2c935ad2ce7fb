//! A scripted program that stands in for every agent in the tests.
//!
//! `FAKE_AGENT` names a directory. Invocation `n` (1, 2, …) records its arguments, environment and working directory there
//! (`n.argv`, `n.env`, `n.cwd`) and runs `n.script`, or else `default.script`; `--version` runs `version.script` or prints
//! one line. Its pid and the pid of every process that it leaves behind are lines of `pids`. `steps.rs` defines the steps.

mod acp;
mod leftover;
#[path = "../sandbox/signals.rs"]
mod signals;
mod steps;
mod terminal;

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE_ERROR: u8 = 64;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let code = if arguments.first().is_some_and(|first| first == leftover::ARGUMENT) {
        leftover::run(&arguments[1..]).map(|()| 0)
    } else if arguments.first().is_some_and(|first| first == terminal::ARGUMENT) {
        terminal::hold(&arguments[1..])
    } else {
        run_script(&arguments)
    };
    ExitCode::from(code.unwrap_or_else(|error| {
        let _ = writeln!(io::stderr(), "fake-agent: {error}");
        USAGE_ERROR
    }))
}

fn run_script(arguments: &[OsString]) -> io::Result<u8> {
    if arguments.first().is_some_and(|first| first == "--version") {
        let script = directory().map(|directory| directory.join("version.script"));
        let Some(script) = script.ok().filter(|script| script.exists()) else {
            writeln!(io::stdout(), "fake-agent 9.9.9")?;
            return Ok(0);
        };
        return steps::Interpreter::new(directory()?, "version".into()).run(&fs::read_to_string(script)?);
    }
    let directory = directory()?;
    let number = claim(&directory)?;
    record(&directory, &number, arguments)?;
    leftover::record_pid(&directory)?;
    let own = directory.join(format!("{number}.script"));
    let script = if own.exists() {
        own
    } else {
        directory.join("default.script")
    };
    let script = fs::read_to_string(&script)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", script.display())))?;
    steps::Interpreter::new(directory, number).run(&script)
}

fn directory() -> io::Result<PathBuf> {
    std::env::var_os("FAKE_AGENT")
        .map(PathBuf::from)
        .ok_or_else(|| io::Error::other("FAKE_AGENT is not set"))
}

/// Claims the first number that no other invocation has taken.
fn claim(directory: &Path) -> io::Result<String> {
    let mut number = 1_u64;
    loop {
        let claimed = directory.join(format!("{number}.claimed"));
        match OpenOptions::new().write(true).create_new(true).open(claimed) {
            Ok(_) => return Ok(number.to_string()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    }
}

fn record(directory: &Path, number: &str, arguments: &[OsString]) -> io::Result<()> {
    let mut argv = Vec::new();
    for argument in arguments {
        argv.extend_from_slice(argument.as_bytes());
        argv.push(0);
    }
    let mut environment = Vec::new();
    for (name, value) in std::env::vars_os() {
        environment.extend_from_slice(name.as_bytes());
        environment.push(b'=');
        environment.extend_from_slice(value.as_bytes());
        environment.push(0);
    }
    fs::write(directory.join(format!("{number}.argv")), argv)?;
    fs::write(directory.join(format!("{number}.env")), environment)?;
    fs::write(
        directory.join(format!("{number}.cwd")),
        std::env::current_dir()?.as_os_str().as_bytes(),
    )
}
