//! A journal told to a face while another process still writes it: until the run ends, its process is gone, or nobody
//! listens any more.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;

use crate::engine::Input;
use crate::event::{FORMAT_VERSION, Interrupt, RunEvent};
use crate::store::{Entry, Tail, is_at_work};
use crate::ui::FrontEnd;

use super::clock::Clock;
use super::queue::{self, Message, Queue};
use super::{LeftOut, RunError};

/// How the telling ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FollowEnd {
    /// All that will ever be there was told.
    Told,
    /// The run's process is gone, and the run has no end.
    Died,
    NobodyReads,
    Interrupted(Interrupt),
}

/// How often the journal is looked at while it grows, and while it does not.
const SOON: Duration = Duration::from_millis(25);
const LATER: Duration = Duration::from_millis(250);
/// A run that is silent for so long may have lost its process.
const SILENCE: Duration = Duration::from_millis(500);

/// Tells what is in the journal of a run, and what is added to it. `is_read` says whether anybody still listens.
pub fn follow(
    run: &Path,
    tail: &mut Tail,
    front_end: &mut dyn FrontEnd,
    is_read: &dyn Fn() -> bool,
) -> Result<(FollowEnd, LeftOut), RunError> {
    let mut telling = Telling {
        inbox: Queue::open().map_err(RunError::Signals)?,
        tail,
        front_end,
        left_out: LeftOut {
            empty: true,
            ..LeftOut::default()
        },
        ended: false,
    };
    let told = telling.go_on(run, is_read);
    let end = telling.inbox.reason_for(told, interrupt)?;
    Ok((end, telling.left_out))
}

struct Telling<'a> {
    inbox: Queue,
    tail: &'a mut Tail,
    front_end: &'a mut dyn FrontEnd,
    left_out: LeftOut,
    /// The last record was the end of the run.
    ended: bool,
}

impl Telling<'_> {
    fn go_on(&mut self, run: &Path, is_read: &dyn Fn() -> bool) -> Result<FollowEnd, RunError> {
        let clock = Clock::start_at(Duration::ZERO);
        let (mut wait, mut looked, mut gone) = (SOON, Duration::ZERO, false);
        let end = loop {
            let grown = self.drain()?;
            self.front_end.flush().map_err(RunError::FrontEnd)?;
            if self.ended {
                break FollowEnd::Told;
            }
            // Whoever is gone may have written his last just before we looked.
            if gone && !grown {
                break FollowEnd::Died;
            }
            let now = clock.elapsed();
            if grown {
                (wait, looked) = (SOON, now);
            } else if looked.is_zero() || now.saturating_sub(looked) >= SILENCE {
                looked = now.max(Duration::from_nanos(1));
                gone = !is_at_work(run);
                if gone {
                    continue;
                }
            }
            if !is_read() {
                break FollowEnd::NobodyReads;
            }
            self.front_end
                .tick(Timestamp::now())
                .map_err(RunError::FrontEnd)?;
            let next = self.front_end.wants_tick().into_iter().chain([wait]).min();
            if let Some(end) = self.inbox.wait(next).and_then(interrupt) {
                // Whoever ends it need not have read it.
                let _ = self.front_end.flush();
                return Ok(end);
            }
            wait = LATER.min(wait * 2);
        };
        if let Some(entry) = self.tail.rest().filter(|_| end == FollowEnd::Died) {
            self.tell(entry)?;
        }
        self.front_end.flush().map_err(RunError::FrontEnd)?;
        Ok(end)
    }

    /// Tells all that is there; says whether there was anything.
    fn drain(&mut self) -> Result<bool, RunError> {
        let mut grown = false;
        while let Some(entry) = self.tail.next_entry().map_err(RunError::JournalUnreadable)? {
            grown = true;
            self.tell(entry)?;
        }
        Ok(grown)
    }

    fn tell(&mut self, entry: Entry) -> Result<(), RunError> {
        let Some(record) = self.left_out.record_of(entry) else {
            return Ok(());
        };
        self.left_out.empty = false;
        if let RunEvent::RunStarted(header) = &record.event {
            self.left_out.later_version = Some(header.version).filter(|version| *version > FORMAT_VERSION);
        }
        self.ended = matches!(record.event, RunEvent::RunEnded { .. });
        self.front_end.accept(&record).map_err(RunError::FrontEnd)
    }
}

fn interrupt(message: Message) -> Option<FollowEnd> {
    let by = match message {
        Message::Signal(signal) => match queue::meaning(signal)? {
            Input::Interrupted(by) => by,
            _ => return None,
        },
        Message::TerminalLost => Interrupt::Hup,
        Message::Panicked => Interrupt::Term,
        Message::Child { .. }
        | Message::Said { .. }
        | Message::Unkept(_)
        | Message::HookEnded(_)
        | Message::Answer(_)
        | Message::Typed(_)
        | Message::UserCommand(_) => return None,
    };
    Some(FollowEnd::Interrupted(by))
}
