//! Passes records to the front ends, each on a thread of its own.
//!
//! The journal is written first. Records are then queued for every front end, up to a limit of bytes. A front end that
//! falls behind the limit reads the records that it missed from the journal until it has caught up. So a front end
//! receives every record in order, however slowly it reads, and never holds up the run.

use std::collections::VecDeque;
use std::io;
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::event::{Record, RunEvent};
use crate::failpoint;
use crate::panic_hook::PanicScope;
use crate::store::{JournalEntry, JournalTail};
use crate::ui::{FrontEnd, Interest};

use super::queue::Message;

/// Size of the queued records of one front end, in bytes of the journal. Beyond it, the front end reads the journal.
const MAX_QUEUED_BYTES: u64 = 8 << 20;
/// Records are published when this many or this many bytes have been recorded, or when the run is idle.
const BATCH_RECORDS: usize = 256;
const BATCH_BYTES: u64 = 128 * 1024;
/// Limit for a front end to free the terminal for an interactive agent.
const SUSPEND_TIMEOUT: Duration = Duration::from_secs(2);

/// The front ends of a run.
pub struct FrontEnds {
    /// The front end that the user sees. It may read keys, and is suspended while an interactive agent uses the terminal.
    pub visible: Box<dyn FrontEnd>,
    /// A file to which the records are written as well.
    pub record_file: Option<Box<dyn FrontEnd>>,
}

/// Identifies a front end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrontEndId {
    Visible,
    RecordFile,
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

struct Subscriber {
    id: FrontEndId,
    interest: Interest,
    shutdown_grace: Duration,
    shared: Arc<Shared>,
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
            .chain([(FrontEndId::RecordFile, front_ends.record_file)]);
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
            visible.shared.suspend();
        }
    }

    /// Shows what happened meanwhile, except for the agent's output, which the user has seen.
    pub(super) fn resume(&mut self) {
        let seen = self.suspended_from..=self.recorded;
        if let Some(visible) = self.subscriber(FrontEndId::Visible) {
            visible.shared.change(|state| {
                state.suspension = Suspension::None;
                state.output_seen.push(seen);
            });
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
            subscriber.shared.change(|state| {
                state.suspension = Suspension::None;
                state.end.get_or_insert(end);
            });
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
        let shared = self.subscribers.iter().map(|subscriber| &subscriber.shared);
        shared.map(|shared| shared.accepted.load(Ordering::Relaxed)).sum()
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

impl Subscriber {
    fn start(
        id: FrontEndId,
        front_end: Box<dyn FrontEnd>,
        journal: &Path,
        queue: Sender<Message>,
        panics: &PanicScope,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (interest, shutdown_grace) = (front_end.interest(), front_end.shutdown_grace());
        let reader = Reader {
            front_end,
            interest,
            shared: Arc::clone(&shared),
            journal: journal.to_owned(),
            output_seen: Vec::new(),
            panics: panics.clone(),
        };
        let name = match id {
            FrontEndId::Visible => "front-end",
            FrontEndId::RecordFile => "record-file",
        };
        let run = move || {
            let mut report = EndReport {
                id,
                queue,
                error: None,
            };
            report.error = reader.run().err();
        };
        panics.spawn(name, run)?;
        Ok(Self {
            id,
            interest,
            shutdown_grace,
            shared,
        })
    }

    fn wants(&self, event: &RunEvent) -> bool {
        self.interest.includes(event)
    }

    fn publish(&self, batch: &[Recorded]) {
        self.shared.change(|state| {
            for Recorded { record, bytes } in
                batch.iter().filter(|recorded| self.wants(&recorded.record.event))
            {
                state.published = record.seq;
                if state.lagged_from.is_some() {
                    continue;
                }
                let size = bytes.end - bytes.start;
                if state.queued_bytes + size > MAX_QUEUED_BYTES && !state.queue.is_empty() {
                    state.lagged_from = Some(bytes.start);
                    continue;
                }
                state.queued_bytes += size;
                state.queue.push_back(Arc::clone(record));
            }
        });
    }
}

/// Reports the end of a front end's thread, even if it panics.
struct EndReport {
    id: FrontEndId,
    queue: Sender<Message>,
    error: Option<io::Error>,
}

impl Drop for EndReport {
    fn drop(&mut self) {
        let (front_end, error) = (self.id, self.error.take());
        // Sending fails only if the run no longer waits.
        let _ = self.queue.send(Message::FrontEndEnded { front_end, error });
    }
}

/// The state that the run shares with the thread of one front end.
#[derive(Default)]
struct Shared {
    state: Mutex<SubscriberState>,
    changed: Condvar,
    /// Number of records that the front end has accepted.
    accepted: AtomicU64,
}

#[derive(Default)]
struct SubscriberState {
    queue: VecDeque<Arc<Record>>,
    queued_bytes: u64,
    /// Position in the journal of the first record that did not fit into the queue.
    lagged_from: Option<u64>,
    /// Sequence number of the last published record.
    published: u64,
    suspension: Suspension,
    /// Records during which an interactive agent had the terminal.
    output_seen: Vec<RangeInclusive<u64>>,
    end: Option<RecordsEnd>,
    /// The thread waits for a change.
    is_waiting: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Suspension {
    #[default]
    None,
    Requested,
    Suspended,
}

/// The next task of the thread of a front end.
enum Task {
    Show(VecDeque<Arc<Record>>),
    CatchUp {
        position: u64,
    },
    Suspend,
    /// Nothing happened until the next tick.
    Tick,
    End(RecordsEnd),
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, SubscriberState> {
        // No code that can panic runs while the state is inconsistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut SubscriberState)) {
        let mut state = self.lock();
        change(&mut state);
        if state.is_waiting {
            self.changed.notify_all();
        }
    }

    fn suspend(&self) {
        self.change(|state| state.suspension = Suspension::Requested);
        let deadline = Instant::now() + SUSPEND_TIMEOUT;
        let mut state = self.lock();
        while state.suspension == Suspension::Requested {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn next_task(&self, tick: Option<Duration>, output_seen: &mut Vec<RangeInclusive<u64>>) -> Task {
        let mut state = self.lock();
        loop {
            output_seen.append(&mut state.output_seen);
            if state.suspension != Suspension::Suspended {
                if !state.queue.is_empty() {
                    state.queued_bytes = 0;
                    return Task::Show(std::mem::take(&mut state.queue));
                }
                if let Some(position) = state.lagged_from {
                    return Task::CatchUp { position };
                }
                if state.suspension == Suspension::Requested {
                    return Task::Suspend;
                }
                if let Some(end) = state.end {
                    return Task::End(end);
                }
            }
            state.is_waiting = true;
            let tick = tick.filter(|_| state.suspension == Suspension::None);
            let timed_out = match tick {
                None => {
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                    false
                }
                Some(tick) => {
                    let waited = self.changed.wait_timeout(state, tick);
                    let (after, result) = waited.unwrap_or_else(PoisonError::into_inner);
                    state = after;
                    result.timed_out()
                }
            };
            state.is_waiting = false;
            if timed_out {
                return Task::Tick;
            }
        }
    }

    /// Returns to the queue if all published records up to `last` have been read from the journal.
    fn has_caught_up(&self, last: u64) -> bool {
        let mut state = self.lock();
        let caught_up = last >= state.published;
        if caught_up {
            state.lagged_from = None;
        }
        caught_up
    }
}

/// The thread of one front end.
struct Reader {
    front_end: Box<dyn FrontEnd>,
    interest: Interest,
    shared: Arc<Shared>,
    journal: PathBuf,
    output_seen: Vec<RangeInclusive<u64>>,
    panics: PanicScope,
}

impl Reader {
    fn run(mut self) -> io::Result<()> {
        loop {
            let tick = self.front_end.next_tick();
            match self.shared.next_task(tick, &mut self.output_seen) {
                Task::Show(records) => {
                    records.iter().try_for_each(|record| self.accept(record))?;
                    self.flush()?;
                }
                Task::CatchUp { position } => self.catch_up(position)?,
                Task::Suspend => {
                    self.front_end.suspend()?;
                    self.shared.lock().suspension = Suspension::Suspended;
                    self.shared.changed.notify_all();
                }
                Task::Tick => self.front_end.tick(Timestamp::now())?,
                Task::End(end) => {
                    if end == RecordsEnd::RunEnded {
                        self.front_end.finish();
                    }
                    return Ok(());
                }
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.front_end.flush()?;
        self.front_end.tick(Timestamp::now())
    }

    fn accept(&mut self, record: &Record) -> io::Result<()> {
        let is_output = matches!(
            record.event,
            RunEvent::Transcript { .. } | RunEvent::Stderr { .. }
        );
        if is_output && self.output_seen.iter().any(|seen| seen.contains(&record.seq)) {
            return Ok(());
        }
        if is_output {
            failpoint!(self.panics, FrontEnd);
        }
        self.front_end.accept(record)?;
        self.shared.accepted.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Reads the missed records from the journal, and those that are published meanwhile.
    fn catch_up(&mut self, position: u64) -> io::Result<()> {
        let mut tail = JournalTail::open_at(&self.journal, position)
            .map_err(|error| io::Error::other(error.to_string()))?;
        let mut last = 0;
        while !self.shared.has_caught_up(last) {
            let Some(entry) = tail.next_entry()? else {
                let reason = "the journal ends before the last published record";
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, reason));
            };
            if let JournalEntry::Record(record) = entry {
                last = record.seq;
                if self.interest.includes(&record.event) {
                    self.accept(&record)?;
                }
            }
        }
        self.flush()
    }
}

#[cfg(test)]
mod tests;
