//! Runs an agent that speaks the Agent Client Protocol: JSON-RPC messages, one per line, on its stdin and stdout.
//!
//! `client` decides what to send, `conversation` passes on the output, `writer` writes and ends the agent.

mod client;
mod conversation;
#[cfg(test)]
mod tests;
mod writer;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::event::{AgentEnd, StreamName};
use crate::process::{Child, ChildEvent, Supervisors};

use super::process::{command_of, identity_of};
use super::{AgentJob, Handle, OutputBytes, Runner, RunnerEvent, RunnerEvents, StartError, Started};

use client::{Answer, Client};
use conversation::Conversation;
use writer::{Writer, WriterCommand};

/// Starts agents that speak the Agent Client Protocol.
#[derive(Debug, Clone)]
pub struct AcpRunner {
    supervisors: Supervisors,
}

impl AcpRunner {
    pub fn new(supervisors: Supervisors) -> Self {
        Self { supervisors }
    }
}

impl Runner<AgentJob> for AcpRunner {
    fn start(&self, mut job: AgentJob, events: RunnerEvents) -> Result<Started, StartError> {
        let prompt = std::mem::take(&mut job.prompt);
        let client = Client::new(job.directory.clone(), prompt, job.session.clone());
        let command = job.command().map_err(|error| StartError(error.to_string()))?;
        let spec = command.confined(&self.supervisors, &events)?;
        let (commands, received) = mpsc::channel();
        let conversation = Conversation::new(client, Arc::clone(&events), commands.clone());
        let conversation = Arc::new(Mutex::new(conversation));
        let report = reporter(Arc::clone(&conversation), events, commands.clone());
        let mut child =
            Child::spawn(&self.supervisors, &spec, report).map_err(|error| StartError(error.to_string()))?;
        let identity = identity_of(&child);
        let stdin = child.take_stdin();
        let child = Arc::new(child);
        let mut blocked = Arc::default();
        if let Some(stdin) = stdin {
            let begin = Client::begin();
            let mut shared = conversation.lock().unwrap_or_else(PoisonError::into_inner);
            shared.sent(&begin);
            drop(shared);
            drop(commands.send(WriterCommand::Write(begin.line)));
            let writer = Writer::new(stdin, conversation, Arc::downgrade(&child));
            blocked = writer.blocked();
            let started = self
                .supervisors
                .panics()
                .spawn("acp writer", move || writer.run(&received));
            started.map_err(|error| StartError(error.to_string()))?;
        }
        Ok(Started {
            identity,
            command: command_of(&spec),
            handle: Box::new(AcpHandle {
                child,
                commands,
                blocked,
            }),
        })
    }
}

/// Passes on the events of the process. An agent that has answered has succeeded, however it exits.
fn reporter(
    conversation: Arc<Mutex<Conversation>>,
    events: RunnerEvents,
    commands: Sender<WriterCommand>,
) -> impl Fn(ChildEvent) + Send + Sync {
    move |event| match event {
        ChildEvent::Output {
            stream: StreamName::Stdout,
            chunk,
        } => {
            let mut conversation = conversation.lock().unwrap_or_else(PoisonError::into_inner);
            conversation.on_output(&OutputBytes::from(chunk));
        }
        ChildEvent::Output { stream, chunk } => events(RunnerEvent::Output {
            stream,
            bytes: OutputBytes::from(chunk),
        }),
        ChildEvent::Ended(ended) => {
            let answer = conversation
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .client
                .answer();
            drop(commands.send(WriterCommand::Exited));
            events(RunnerEvent::Ended {
                end: match answer {
                    Some(Answer::Given) => AgentEnd::Exited { code: 0 },
                    Some(Answer::Refused) | None => ended.end.into(),
                },
                swept: ended.swept,
            });
        }
    }
}

struct AcpHandle {
    child: Arc<Child>,
    commands: Sender<WriterCommand>,
    blocked: Arc<AtomicBool>,
}

impl Handle for AcpHandle {
    fn stop(&self, grace: Duration) {
        let sent = self.commands.send(WriterCommand::Stop { grace });
        if sent.is_err() || self.blocked.load(Ordering::Acquire) {
            self.child.stop(grace);
        }
    }

    fn kill(&self) {
        self.child.kill();
    }
}
