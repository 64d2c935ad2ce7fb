//! Child processes: starts them on pipes or a PTY, reads their output, writes their stdin, and stops whole process trees.
//!
//! ```text
//! ralph ──control line──► supervisor ──► the child ──► everything that the child starts
//!   ▲                                       │
//!   └──────────── stdout, stderr ───────────┘
//! ```
//!
//! Every child has a supervisor: the same program, started again as a small parent process that adopts the orphans of the
//! child. It holds one end of a socket; when the other end is closed, for whatever reason, it stops the whole tree. After
//! the exit of the tree it waits for the next child. A process group is not enough, because agents start each tool in a
//! session of its own. Ralph itself cannot be the parent, because it could not tell the orphans of several children apart.

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
mod output_reader;
mod poll;
mod pool;
mod read;
mod sandbox;
mod scratch;
mod screen;
mod signals;
mod spawn_request;
mod stdin;
mod streams;
mod supervisor;
mod tree;
mod wire;

pub use by_env::stop_by_env;
#[cfg(feature = "test-support")]
pub use capture::Omitted;
pub use capture::{Bounds, Captured, capture};
pub use child::Child;
pub use error::ProcessError;
pub use exit_watchdog::ExitWatchdog;
pub use git::{GitCommand, GitStore, read_git, run_git};
pub use lines::LineSplitter;
pub use output_reader::OutputReader;
pub use pool::Chunk;
#[cfg(feature = "test-support")]
pub use read::STDOUT_CHUNKS;
pub use sandbox::{Access, Confinement, ConfinementStep, Network, PathRule, SandboxSupport, sandbox_support};
pub use scratch::scratch;
pub use screen::{Screen, Size};
pub use stdin::StdinPipe;
pub use supervisor::main::supervise_if_requested;
pub use supervisor::pool::{OrphanRule, Supervisors};

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::event::{ProcessEnd, StreamName};

/// A program to start, its environment, directory and streams.
#[derive(Debug, Clone)]
pub struct ProcessSpec {
    /// A path, or a name that is looked up in the child's `PATH`. A relative path is relative to `cwd`.
    pub program: PathBuf,
    pub args: Vec<OsString>,
    pub environment: Environment,
    pub cwd: PathBuf,
    pub stdin: Stdin,
    pub stdout: Transport,
    /// What the child may see, change and reach; `None` for whatever ralph may.
    pub confinement: Option<Arc<Confinement>>,
}

/// Changes to the inherited environment. `set` takes precedence over `remove`.
#[derive(Clone, Default)]
pub struct Environment {
    pub remove: Vec<OsString>,
    pub set: Vec<(OsString, OsString)>,
}

/// Shows only names, because a value may be a secret.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set: Vec<_> = self.set.iter().map(|(name, _)| name).collect();
        f.debug_struct("Environment")
            .field("remove", &self.remove)
            .field("set", &set)
            .finish()
    }
}

/// The child's stdin. Except for `Screen`, it is never a terminal and always ends.
#[derive(Clone)]
pub enum Stdin {
    Null,
    File(PathBuf),
    /// Bytes that are written while the output is read. Then stdin is closed.
    Bytes(Vec<u8>),
    /// A pipe that `Child::take_stdin` returns.
    Pipe,
    /// The terminal of `Transport::Screen`.
    Screen,
}

/// Shows the size instead of the text, because a prompt does not belong into a log line.
impl fmt::Debug for Stdin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("Null"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Bytes(bytes) => write!(f, "Bytes({} bytes)", bytes.len()),
            Self::Pipe => f.write_str("Pipe"),
            Self::Screen => f.write_str("Screen"),
        }
    }
}

/// The child's stdout. Except for `Screen`, stderr is a separate pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Pipe,
    /// A raw terminal, without echo or translation, so that the bytes are the same as on a pipe.
    Pty {
        rows: u16,
        columns: u16,
    },
    /// An ordinary terminal for stdin, stdout and stderr. `Child::screen` is its other side.
    Screen(Size),
}

/// An event of a child. `Ended` is the last one.
#[derive(Debug)]
pub enum ChildEvent {
    Output { stream: StreamName, chunk: Chunk },
    Ended(Ended),
}

/// The child and its process tree have exited, and the output has been reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    pub end: ProcessEnd,
    /// Processes that outlived the child and had to be stopped.
    pub swept: u64,
    /// False if a process outside the tree held stdout open past the time limit.
    pub stdout_complete: bool,
}
