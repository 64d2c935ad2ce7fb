//! Children: spawn on pipes or a PTY, read, feed stdin, stop the whole tree. Knows nothing of agents or loops.
//!
//! ```text
//! ralph ──control line──► keeper ──► the child ──► whatever the child starts
//!   ▲                                  │
//!   └────────── stdout, stderr ────────┘
//! ```
//!
//! Every child has a keeper: this same program, started once more as a small parent that adopts all that
//! the child leaves behind. The keeper lives on one end of a socket; when the other end goes, however it
//! goes, the keeper stops the whole tree. When nothing of a child is left, its keeper waits for the next one. Why not a
//! process group: agents start each tool in a session of its own. Why not from here: with several children, orphans
//! could not be told apart.

mod by_env;
mod capture;
mod child;
mod control;
mod error;
mod exit_watchdog;
mod git;
mod launch;
mod lines;
mod orphans;
mod poll;
mod pool;
mod read;
mod scratch;
mod screen;
mod signals;
mod spawn_request;
mod stdin;
mod streams;
mod supervisor;
mod tree;
mod wire;

pub use by_env::stop_marked;
pub use capture::{Bounds, Captured, Omitted, capture};
pub use child::Child;
pub use error::ProcessError;
pub use exit_watchdog::ExitWatchdog;
pub use git::read_git;
pub use lines::{Line, LineSplitter};
pub use pool::{CHUNK_BYTES, Chunk};
pub use read::{STDERR_CHUNKS, STDOUT_CHUNKS};
pub use scratch::scratch;
pub use screen::{Screen, Size};
pub use supervisor::main::keep_if_asked;
pub use supervisor::pool::Supervisors;

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use crate::event::{ProcessEnd, StreamName};

/// What to start, where, and on which streams.
#[derive(Debug, Clone)]
pub struct ProcessSpec {
    /// A path, or a name that is looked up in the child's `PATH`. A relative path is relative to `cwd`.
    pub program: PathBuf,
    pub args: Vec<OsString>,
    pub environment: Environment,
    pub cwd: PathBuf,
    pub stdin: Stdin,
    pub stdout: Transport,
}

/// What is different from the environment of this process; `set` wins over `remove`.
#[derive(Clone, Default)]
pub struct Environment {
    pub remove: Vec<OsString>,
    pub set: Vec<(OsString, OsString)>,
}

/// Names only: a value may be a secret.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set: Vec<_> = self.set.iter().map(|(name, _)| name).collect();
        f.debug_struct("Environment")
            .field("remove", &self.remove)
            .field("set", &set)
            .finish()
    }
}

/// What the child reads. It always ends, and is never a terminal, but for a screen that somebody types into.
#[derive(Clone)]
pub enum Stdin {
    Null,
    File(PathBuf),
    /// Written while the output is read, then closed.
    StdinWriter(Vec<u8>),
    /// The screen on which it also draws; only with `Transport::Screen`.
    Screen,
}

/// A size instead of the text: a prompt does not belong into a log line.
impl fmt::Debug for Stdin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("Null"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::StdinWriter(bytes) => write!(f, "Feed({} bytes)", bytes.len()),
            Self::Screen => f.write_str("Screen"),
        }
    }
}

/// What the child's stdout is. Its stderr is a pipe of its own, but for a screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Pipe,
    /// A raw terminal: no echo, no translation, so that the bytes are those of a pipe.
    Pty {
        rows: u16,
        columns: u16,
    },
    /// A terminal as people have it, echo and all, for stdout and stderr: `Child::screen` is what somebody types into.
    Screen(Size),
}

/// What a child has to say. Nothing comes after `Ended`.
#[derive(Debug)]
pub enum ChildEvent {
    Output { stream: StreamName, chunk: Chunk },
    Ended(Ended),
}

/// The child has exited, what it left behind is gone, and its output has been reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    pub end: ProcessEnd,
    /// Processes that outlived the child and had to be stopped.
    pub swept: u64,
    /// False if somebody outside the tree held stdout open past the drain limit.
    pub stdout_complete: bool,
}
