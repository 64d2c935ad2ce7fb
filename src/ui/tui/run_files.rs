//! What a run left on disk, as the screen asks for it. Who answers lives elsewhere: this room touches no disk.

use std::io;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use crate::event::{Record, RunHeader};

/// One try of an iteration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Attempt {
    pub iteration: u64,
    pub attempt: u64,
}

/// The files of one run.
pub trait RunFiles: Send {
    /// Tells again what was journaled under these numbers, in order.
    fn replay(&self, seqs: RangeInclusive<u64>, hear: &mut dyn FnMut(&Record)) -> io::Result<()>;

    /// The prompt that was sent.
    fn prompt(&self, which: Attempt) -> io::Result<String>;

    /// What the agent printed, from this byte on, at most so many bytes; and how long it is in all.
    fn output(&self, which: Attempt, from: u64, most: usize) -> io::Result<(Vec<u8>, u64)>;

    /// Keeps a text among the files of the run; gives its place.
    fn keep(&self, name: &str, text: &str) -> io::Result<PathBuf>;
}

/// Finds the shelf of a run, once it is known which run it is.
pub type OpenRunFiles = Box<dyn Fn(&RunHeader) -> Box<dyn RunFiles> + Send>;
