//! One front end of a run: the queue of its records, and the thread that passes them to it.

use std::collections::VecDeque;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::event::{Record, RunEvent};
use crate::failpoint;
use crate::panic_hook::PanicScope;
use crate::run::queue::Message;
use crate::store::{JournalEntry, JournalTail};
use crate::ui::{FrontEnd, Interest};

use super::{FrontEndId, Recorded, RecordsEnd};

/// Size of the queued records, in bytes of the journal. Beyond it, the front end reads the journal.
pub(super) const MAX_QUEUED_BYTES: u64 = 8 << 20;
/// Limit for a front end to free the terminal for an interactive agent.
const SUSPEND_TIMEOUT: Duration = Duration::from_secs(2);

/// The front end as the run sees it.
pub(super) struct Subscriber {
    pub(super) id: FrontEndId,
    interest: Interest,
    pub(super) shutdown_grace: Duration,
    pub(super) shared: Arc<Shared>,
}

impl Subscriber {
    /// Starts the thread, which reports its end to the queue.
    pub(super) fn start(
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
            FrontEndId::Traces => "traces",
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

    pub(super) fn wants(&self, event: &RunEvent) -> bool {
        self.interest.includes(event)
    }

    /// Frees the terminal; waits until the front end has done so, up to a time limit.
    pub(super) fn suspend(&self) {
        self.shared.suspend();
    }

    /// Uses the terminal again. The agent's output among these records was seen already.
    pub(super) fn resume(&self, seen: RangeInclusive<u64>) {
        self.shared.change(|state| {
            state.suspension = Suspension::None;
            state.output_seen.push(seen);
        });
    }

    /// No more records follow.
    pub(super) fn end(&self, end: RecordsEnd) {
        self.shared.change(|state| {
            state.suspension = Suspension::None;
            state.end.get_or_insert(end);
        });
    }

    /// Number of records that the front end has accepted.
    pub(super) fn accepted(&self) -> u64 {
        self.shared.accepted.load(Ordering::Relaxed)
    }

    pub(super) fn publish(&self, batch: &[Recorded]) {
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
pub(super) struct Shared {
    state: Mutex<SubscriberState>,
    changed: Condvar,
    /// Number of records that the front end has accepted.
    pub(super) accepted: AtomicU64,
}

#[derive(Default)]
pub(super) struct SubscriberState {
    queue: VecDeque<Arc<Record>>,
    pub(super) queued_bytes: u64,
    /// Position in the journal of the first record that did not fit into the queue.
    pub(super) lagged_from: Option<u64>,
    /// Sequence number of the last published record.
    published: u64,
    pub(super) suspension: Suspension,
    /// Records during which an interactive agent had the terminal.
    output_seen: Vec<RangeInclusive<u64>>,
    end: Option<RecordsEnd>,
    /// The thread waits for a change.
    is_waiting: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Suspension {
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
    pub(super) fn lock(&self) -> MutexGuard<'_, SubscriberState> {
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
