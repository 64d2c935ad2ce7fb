//! The client side of the Agent Client Protocol as a state machine: it reads the agent's lines and returns what to send.
//! It has no access to processes, threads or the clock.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

const PROTOCOL_VERSION: u64 = 1;
/// The error code of JSON-RPC for a method that the receiver does not have.
const METHOD_NOT_FOUND: i64 = -32601;

const INITIALIZE: u64 = 1;
const OPEN_SESSION: u64 = 2;
const PROMPT: u64 = 3;

/// One conversation: a session, new or resumed, and one prompt.
#[derive(Debug)]
pub(super) struct Client {
    directory: PathBuf,
    prompt: String,
    /// The session to resume.
    session: Option<String>,
    stage: Stage,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Stage {
    Initializing,
    OpeningSession,
    /// The prompt waits until the history of the session has arrived.
    LoadingHistory {
        session: String,
    },
    Prompting {
        session: String,
    },
    Ended(Answer),
}

/// Whether the agent answered the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Given,
    /// The agent answered a request with an error.
    Refused,
}

/// What a line of the agent causes.
#[derive(Debug, PartialEq)]
pub(super) enum Reaction {
    Send(Outgoing),
    /// Call `prompt` when the agent has stopped sending.
    PromptWhenQuiet,
    /// The conversation is over; late notifications may follow.
    CloseWhenQuiet,
    /// A failure that the agent did not report, as a line of its output.
    Report(String),
}

/// A message to the agent.
#[derive(Debug, PartialEq)]
pub(super) struct Outgoing {
    pub(super) line: String,
    /// The line that is stored with the agent's output. The prompt has a file of its own.
    pub(super) stored: String,
}

impl Outgoing {
    fn of(message: &Value) -> Self {
        let mut stored = message.clone();
        if let Some(params) = stored["params"].as_object_mut() {
            params.remove("prompt");
        }
        Self {
            line: format!("{message}\n"),
            stored: format!("{}\n", json!({ "sent": stored })),
        }
    }

    fn request(id: u64, method: &str, params: &Value) -> Self {
        Self::of(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
    }
}

/// A message of the agent.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Incoming<'a> {
    id: Option<Value>,
    method: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PermissionRequest {
    options: Vec<PermissionOption>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PermissionOption {
    option_id: String,
    kind: String,
}

impl Client {
    pub(super) fn new(directory: PathBuf, prompt: String, session: Option<String>) -> Self {
        Self {
            directory,
            prompt,
            session,
            stage: Stage::Initializing,
        }
    }

    /// The first message.
    pub(super) fn begin() -> Outgoing {
        let nothing = json!({ "fs": { "readTextFile": false, "writeTextFile": false }, "terminal": false });
        let params = json!({
            "protocolVersion": PROTOCOL_VERSION,
            "clientCapabilities": nothing,
            "clientInfo": { "name": "ralph", "title": "ralph", "version": env!("CARGO_PKG_VERSION") },
        });
        Outgoing::request(INITIALIZE, "initialize", &params)
    }

    /// Whether the agent has answered the prompt.
    pub(super) fn answer(&self) -> Option<Answer> {
        match self.stage {
            Stage::Ended(answer) => Some(answer),
            Stage::Initializing
            | Stage::OpeningSession
            | Stage::LoadingHistory { .. }
            | Stage::Prompting { .. } => None,
        }
    }

    /// The message that ends a running prompt.
    pub(super) fn cancel(&self) -> Option<Outgoing> {
        let Stage::Prompting { session } = &self.stage else {
            return None;
        };
        let params = json!({ "sessionId": session });
        Some(Outgoing::of(
            &json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": params }),
        ))
    }

    /// The prompt, after the history of a loaded session.
    pub(super) fn prompt(&mut self) -> Option<Outgoing> {
        match &self.stage {
            Stage::LoadingHistory { session } => {
                let session = session.clone();
                Some(self.prompt_in(session))
            }
            Stage::Initializing | Stage::OpeningSession | Stage::Prompting { .. } | Stage::Ended(_) => None,
        }
    }

    fn prompt_in(&mut self, session: String) -> Outgoing {
        let text = std::mem::take(&mut self.prompt);
        let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
        self.stage = Stage::Prompting { session };
        Outgoing::request(PROMPT, "session/prompt", &params)
    }

    /// Reads a line of the agent. Lines that are no messages have no effect.
    pub(super) fn on_line(&mut self, line: &[u8]) -> Vec<Reaction> {
        let Ok(message) = serde_json::from_slice::<Incoming<'_>>(line) else {
            return Vec::new();
        };
        match (message.method, message.id) {
            (Some(method), Some(id)) => vec![Reaction::Send(answer_request(&method, &id, message.params))],
            (Some(_), None) | (None, None) => Vec::new(),
            (None, Some(id)) => match (id.as_u64(), message.error) {
                (Some(INITIALIZE | OPEN_SESSION | PROMPT), Some(_)) => self.end(Answer::Refused),
                (Some(id), None) => self.on_result(id, message.result),
                (Some(_) | None, _) => Vec::new(),
            },
        }
    }

    fn on_result(&mut self, id: u64, result: Option<&RawValue>) -> Vec<Reaction> {
        let result: Value = result
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default();
        match (id, &self.stage) {
            (INITIALIZE, Stage::Initializing) => self.open_session(&result),
            (OPEN_SESSION, Stage::OpeningSession) => match result["sessionId"].as_str() {
                Some(id) => vec![Reaction::Send(self.prompt_in(id.to_owned()))],
                // A resumed session keeps its id.
                None => match self.session.take() {
                    Some(id) => vec![Reaction::Send(self.prompt_in(id))],
                    None => self.fail("the agent did not name its session"),
                },
            },
            (OPEN_SESSION, Stage::LoadingHistory { .. }) => vec![Reaction::PromptWhenQuiet],
            (PROMPT, Stage::Prompting { .. }) => self.end(Answer::Given),
            _ => Vec::new(),
        }
    }

    /// Opens a session. A session is resumed without its history if the agent can do that.
    fn open_session(&mut self, initialized: &Value) -> Vec<Reaction> {
        if initialized["protocolVersion"].as_u64() != Some(PROTOCOL_VERSION) {
            return self.end(Answer::Refused);
        }
        let capabilities = &initialized["agentCapabilities"];
        let mut params = json!({ "cwd": self.directory, "mcpServers": [] });
        let method = match &self.session {
            None => {
                self.stage = Stage::OpeningSession;
                "session/new"
            }
            Some(session) => {
                params["sessionId"] = json!(session);
                if !capabilities["sessionCapabilities"]["resume"].is_null() {
                    self.stage = Stage::OpeningSession;
                    "session/resume"
                } else if capabilities["loadSession"] == json!(true) {
                    let session = session.clone();
                    self.stage = Stage::LoadingHistory { session };
                    "session/load"
                } else {
                    return self.fail("the agent can neither resume nor load a session");
                }
            }
        };
        vec![Reaction::Send(Outgoing::request(OPEN_SESSION, method, &params))]
    }

    fn fail(&mut self, message: &str) -> Vec<Reaction> {
        let error = json!({ "error": { "code": METHOD_NOT_FOUND, "message": message } });
        let mut reactions = vec![Reaction::Report(format!("{error}\n"))];
        reactions.extend(self.end(Answer::Refused));
        reactions
    }

    fn end(&mut self, answer: Answer) -> Vec<Reaction> {
        self.stage = Stage::Ended(answer);
        vec![Reaction::CloseWhenQuiet]
    }
}

/// Answers a request of the agent. Permissions are granted, because the run is unattended.
fn answer_request(method: &str, id: &Value, params: Option<&RawValue>) -> Outgoing {
    if method != "session/request_permission" {
        let message = format!("method not found: {method}");
        let error = json!({ "code": METHOD_NOT_FOUND, "message": message });
        return Outgoing::of(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
    }
    let request: PermissionRequest = params
        .and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default();
    let of_kind = |kind: &str| request.options.iter().find(|option| option.kind == kind);
    // The ids differ between agents; the kinds are the protocol's. Some agents store what is always allowed, also for sessions
    // without ralph.
    let outcome = match of_kind("allow_once").or_else(|| of_kind("allow_always")) {
        Some(option) => json!({ "outcome": "selected", "optionId": option.option_id }),
        None => json!({ "outcome": "cancelled" }),
    };
    Outgoing::of(&json!({ "jsonrpc": "2.0", "id": id, "result": { "outcome": outcome } }))
}
