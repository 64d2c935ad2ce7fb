//! Errors of driver scripts, with enough detail for the script's author to fix them.

use std::io;
use std::path::PathBuf;

use crate::event::ProcessEnd;
use crate::process::ProcessError;

use super::host::describe_exit;

#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    #[error("driver scripts require bash, but `bash` is not in PATH")]
    NoBash,
    #[error("{} is not a usable bash: {end}{}", bash.display(), stderr_suffix(stderr))]
    NotBash {
        bash: PathBuf,
        end: ProcessEnd,
        stderr: String,
    },
    #[error("invalid driver name `{name}`: expected letters, digits, `-`, `_` and `.`")]
    BadName { name: String },
    #[error("driver `{name}` not found")]
    NotFound { name: String, searched: Vec<PathBuf> },
    #[error("driver {} links to a file outside its directory: {}", path.display(), real.display())]
    OutsideDirectory { path: PathBuf, real: PathBuf },
    #[error("driver {} is not a file", path.display())]
    NotAFile { path: PathBuf },
    #[error("driver {} is world-writable", path.display())]
    WorldWritable { path: PathBuf },
    #[error("cannot read driver {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("cannot unpack driver {name}: {source}")]
    Unpack { name: &'static str, source: io::Error },
    #[error("driver {path} does not define required hooks: {}{}", hooks.join(", "), stderr_suffix(stderr))]
    Missing {
        path: String,
        hooks: Vec<String>,
        stderr: String,
    },
    #[error("driver {}: {hook} {}{}", path.display(), describe_exit(*end), stderr_suffix(stderr))]
    Exited {
        path: PathBuf,
        hook: String,
        end: ProcessEnd,
        stderr: String,
    },
    #[error("driver {}: {hook} timed out after {seconds}s", path.display())]
    TimedOut {
        path: PathBuf,
        hook: String,
        seconds: u64,
    },
    #[error("driver {}: output of {hook} is too large", path.display())]
    OutputTooLarge { path: PathBuf, hook: String },
    #[error("driver {path}: {hook} failed with status {status}{}", stderr_suffix(stderr))]
    Hook {
        path: String,
        hook: String,
        status: u32,
        stderr: String,
    },
    #[error("driver {path}: {hook} printed nothing")]
    EmptyOutput { path: String, hook: String },
    #[error("driver {path}: driver_build_command left CLAUDE_CMD_ARGS empty")]
    NoCommand { path: String },
    #[error("`{binary}`, required by driver {name}, is not in PATH")]
    NoProgram { name: String, binary: String },
    #[error(transparent)]
    Process(#[from] ProcessError),
}

fn stderr_suffix(stderr: &str) -> String {
    if stderr.is_empty() {
        String::new()
    } else {
        format!("; stderr: {stderr}")
    }
}
