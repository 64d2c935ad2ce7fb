//! The binary: hand over to the door, return its exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    ralph::cli::main()
}
