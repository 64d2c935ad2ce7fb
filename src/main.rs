//! The `ralph` binary: runs the command line and returns its exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    ralph::cli::main()
}
