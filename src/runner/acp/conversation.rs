//! The output of a conversation: the agent's lines as they arrive, and between them the messages that ralph sent.

use std::sync::mpsc::Sender;

use crate::event::StreamName;
use crate::runner::{OutputBytes, RunnerEvent, RunnerEvents};

use super::client::{Client, Outgoing, Reaction};
use super::writer::WriterCommand;

/// A longer line is not a message of the protocol.
const MAX_LINE_BYTES: usize = 64 << 20;

/// The state that the threads of a conversation share.
pub(super) struct Conversation {
    pub(super) client: Client,
    events: RunnerEvents,
    commands: Sender<WriterCommand>,
    /// The beginning of a line whose end has not arrived.
    line: Vec<u8>,
    /// Messages that are stored after the end of that line.
    unstored: Vec<String>,
}

impl Conversation {
    pub(super) fn new(client: Client, events: RunnerEvents, commands: Sender<WriterCommand>) -> Self {
        Self {
            client,
            events,
            commands,
            line: Vec::new(),
            unstored: Vec::new(),
        }
    }

    /// Passes on output of the agent and reacts to each complete line.
    pub(super) fn on_output(&mut self, bytes: &OutputBytes) {
        let (mut passed, mut line_start) = (0, 0);
        for end in memchr::memchr_iter(b'\n', bytes) {
            let rest = &bytes[line_start..end];
            let reactions = if self.line.is_empty() {
                self.client.on_line(rest)
            } else {
                self.line.extend_from_slice(rest);
                let line = std::mem::take(&mut self.line);
                self.client.on_line(&line)
            };
            line_start = end + 1;
            for reaction in reactions {
                self.react(reaction);
            }
            if !self.unstored.is_empty() {
                self.pass(bytes.slice(passed..line_start));
                passed = line_start;
                self.store_sent();
            }
        }
        if self.line.len() <= MAX_LINE_BYTES {
            self.line.extend_from_slice(&bytes[line_start..]);
        }
        if passed < bytes.len() {
            self.pass(bytes.slice(passed..bytes.len()));
        }
        drop(self.commands.send(WriterCommand::AgentActive));
    }

    /// Notes a message that was sent, for the stored output.
    pub(super) fn sent(&mut self, message: &Outgoing) {
        self.unstored.push(message.stored.clone());
        if self.line.is_empty() {
            self.store_sent();
        }
    }

    fn react(&mut self, reaction: Reaction) {
        let command = match reaction {
            Reaction::Send(message) => {
                self.unstored.push(message.stored);
                WriterCommand::Write(message.line)
            }
            Reaction::PromptWhenQuiet => WriterCommand::PromptWhenQuiet,
            Reaction::CloseWhenQuiet => WriterCommand::CloseWhenQuiet,
            Reaction::Report(line) => return self.unstored.push(line),
        };
        // The writer ends only after the agent.
        drop(self.commands.send(command));
    }

    fn store_sent(&mut self) {
        for line in std::mem::take(&mut self.unstored) {
            self.pass(OutputBytes::from(line.into_bytes()));
        }
    }

    fn pass(&self, bytes: OutputBytes) {
        (self.events)(RunnerEvent::Output {
            stream: StreamName::Stdout,
            bytes,
        });
    }
}
