//! A recorded run, told again: the same faces, fed from the journal, at the recorded times or without waiting.

use std::collections::BTreeSet;
use std::io;
use std::sync::mpsc::Sender;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::engine::Input;
use crate::event::{FORMAT_VERSION, Interrupt, Record, RunEvent};
use crate::store::Entry;
use crate::ui::FrontEnd;
use crate::ui::tui::{CommandSender, UserCommand, UserCommandKind};

use super::RunError;
use super::clock::Clock;
use super::commands;
use super::queue::{self, Message, Queue};

/// How fast a run is told again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// Without waiting.
    AtOnce,
    /// So many times as fast as it happened; more than zero.
    Times(f64),
}

/// How the telling ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayEnd {
    Told,
    /// Nobody watches any more.
    Left,
    Interrupted(Interrupt),
}

/// What could not be told.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct LeftOut {
    pub unknown: u64,
    /// The kinds of the unknown records.
    pub kinds: BTreeSet<String>,
    pub damaged: u64,
    /// The journal's own version, where it is a later one than ours.
    pub later_version: Option<u32>,
    /// Nothing was recorded at all.
    pub empty: bool,
}

impl LeftOut {
    /// The record that an entry is; what is none is counted.
    pub(super) fn record_of(&mut self, entry: Entry) -> Option<Box<Record>> {
        match entry {
            Entry::Record(record) => return Some(record),
            Entry::Unknown { kind } => {
                self.unknown += 1;
                self.kinds.insert(kind);
            }
            Entry::Damaged => self.damaged += 1,
        }
        None
    }
}

/// Tells a journal to a face.
pub fn replay(
    entries: impl Iterator<Item = io::Result<Entry>>,
    pace: Pace,
    front_end: &mut dyn FrontEnd,
) -> Result<(ReplayEnd, LeftOut), RunError> {
    let inbox = Queue::open().map_err(RunError::Signals)?;
    let _ = front_end.set_commands(Box::new(WayOut(inbox.sender())));
    let mut teller = Teller {
        inbox,
        pace,
        told: None,
    };
    let mut left_out = LeftOut {
        empty: true,
        ..LeftOut::default()
    };
    let told = teller.tell(entries, front_end, &mut left_out);
    let end = teller.inbox.reason_for(told, end)?;
    Ok((end, left_out))
}

struct Teller {
    inbox: Queue,
    pace: Pace,
    /// When the last record happened.
    told: Option<Timestamp>,
}

impl Teller {
    fn tell(
        &mut self,
        entries: impl Iterator<Item = io::Result<Entry>>,
        front_end: &mut dyn FrontEnd,
        left_out: &mut LeftOut,
    ) -> Result<ReplayEnd, RunError> {
        for entry in entries {
            let Some(record) = left_out.record_of(entry.map_err(RunError::JournalUnreadable)?) else {
                continue;
            };
            left_out.empty = false;
            if let RunEvent::RunStarted(header) = &record.event {
                left_out.later_version = Some(header.version).filter(|version| *version > FORMAT_VERSION);
            }
            if let Some(end) = self.wait_for(&record, front_end)? {
                // Whoever ends it need not have read it.
                let _ = front_end.flush();
                return Ok(end);
            }
            front_end.accept(&record).map_err(RunError::FrontEnd)?;
        }
        front_end.flush().map_err(RunError::FrontEnd)?;
        Ok(ReplayEnd::Told)
    }

    /// Lets as much time pass as passed then; returns how it was cut short.
    fn wait_for(
        &mut self,
        record: &Record,
        front_end: &mut dyn FrontEnd,
    ) -> Result<Option<ReplayEnd>, RunError> {
        let before = self.told.replace(record.at).unwrap_or(record.at);
        let gap = Duration::try_from(record.at.duration_since(before)).unwrap_or_default();
        let Pace::Times(speed) = self.pace else {
            return Ok(self.inbox.take().and_then(end));
        };
        let wait = Duration::try_from_secs_f64(gap.as_secs_f64() / speed).unwrap_or(Duration::MAX);
        if !wait.is_zero() {
            front_end.flush().map_err(RunError::FrontEnd)?;
        }
        let clock = Clock::start_at(Duration::ZERO);
        loop {
            let passed = clock.elapsed();
            let left = wait.saturating_sub(passed);
            // What the clock on the wall showed then.
            let then = SignedDuration::try_from(passed.mul_f64(speed.min(1e6))).unwrap_or_default();
            front_end
                .tick(before.saturating_add(then).unwrap_or(record.at))
                .map_err(RunError::FrontEnd)?;
            let message = if left.is_zero() {
                self.inbox.take()
            } else {
                self.inbox
                    .wait(front_end.wants_tick().into_iter().chain([left]).min())
            };
            match message.and_then(end) {
                Some(end) => return Ok(Some(end)),
                None if left.is_zero() => return Ok(None),
                None => {}
            }
        }
    }
}

fn end(message: Message) -> Option<ReplayEnd> {
    let meaning = match message {
        Message::UserCommand(UserCommand::Left) => return Some(ReplayEnd::Left),
        Message::UserCommand(command) => commands::meaning(command)?,
        Message::Signal(signal) => queue::meaning(signal)?,
        Message::TerminalLost => Input::Interrupted(Interrupt::Hup),
        Message::Panicked => Input::Interrupted(Interrupt::Term),
        Message::Child { .. }
        | Message::Said { .. }
        | Message::Unkept(_)
        | Message::HookEnded(_)
        | Message::Answer(_)
        | Message::Typed(_) => return None,
    };
    match meaning {
        Input::Interrupted(by) => Some(ReplayEnd::Interrupted(by)),
        _ => None,
    }
}

/// What is over already can only be left.
struct WayOut(Sender<Message>);

impl CommandSender for WayOut {
    fn send(&self, command: UserCommand) -> Result<(), String> {
        // Nobody listens once everything is told.
        let _ = self.0.send(Message::UserCommand(command));
        Ok(())
    }

    fn understands(&self, _kind: UserCommandKind) -> bool {
        false
    }
}
