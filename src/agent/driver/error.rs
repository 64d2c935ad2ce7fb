//! What can be wrong with a driver, said so that its author can mend it.

use std::io;
use std::path::PathBuf;

use crate::event::ProcessEnd;
use crate::process::ProcessError;

use super::host::ended;

#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    #[error("driver scripts need bash, and `bash` is not in PATH")]
    NoBash,
    #[error("{} is not a bash that can host a driver: {end}{}", bash.display(), because(stderr))]
    NotBash {
        bash: PathBuf,
        end: ProcessEnd,
        stderr: String,
    },
    #[error("`{name}` cannot be the name of a driver: letters, digits, `-`, `_` and `.` only, and no path")]
    BadName { name: String },
    #[error("there is no driver `{name}`")]
    NotFound { name: String, looked: Vec<PathBuf> },
    #[error("the driver {} is a link out of its directory, to {}", path.display(), real.display())]
    Outside { path: PathBuf, real: PathBuf },
    #[error("the driver {} is not a file", path.display())]
    NotAFile { path: PathBuf },
    #[error("the driver {} can be changed by everybody on this machine", path.display())]
    WorldWritable { path: PathBuf },
    #[error("cannot read the driver {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("cannot unpack the driver {name}: {source}")]
    Unpack { name: &'static str, source: io::Error },
    #[error("the driver {path} lacks what it must define: {}{}", hooks.join(", "), because(stderr))]
    Missing {
        path: String,
        hooks: Vec<String>,
        stderr: String,
    },
    #[error("the driver {}: {hook} {}{}", path.display(), ended(*end), because(stderr))]
    Exited {
        path: PathBuf,
        hook: String,
        end: ProcessEnd,
        stderr: String,
    },
    #[error("the driver {}: {hook} did not come to an end within {seconds} s", path.display())]
    TimedOut {
        path: PathBuf,
        hook: String,
        seconds: u64,
    },
    #[error("the driver {}: {hook} printed far too much", path.display())]
    TooMuch { path: PathBuf, hook: String },
    #[error("the driver {path}: {hook} failed with status {status}{}", because(stderr))]
    Hook {
        path: String,
        hook: String,
        status: u32,
        stderr: String,
    },
    #[error("the driver {path}: {hook} printed nothing")]
    Silent { path: String, hook: String },
    #[error("the driver {path}: driver_build_command left CLAUDE_CMD_ARGS empty")]
    NoCommand { path: String },
    #[error("`{binary}`, which the driver {name} drives, is not in PATH")]
    NoProgram { name: String, binary: String },
    #[error("`{tool}` in the allowed tools is not a tool that {driver} knows")]
    UnknownTool {
        tool: String,
        driver: String,
        valid: Vec<String>,
    },
    #[error(transparent)]
    Process(#[from] ProcessError),
}

fn because(stderr: &str) -> String {
    if stderr.is_empty() {
        String::new()
    } else {
        format!("; it said: {stderr}")
    }
}
