//! The run's inbox on disk, as the hands see it: looked into before each iteration, when a signal says so, and at most
//! once a second in between. A watch on the directory would notice earlier; nobody who writes a note to a loop would.

use std::collections::HashSet;
use std::time::Duration;

use crate::engine::Input;
use crate::event::{Level, RunEvent};
use crate::store::Inbox;

use super::{Driver, RunError};

const LOOK_AGAIN: Duration = Duration::from_secs(1);

pub(super) struct InboxPoller {
    orders: Inbox,
    /// What was taken in, by this process or by one before it that could not take it away any more.
    taken: HashSet<String>,
    looked: Duration,
}

impl InboxPoller {
    pub(super) fn new(orders: Inbox, taken: impl IntoIterator<Item = String>) -> Self {
        Self {
            orders,
            taken: taken.into_iter().collect(),
            looked: Duration::ZERO,
        }
    }

    /// How long until the next look.
    pub(super) fn due_in(&self, now: Duration) -> Duration {
        (self.looked + LOOK_AGAIN).saturating_sub(now)
    }

    /// The journal has it: it is not needed here any more.
    pub(super) fn journaled(&self, id: &str) {
        self.orders.remove(id);
    }
}

impl Driver<'_> {
    /// Hands on what is in the inbox, the oldest first.
    pub(super) fn poll_inbox(&mut self) -> Result<(), RunError> {
        self.mail.looked = self.clock.elapsed();
        for found in self.mail.orders.look() {
            match found.order {
                _ if self.mail.taken.contains(&found.id) => self.mail.journaled(&found.id),
                Ok(order) => {
                    self.mail.taken.insert(found.id.clone());
                    self.todo.push_back(Input::Command { id: found.id, order });
                }
                Err(why) => {
                    self.mail.orders.reject(&found.id);
                    let text = format!("the message {} in the inbox is not understood: {why}", found.id);
                    let level = Level::Warning;
                    self.emit(RunEvent::Notice { level, text })?;
                }
            }
        }
        Ok(())
    }
}
