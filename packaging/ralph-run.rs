//! `ralph-run`: starts the `ralph` next to it, for machines on which another program of that name comes first in PATH.

#![expect(clippy::print_stderr, reason = "a program without a terminal of its own")]

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let program = match std::env::current_exe() {
        Ok(own) => own.with_file_name("ralph"),
        Err(error) => {
            eprintln!("error: cannot determine the directory of this program: {error}");
            return ExitCode::FAILURE;
        }
    };
    // Returns only if the program cannot be started.
    let error = Command::new(&program).args(std::env::args_os().skip(1)).exec();
    eprintln!("error: cannot start {}: {error}", program.display());
    eprintln!("hint: `ralph` and `ralph-run` must be in the same directory");
    ExitCode::FAILURE
}
