//! The commands that a run accepts, and the sender that delivers them.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Interrupt, TopicEvent};

/// A request to a run. Keys, `ralph tell`, inbox files, signals and answers all become one of these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Command {
    /// Text for the agent. It is added to the next prompt.
    Message { text: String },
    /// An event that the agent published with `ralph emit`.
    Publish {
        #[serde(flatten)]
        event: TopicEvent,
        /// The iteration in which it was published. An event of an iteration that has ended is not delivered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        iteration: Option<u64>,
    },
    /// Pause after the current iteration.
    Pause,
    /// Resume after a pause.
    Resume,
    /// End the current wait, for example for a usage limit.
    Wake,
    /// Stop the current iteration and continue with the next one.
    StopIteration,
    /// Stop the agent and end the run. A second one kills the agent.
    Stop {
        #[serde(default = "stop_on_request")]
        by: Interrupt,
    },
    /// Kill the agent without a grace period and end the run.
    Kill,
    /// Answer the question that the run asks. Ignored if the run asks none.
    Answer { answer: Answer },
    /// Answer the question of the agent. If it has asked none, the text is a message.
    AnswerQuestion { text: String },
}

/// An answer to a question of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Continue,
    /// Continue, and ask no more questions of this kind.
    ContinueWithoutAsking,
    /// The work is done. Valid only after an interactive agent has exited.
    Done,
    /// End the run.
    Quit,
}

impl Command {
    /// Whether the command concerns only the process that drives the run when it is sent. Such a command is not delivered
    /// to a process that resumes the run later.
    pub fn expires(&self) -> bool {
        match self {
            Self::Publish { .. }
            | Self::StopIteration
            | Self::Stop { .. }
            | Self::Kill
            | Self::Answer { .. } => true,
            Self::Message { .. } | Self::AnswerQuestion { .. } | Self::Pause | Self::Resume | Self::Wake => {
                false
            }
        }
    }
}

fn stop_on_request() -> Interrupt {
    Interrupt::Quit
}

/// A command with the id that its sender has given it. A run applies each id once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandRequest {
    pub id: String,
    pub command: Command,
}

/// Sends commands to one run. Clones share the sequence of ids.
#[derive(Clone)]
pub struct CommandSender {
    deliver: Arc<Deliver>,
    id_prefix: Arc<str>,
    sent: Arc<AtomicU64>,
}

type Deliver = dyn Fn(CommandRequest) -> Result<(), CommandNotSent> + Send + Sync;

/// The reason why a command could not be delivered.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct CommandNotSent(Box<dyn Error + Send + Sync>);

impl CommandNotSent {
    pub fn new(source: impl Error + Send + Sync + 'static) -> Self {
        Self(Box::new(source))
    }
}

impl CommandSender {
    /// Ids consist of the prefix and a counter, so the prefix must be unique among all senders to a run.
    pub fn new(
        id_prefix: &str,
        deliver: impl Fn(CommandRequest) -> Result<(), CommandNotSent> + Send + Sync + 'static,
    ) -> Self {
        Self {
            deliver: Arc::new(deliver),
            id_prefix: id_prefix.into(),
            sent: Arc::default(),
        }
    }

    /// Gives a command its id.
    pub fn request(&self, command: Command) -> CommandRequest {
        let number = self.sent.fetch_add(1, Ordering::Relaxed) + 1;
        CommandRequest {
            id: format!("{}-{number}", self.id_prefix),
            command,
        }
    }

    /// Delivers a request without waiting for its effect. A request that is sent twice is applied once.
    pub fn send(&self, request: CommandRequest) -> Result<(), CommandNotSent> {
        (self.deliver)(request)
    }

    /// Gives a command its id and delivers it.
    pub fn send_command(&self, command: Command) -> Result<(), CommandNotSent> {
        self.send(self.request(command))
    }
}

impl fmt::Debug for CommandSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandSender")
            .field("id_prefix", &self.id_prefix)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn commands_have_a_stable_format() {
        let cases = [
            (
                Command::Message { text: "a".into() },
                json!({"kind": "message", "text": "a"}),
            ),
            (
                Command::Publish {
                    event: TopicEvent {
                        topic: "a".into(),
                        target: None,
                        payload: "b".into(),
                    },
                    iteration: Some(3),
                },
                json!({"kind": "publish", "topic": "a", "payload": "b", "iteration": 3}),
            ),
            (Command::Pause, json!({"kind": "pause"})),
            (Command::Resume, json!({"kind": "resume"})),
            (Command::Wake, json!({"kind": "wake"})),
            (Command::StopIteration, json!({"kind": "stop_iteration"})),
            (
                Command::Stop { by: Interrupt::Term },
                json!({"kind": "stop", "by": "term"}),
            ),
            (Command::Kill, json!({"kind": "kill"})),
            (
                Command::Answer {
                    answer: Answer::ContinueWithoutAsking,
                },
                json!({"kind": "answer", "answer": "continue_without_asking"}),
            ),
        ];
        for (command, value) in cases {
            assert_eq!(serde_json::to_value(&command).unwrap(), value);
            assert_eq!(serde_json::from_value::<Command>(value).unwrap(), command);
        }
        let reply = Command::AnswerQuestion { text: "b".into() };
        let value = json!({"kind": "answer_question", "text": "b"});
        assert_eq!(serde_json::to_value(&reply).unwrap(), value);
        let short: Command = serde_json::from_value(json!({"kind": "stop"})).unwrap();
        assert_eq!(short, Command::Stop { by: Interrupt::Quit });
    }

    #[test]
    fn clones_never_give_the_same_id() {
        let (sent, received) = std::sync::mpsc::channel();
        let sender = CommandSender::new("key-7", move |request| {
            sent.send(request.id).map_err(CommandNotSent::new)
        });
        let clone = sender.clone();
        sender.send_command(Command::Pause).unwrap();
        clone.send_command(Command::Resume).unwrap();
        let request = sender.request(Command::Wake);
        clone.send(request).unwrap();
        drop((sender, clone));
        let ids: Vec<String> = received.iter().collect();
        assert_eq!(ids, ["key-7-1", "key-7-2", "key-7-3"]);
    }
}
