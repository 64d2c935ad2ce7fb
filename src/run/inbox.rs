//! Reads the inbox of the run: before each iteration, on SIGUSR1, and at most once a second in between.

use std::collections::HashMap;
use std::time::Duration;

use crate::engine::Input;
use crate::event::{Command, CommandRequest, NoticeLevel, RunEvent};
use crate::store::{Inbox, InboxEntry};

use super::{Driver, RunError};

const POLL_INTERVAL: Duration = Duration::from_secs(1);

pub(super) struct InboxPoller {
    inbox: Inbox,
    /// Where confined agents publish events.
    agent_inbox: Inbox,
    /// The inbox and file name of the commands that the engine has not processed yet, by command id.
    pending: HashMap<String, (Inbox, String)>,
    last_poll: Duration,
}

impl InboxPoller {
    pub(super) fn new(inbox: Inbox, agent_inbox: Inbox) -> Self {
        Self {
            inbox,
            agent_inbox,
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
        if let Some((inbox, file_name)) = self.pending.remove(id) {
            inbox.remove(&file_name);
        }
    }
}

impl Driver<'_> {
    /// Queues the commands in the inbox, oldest first.
    pub(super) fn poll_inbox(&mut self) -> Result<(), RunError> {
        self.inbox.last_poll = self.clock.elapsed();
        for (inbox, author) in [
            (self.inbox.inbox.clone(), Author::User),
            (self.inbox.agent_inbox.clone(), Author::Agent),
        ] {
            for entry in inbox.read_all() {
                self.take_entry(&inbox, author, entry)?;
            }
        }
        Ok(())
    }

    fn take_entry(&mut self, inbox: &Inbox, author: Author, entry: InboxEntry) -> Result<(), RunError> {
        match entry.request.and_then(|request| author.check(request)) {
            // The file could not be removed after an earlier poll.
            Ok(request) if self.setup.engine.has_received(&request.id) => inbox.remove(&entry.file_name),
            Ok(request) => match self.inbox.pending.get(&request.id) {
                None => {
                    let place = (inbox.clone(), entry.file_name);
                    self.inbox.pending.insert(request.id.clone(), place);
                    self.todo.push_back(Input::Command(request));
                }
                Some((_, file_name)) if *file_name == entry.file_name => {}
                // Two files contain the same request.
                Some(_) => inbox.remove(&entry.file_name),
            },
            Err(reason) => {
                inbox.reject(&entry.file_name);
                let text = format!("cannot read {} in the inbox: {reason}", entry.file_name);
                let level = NoticeLevel::Warning;
                self.emit(RunEvent::Notice { level, text })?;
            }
        }
        Ok(())
    }
}

/// Who can write to an inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Author {
    User,
    Agent,
}

impl Author {
    /// A confined agent can publish events, and send no other command.
    fn check(self, request: CommandRequest) -> Result<CommandRequest, String> {
        match (self, &request.command) {
            (Self::User, _) | (Self::Agent, Command::Publish { .. }) => Ok(request),
            (Self::Agent, _) => Err("agents can only publish events".to_owned()),
        }
    }
}
