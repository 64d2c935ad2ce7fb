//! Reads the inbox of the run: before each iteration, on SIGUSR1, and at most once a second in between.

use std::collections::HashMap;
use std::time::Duration;

use crate::engine::Input;
use crate::event::{NoticeLevel, RunEvent};
use crate::store::Inbox;

use super::{Driver, RunError};

const POLL_INTERVAL: Duration = Duration::from_secs(1);

pub(super) struct InboxPoller {
    inbox: Inbox,
    /// File names of the commands that the engine has not processed yet, by command id.
    pending: HashMap<String, String>,
    last_poll: Duration,
}

impl InboxPoller {
    pub(super) fn new(inbox: Inbox) -> Self {
        Self {
            inbox,
            pending: HashMap::new(),
            last_poll: Duration::ZERO,
        }
    }

    /// Removes commands that were meant for an earlier process of the run.
    pub(super) fn remove_expired(&self) {
        for entry in self.inbox.read_all() {
            if entry.request.is_ok_and(|request| request.command.expires()) {
                self.inbox.remove(&entry.file_name);
            }
        }
    }

    /// The time until the next poll.
    pub(super) fn due_in(&self, now: Duration) -> Duration {
        (self.last_poll + POLL_INTERVAL).saturating_sub(now)
    }

    /// Removes the file of a command that the journal contains.
    pub(super) fn journaled(&mut self, id: &str) {
        if let Some(file_name) = self.pending.remove(id) {
            self.inbox.remove(&file_name);
        }
    }
}

impl Driver<'_> {
    /// Queues the commands in the inbox, oldest first.
    pub(super) fn poll_inbox(&mut self) -> Result<(), RunError> {
        self.inbox.last_poll = self.clock.elapsed();
        for entry in self.inbox.inbox.read_all() {
            match entry.request {
                // The file could not be removed after an earlier poll.
                Ok(request) if self.setup.engine.has_received(&request.id) => {
                    self.inbox.inbox.remove(&entry.file_name);
                }
                Ok(request) => match self.inbox.pending.get(&request.id) {
                    None => {
                        self.inbox.pending.insert(request.id.clone(), entry.file_name);
                        self.todo.push_back(Input::Command(request));
                    }
                    Some(file_name) if *file_name == entry.file_name => {}
                    // Two files contain the same request.
                    Some(_) => self.inbox.inbox.remove(&entry.file_name),
                },
                Err(reason) => {
                    self.inbox.inbox.reject(&entry.file_name);
                    let text = format!("cannot read {} in the inbox: {reason}", entry.file_name);
                    let level = NoticeLevel::Warning;
                    self.emit(RunEvent::Notice { level, text })?;
                }
            }
        }
        Ok(())
    }
}
