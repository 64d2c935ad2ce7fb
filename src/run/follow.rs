//! Shows the journal of a run that another process writes, until the run ends, its process is gone, or the front end is
//! closed.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;

use crate::event::{Interrupt, RunEvent};
use crate::store::{JournalEntry, JournalTail, is_running};
use crate::ui::FrontEnd;

use super::clock::Clock;
use super::commands::interrupt_of;
use super::host::Host;
use super::queue::{Message, Queue};
use super::{LeftOut, RunError};

/// Why following ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FollowEnd {
    /// The journal was read to its end.
    Finished,
    /// The run's process is gone, and the run has no end.
    Died,
    /// The reader of the output is gone.
    OutputClosed,
    Interrupted(Interrupt),
}

/// How often the journal is polled while it grows, and while it does not.
const SOON: Duration = Duration::from_millis(25);
const LATER: Duration = Duration::from_millis(250);
/// After this time without a record, check whether the process of the run still exists.
const SILENCE: Duration = Duration::from_millis(500);

/// Passes the records of a journal to a front end, including those that are appended later. `is_read` returns whether the
/// output still has a reader.
pub fn follow(
    host: &Host,
    run: &Path,
    tail: &mut JournalTail,
    front_end: &mut dyn FrontEnd,
    is_read: &dyn Fn() -> bool,
) -> Result<(FollowEnd, LeftOut), RunError> {
    let mut follower = Follower {
        queue: Queue::open(host).map_err(RunError::Signals)?,
        tail,
        front_end,
        left_out: LeftOut {
            empty: true,
            ..LeftOut::default()
        },
        ended: false,
    };
    let end = follower.follow(run, is_read);
    let end = follower.queue.reason_for(end, interrupt)?;
    Ok((end, follower.left_out))
}

struct Follower<'a> {
    queue: Queue,
    tail: &'a mut JournalTail,
    front_end: &'a mut dyn FrontEnd,
    left_out: LeftOut,
    /// The last record was the end of the run.
    ended: bool,
}

impl Follower<'_> {
    fn follow(&mut self, run: &Path, is_read: &dyn Fn() -> bool) -> Result<FollowEnd, RunError> {
        let clock = Clock::start_at(Duration::ZERO);
        let (mut wait, mut checked, mut gone) = (SOON, Duration::ZERO, false);
        let end = loop {
            let grown = self.drain()?;
            self.front_end.flush().map_err(RunError::FrontEnd)?;
            if self.ended {
                break FollowEnd::Finished;
            }
            // The process may have written its last records just before this check.
            if gone && !grown {
                break FollowEnd::Died;
            }
            let now = clock.elapsed();
            if grown {
                (wait, checked) = (SOON, now);
            } else if checked.is_zero() || now.saturating_sub(checked) >= SILENCE {
                checked = now.max(Duration::from_nanos(1));
                gone = !is_running(run);
                if gone {
                    continue;
                }
            }
            if !is_read() {
                break FollowEnd::OutputClosed;
            }
            self.front_end
                .tick(Timestamp::now())
                .map_err(RunError::FrontEnd)?;
            let next = self.front_end.next_tick().into_iter().chain([wait]).min();
            if let Some(end) = self.queue.wait(next).and_then(interrupt) {
                // The front end may be closed before it has shown everything.
                let _ = self.front_end.flush();
                return Ok(end);
            }
            wait = LATER.min(wait * 2);
        };
        if let Some(entry) = self.tail.final_record().filter(|_| end == FollowEnd::Died) {
            self.pass_on(entry)?;
        }
        self.front_end.flush().map_err(RunError::FrontEnd)?;
        Ok(end)
    }

    /// Passes on all entries that can be read now. Returns whether there was one.
    fn drain(&mut self) -> Result<bool, RunError> {
        let mut grown = false;
        while let Some(entry) = self.tail.next_entry().map_err(RunError::JournalUnreadable)? {
            grown = true;
            self.pass_on(entry)?;
        }
        Ok(grown)
    }

    fn pass_on(&mut self, entry: JournalEntry) -> Result<(), RunError> {
        let Some(record) = self.left_out.record_of(entry) else {
            return Ok(());
        };
        self.left_out.empty = false;
        self.left_out.note_version(&record.event);
        self.ended = matches!(record.event, RunEvent::RunEnded { .. });
        self.front_end.accept(&record).map_err(RunError::FrontEnd)
    }
}

fn interrupt(message: Message) -> Option<FollowEnd> {
    let by = match message {
        Message::Command(request) => interrupt_of(&request.command)?,
        Message::Panicked => Interrupt::Term,
        Message::Runner { .. }
        | Message::Started(_)
        | Message::Effect(_)
        | Message::Failed(_)
        | Message::Denied(_)
        | Message::TerminalSignal(_)
        | Message::HookEnded { .. }
        | Message::FrontEndEnded { .. }
        | Message::FrontEndClosed(_)
        | Message::Typed(_) => return None,
    };
    Some(FollowEnd::Interrupted(by))
}
