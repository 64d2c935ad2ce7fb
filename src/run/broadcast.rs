//! Passes records to the front ends, each on a thread of its own.
//!
//! The journal is written first. Records are then queued for every front end, up to a limit of bytes. A front end that
//! falls behind the limit reads the records that it missed from the journal until it has caught up. So a front end
//! receives every record in order, however slowly it reads, and never holds up the run.

mod subscriber;

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use crate::event::Record;
use crate::panic_hook::PanicScope;
use crate::ui::FrontEnd;

use super::queue::Message;
use subscriber::Subscriber;

/// Records are published when this many or this many bytes have been recorded, or when the run is idle.
const BATCH_RECORDS: usize = 256;
const BATCH_BYTES: u64 = 128 * 1024;

/// The front ends of a run.
pub struct FrontEnds {
    /// The front end that the user sees. It may read keys, and is suspended while an interactive agent uses the terminal.
    pub visible: Box<dyn FrontEnd>,
    /// A file to which the records are written as well.
    pub record_file: Option<Box<dyn FrontEnd>>,
    /// Sends spans to a collector.
    pub traces: Option<Box<dyn FrontEnd>>,
}

/// Identifies a front end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrontEndId {
    Visible,
    RecordFile,
    Traces,
}

/// Whether the recorded batch should be published now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(super) enum BatchState {
    Full,
    Collecting,
}

/// How the records end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordsEnd {
    /// The run has ended. Front ends may stay open for the user.
    RunEnded,
    /// The run was aborted by an error. Front ends close after the last record.
    Aborted,
}

pub(super) struct Broadcast {
    subscribers: Vec<Subscriber>,
    /// Recorded but not yet published.
    batch: Vec<Recorded>,
    batch_bytes: u64,
    /// Sequence number of the last recorded record.
    recorded: u64,
    /// Sequence number of the first record since the visible front end was suspended.
    suspended_from: u64,
}

struct Recorded {
    record: Arc<Record>,
    /// Position in the journal.
    bytes: Range<u64>,
}

impl Broadcast {
    /// Starts the threads of the front ends. They report their end to the queue of the run.
    pub(super) fn start(
        front_ends: FrontEnds,
        journal: &Path,
        queue: &Sender<Message>,
        panics: &PanicScope,
    ) -> io::Result<Self> {
        let all = [(FrontEndId::Visible, Some(front_ends.visible))]
            .into_iter()
            .chain([
                (FrontEndId::RecordFile, front_ends.record_file),
                (FrontEndId::Traces, front_ends.traces),
            ]);
        let subscribers = all.filter_map(|(id, front_end)| {
            front_end.map(|front_end| Subscriber::start(id, front_end, journal, queue.clone(), panics))
        });
        Ok(Self {
            subscribers: subscribers.collect::<io::Result<_>>()?,
            batch: Vec::new(),
            batch_bytes: 0,
            recorded: 0,
            suspended_from: 0,
        })
    }

    /// Adds a record that the journal has accepted, at this position.
    pub(super) fn push(&mut self, record: Record, bytes: Range<u64>) -> BatchState {
        self.recorded = record.seq;
        if !self.subscribers.iter().any(|reader| reader.wants(&record.event)) {
            return BatchState::Collecting;
        }
        self.batch_bytes += bytes.end - bytes.start;
        let record = Arc::new(record);
        self.batch.push(Recorded { record, bytes });
        match self.batch.len() >= BATCH_RECORDS || self.batch_bytes >= BATCH_BYTES {
            true => BatchState::Full,
            false => BatchState::Collecting,
        }
    }

    /// Passes the batch to the front ends. The journal must have been flushed, so that they can read it there.
    pub(super) fn publish(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        for subscriber in &self.subscribers {
            subscriber.publish(&self.batch);
        }
        self.batch.clear();
        self.batch_bytes = 0;
    }

    /// Frees the terminal for an interactive agent. Published records are shown first.
    pub(super) fn suspend(&mut self) {
        self.suspended_from = self.recorded + 1;
        if let Some(visible) = self.subscriber(FrontEndId::Visible) {
            visible.suspend();
        }
    }

    /// Shows what happened meanwhile, except for the agent's output, which the user has seen.
    pub(super) fn resume(&mut self) {
        let seen = self.suspended_from..=self.recorded;
        if let Some(visible) = self.subscriber(FrontEndId::Visible) {
            visible.resume(seen);
        }
    }

    fn subscriber(&self, id: FrontEndId) -> Option<&Subscriber> {
        self.subscribers.iter().find(|subscriber| subscriber.id == id)
    }

    /// Removes a front end whose thread has ended.
    pub(super) fn remove(&mut self, id: FrontEndId) {
        self.subscribers.retain(|subscriber| subscriber.id != id);
    }

    /// Whether every front end has ended.
    pub(super) fn is_empty(&self) -> bool {
        self.subscribers.is_empty()
    }

    /// No more records follow.
    pub(super) fn end(&mut self, end: RecordsEnd) {
        self.publish();
        for subscriber in &self.subscribers {
            subscriber.end(end);
        }
    }

    /// A time limit for front ends that accept nothing, after the user or the system has stopped the run.
    pub(super) fn shutdown(&self) -> Shutdown {
        let graces = self
            .subscribers
            .iter()
            .map(|subscriber| subscriber.shutdown_grace);
        Shutdown {
            grace: graces.max().unwrap_or_default(),
            accepted: Some(self.accepted()),
            since: Instant::now(),
        }
    }

    fn accepted(&self) -> u64 {
        self.subscribers.iter().map(Subscriber::accepted).sum()
    }
}

impl Drop for Broadcast {
    /// Ends the threads of a run that could not be started.
    fn drop(&mut self) {
        self.end(RecordsEnd::Aborted);
    }
}

/// The time since a front end last accepted a record.
pub(super) struct Shutdown {
    grace: Duration,
    /// Number of accepted records; `None` if progress does not extend the wait.
    accepted: Option<u64>,
    since: Instant,
}

impl Shutdown {
    /// The time until the front ends are abandoned, unless one of them accepts a record first.
    pub(super) fn time_left(&mut self, broadcast: &Broadcast) -> Duration {
        if let Some(before) = &mut self.accepted
            && std::mem::replace(before, broadcast.accepted()) != *before
        {
            self.since = Instant::now();
        }
        self.grace.saturating_sub(self.since.elapsed())
    }

    /// From now on, a front end that accepts records does not extend the wait.
    pub(super) fn ignore_progress(&mut self) {
        if self.accepted.take().is_some() {
            self.since = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests;
