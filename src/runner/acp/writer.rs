//! The thread that writes to the agent, and ends it: it cancels the prompt, closes stdin and stops the process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::process::{Child, StdinPipe};

use super::conversation::Conversation;

/// An agent that sends nothing for this long has sent everything that belongs to its last answer.
const QUIET: Duration = Duration::from_millis(200);
/// An agent that never becomes quiet is not waited for longer.
const LONGEST_QUIET: Duration = Duration::from_secs(5);
/// How long the agent may take to answer a canceled prompt.
const CANCEL_LIMIT: Duration = Duration::from_secs(1);
/// How long the agent may take to exit after the end of its stdin, before it is stopped.
const EXIT_LIMIT: Duration = Duration::from_secs(5);
const STOP_GRACE: Duration = Duration::from_secs(5);

/// A request to the writer.
#[derive(Debug)]
pub(super) enum WriterCommand {
    Write(String),
    /// The agent has sent something.
    AgentActive,
    PromptWhenQuiet,
    CloseWhenQuiet,
    /// Cancel the prompt and stop the agent.
    Stop {
        grace: Duration,
    },
    /// The agent has exited.
    Exited,
}

/// What the writer does at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    Prompt,
    Close,
    StopProcess,
}

pub(super) struct Writer {
    /// `None` once it is closed.
    stdin: Option<StdinPipe>,
    conversation: Arc<Mutex<Conversation>>,
    /// The handle owns the child.
    child: Weak<Child>,
    due: Option<(Instant, Due)>,
    /// When a wait for quiet ends at the latest.
    quiet_by: Instant,
    /// When the process of a requested stop is killed.
    stop_by: Option<Instant>,
    /// True while the writer may wait for an agent that does not read.
    blocked: Arc<AtomicBool>,
}

impl Writer {
    pub(super) fn new(stdin: StdinPipe, conversation: Arc<Mutex<Conversation>>, child: Weak<Child>) -> Self {
        Self {
            stdin: Some(stdin),
            conversation,
            child,
            due: None,
            quiet_by: Instant::now(),
            stop_by: None,
            blocked: Arc::default(),
        }
    }

    /// Whether the writer may be waiting for the agent, and cannot carry out a stop.
    pub(super) fn blocked(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.blocked)
    }

    /// Runs until the agent has exited.
    pub(super) fn run(mut self, commands: &Receiver<WriterCommand>) {
        loop {
            let command = match self.due {
                None => commands.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some((at, _)) => commands.recv_timeout(at.saturating_duration_since(Instant::now())),
            };
            match command {
                Ok(WriterCommand::Exited) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(command) => self.execute_command(command),
                Err(RecvTimeoutError::Timeout) => {
                    if let Some((_, due)) = self.due.take() {
                        self.execute(due);
                    }
                }
            }
        }
    }

    fn execute_command(&mut self, command: WriterCommand) {
        match command {
            WriterCommand::Write(line) => self.write(&line),
            WriterCommand::AgentActive => self.extend_quiet(),
            WriterCommand::PromptWhenQuiet => self.when_quiet(Due::Prompt),
            WriterCommand::CloseWhenQuiet if self.stop_by.is_some() => self.execute(Due::Close),
            WriterCommand::CloseWhenQuiet => self.when_quiet(Due::Close),
            WriterCommand::Stop { grace } => self.stop(grace),
            WriterCommand::Exited => {}
        }
    }

    fn when_quiet(&mut self, due: Due) {
        let now = Instant::now();
        self.quiet_by = now + LONGEST_QUIET;
        self.due = Some((now + QUIET, due));
    }

    fn extend_quiet(&mut self) {
        if let Some((at, Due::Prompt | Due::Close)) = &mut self.due {
            *at = (Instant::now() + QUIET).min(self.quiet_by);
        }
    }

    fn execute(&mut self, due: Due) {
        let now = Instant::now();
        match due {
            Due::Prompt => {
                let message = {
                    let mut conversation = self.conversation.lock().unwrap_or_else(PoisonError::into_inner);
                    let message = conversation.client.prompt();
                    message.iter().for_each(|message| conversation.sent(message));
                    message
                };
                if let Some(message) = message {
                    self.write(&message.line);
                }
            }
            Due::Close => {
                self.stdin = None;
                let limit = match self.stop_by {
                    Some(stop_by) => stop_by.saturating_duration_since(now) / 2,
                    None => EXIT_LIMIT,
                };
                self.due = Some((now + limit.min(EXIT_LIMIT), Due::StopProcess));
            }
            Due::StopProcess => {
                self.stdin = None;
                let stop_by = self.stop_by.unwrap_or(now + STOP_GRACE);
                if let Some(child) = self.child.upgrade() {
                    child.stop(stop_by.saturating_duration_since(now));
                }
            }
        }
    }

    /// Cancels a running prompt, so that the agent stops its tools itself; then stops the process.
    fn stop(&mut self, grace: Duration) {
        let now = Instant::now();
        if self.stop_by.replace(now + grace).is_some() {
            return self.execute(Due::StopProcess);
        }
        let cancel = {
            let mut conversation = self.conversation.lock().unwrap_or_else(PoisonError::into_inner);
            let cancel = conversation.client.cancel();
            cancel.iter().for_each(|message| conversation.sent(message));
            cancel
        };
        match cancel {
            Some(message) => {
                self.write(&message.line);
                let limit = CANCEL_LIMIT.min(grace / 2);
                self.due = Some((now + limit, Due::StopProcess));
            }
            None => self.execute(Due::StopProcess),
        }
    }

    fn write(&mut self, line: &str) {
        if let Some(stdin) = &mut self.stdin {
            self.blocked.store(true, Ordering::Release);
            stdin.write(line.as_bytes());
            self.blocked.store(false, Ordering::Release);
        }
    }
}
