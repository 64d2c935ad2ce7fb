//! Replays a recorded run: passes the journal to a front end, at the recorded pace or without waiting.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::event::{FORMAT_VERSION, Interrupt, Record, RunEvent};
use crate::store::JournalEntry;
use crate::ui::{CloseReason, FrontEnd};

use super::RunError;
use super::clock::Clock;
use super::commands::interrupt_of;
use super::host::Host;
use super::queue::{Message, Queue};

/// The speed of a replay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// Without waiting.
    AtOnce,
    /// This many times as fast as the run; greater than zero.
    Times(f64),
}

/// Why the replay ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayEnd {
    /// All records were passed to the front end.
    Finished,
    /// The user closed the front end.
    Left,
    Interrupted(Interrupt),
}

/// Records that could not be replayed.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct LeftOut {
    pub unknown: u64,
    /// The kinds of the unknown records.
    pub kinds: BTreeSet<String>,
    pub damaged: u64,
    /// The format version of the journal, if it is later than that of this program.
    pub later_version: Option<u32>,
    /// The journal has no records.
    pub empty: bool,
}

impl LeftOut {
    /// Returns the record of an entry. Counts an entry without one.
    pub(super) fn record_of(&mut self, entry: JournalEntry) -> Option<Box<Record>> {
        match entry {
            JournalEntry::Record(record) => return Some(record),
            JournalEntry::Unknown { kind } => {
                self.unknown += 1;
                self.kinds.insert(kind);
            }
            JournalEntry::Damaged => self.damaged += 1,
        }
        None
    }
}

/// Passes the records of a journal to a front end.
pub fn replay(
    host: &Host,
    entries: impl Iterator<Item = io::Result<JournalEntry>>,
    pace: Pace,
    front_end: &mut dyn FrontEnd,
) -> Result<(ReplayEnd, LeftOut), RunError> {
    let queue = Queue::open(host).map_err(RunError::Signals)?;
    queue.watch(front_end);
    let mut player = RecordPlayer {
        queue,
        pace,
        last_record: None,
    };
    let mut left_out = LeftOut {
        empty: true,
        ..LeftOut::default()
    };
    let end = player.play(entries, front_end, &mut left_out);
    let end = player.queue.reason_for(end, replay_end)?;
    Ok((end, left_out))
}

struct RecordPlayer {
    queue: Queue,
    pace: Pace,
    /// The time of the last record.
    last_record: Option<Timestamp>,
}

impl LeftOut {
    /// Notes the version of the journal. A newer ralph may have resumed the run of an older one.
    pub(super) fn note_version(&mut self, event: &RunEvent) {
        let version = match event {
            RunEvent::RunStarted(header) => header.version,
            RunEvent::RunResumed(resumption) => resumption.header.version,
            _ => return,
        };
        if version > FORMAT_VERSION {
            self.later_version = self.later_version.max(Some(version));
        }
    }
}

impl RecordPlayer {
    fn play(
        &mut self,
        entries: impl Iterator<Item = io::Result<JournalEntry>>,
        front_end: &mut dyn FrontEnd,
        left_out: &mut LeftOut,
    ) -> Result<ReplayEnd, RunError> {
        for entry in entries {
            let Some(record) = left_out.record_of(entry.map_err(RunError::JournalUnreadable)?) else {
                continue;
            };
            left_out.empty = false;
            left_out.note_version(&record.event);
            if let Some(end) = self.wait_for(&record, front_end)? {
                // The front end may be closed before it has shown everything.
                let _ = front_end.flush();
                return Ok(end);
            }
            front_end.accept(&record).map_err(RunError::FrontEnd)?;
        }
        front_end.flush().map_err(RunError::FrontEnd)?;
        Ok(ReplayEnd::Finished)
    }

    /// Waits for the time between the last record and this one. Returns why the replay ends if it is ended meanwhile.
    fn wait_for(
        &mut self,
        record: &Record,
        front_end: &mut dyn FrontEnd,
    ) -> Result<Option<ReplayEnd>, RunError> {
        let before = self.last_record.replace(record.at).unwrap_or(record.at);
        let gap = Duration::try_from(record.at.duration_since(before)).unwrap_or_default();
        let Pace::Times(speed) = self.pace else {
            return Ok(self.queue.take().and_then(replay_end));
        };
        let wait = Duration::try_from_secs_f64(gap.as_secs_f64() / speed).unwrap_or(Duration::MAX);
        if !wait.is_zero() {
            front_end.flush().map_err(RunError::FrontEnd)?;
        }
        let clock = Clock::start_at(Duration::ZERO);
        loop {
            let passed = clock.elapsed();
            let left = wait.saturating_sub(passed);
            // The wall-clock time of the run at this point of the replay.
            let offset = SignedDuration::try_from(passed.mul_f64(speed.min(1e6))).unwrap_or_default();
            front_end
                .tick(before.saturating_add(offset).unwrap_or(record.at))
                .map_err(RunError::FrontEnd)?;
            let message = if left.is_zero() {
                self.queue.take()
            } else {
                self.queue
                    .wait(front_end.next_tick().into_iter().chain([left]).min())
            };
            match message.and_then(replay_end) {
                Some(end) => return Ok(Some(end)),
                None if left.is_zero() => return Ok(None),
                None => {}
            }
        }
    }
}

fn replay_end(message: Message) -> Option<ReplayEnd> {
    match message {
        Message::FrontEndClosed(CloseReason::ByUser) => Some(ReplayEnd::Left),
        Message::FrontEndClosed(CloseReason::TerminalLost) => Some(ReplayEnd::Interrupted(Interrupt::Hup)),
        Message::Command(request) => interrupt_of(&request.command).map(ReplayEnd::Interrupted),
        Message::Panicked => Some(ReplayEnd::Interrupted(Interrupt::Term)),
        Message::Runner { .. }
        | Message::Started(_)
        | Message::Effect(_)
        | Message::Failed(_)
        | Message::Denied(_)
        | Message::TerminalSignal(_)
        | Message::HookEnded { .. }
        | Message::FrontEndEnded { .. }
        | Message::Typed(_) => None,
    }
}
