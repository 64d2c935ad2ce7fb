//! Interface to the stored files of a run. The implementation is outside `ui`, which does no file access.

use std::io;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use crate::event::{Record, RunHeader};

/// Identifies one attempt of one iteration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AttemptId {
    pub iteration: u64,
    pub attempt: u64,
}

/// The files of one run.
pub trait RunFiles: Send {
    /// Passes the journal records with these sequence numbers to `on_record`, in order.
    fn replay(&self, seqs: RangeInclusive<u64>, on_record: &mut dyn FnMut(&Record)) -> io::Result<()>;

    /// The prompt of an attempt.
    fn prompt(&self, id: AttemptId) -> io::Result<String>;

    /// At most `limit` bytes of the agent's output, starting at `from`, and the total length.
    fn output(&self, id: AttemptId, from: u64, limit: usize) -> io::Result<(Vec<u8>, u64)>;

    /// The differences between two snapshots, as a patch.
    fn patch(&self, from: &str, to: &str) -> io::Result<String>;

    /// Saves a text in the run directory and returns its path.
    fn save(&self, name: &str, text: &str) -> io::Result<PathBuf>;
}

/// Opens the files of a run once its header is known.
pub type OpenRunFiles = Box<dyn Fn(&RunHeader) -> Box<dyn RunFiles> + Send>;
