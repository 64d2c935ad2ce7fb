//! Requests of the agent programs in the four APIs.

use serde_json::Value;

use super::http::Request;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Api {
    /// Anthropic's Messages.
    Messages,
    /// OpenAI's Responses.
    Responses,
    /// OpenAI's chat completions.
    Chat,
    /// Google's generateContent.
    Gemini,
}

impl Api {
    pub(super) fn of(request: &Request) -> Option<Self> {
        let path = &request.path;
        let known = [
            (path.ends_with("/messages"), Self::Messages),
            (path.ends_with("/responses"), Self::Responses),
            (path.ends_with("/chat/completions"), Self::Chat),
            (
                path.ends_with(":streamGenerateContent") || path.ends_with(":generateContent"),
                Self::Gemini,
            ),
        ];
        let api_kind = known
            .into_iter()
            .find_map(|(matches, api_kind)| matches.then_some(api_kind));
        api_kind.filter(|_| request.method == "POST")
    }
}

/// Role of a message in the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    System,
    User,
    Model,
    Tool,
}

/// One request with its conversation.
#[derive(Debug, Clone)]
pub(crate) struct ModelRequest {
    pub(super) api_kind: Api,
    pub(super) streaming: bool,
    pub(super) model: String,
    pub(super) tools: Vec<String>,
    /// Number of model replies since the last user message.
    pub(crate) turn: usize,
    /// Number of conversations that started before this one.
    pub(crate) conversation: usize,
    /// Number of requests before this one.
    pub(crate) number: usize,
    /// The texts of the conversation, message by message.
    pub(crate) history: Vec<(Role, Vec<String>)>,
}

impl ModelRequest {
    /// Whether the request uses the API of Claude.
    pub(crate) fn is_of_claude(&self) -> bool {
        self.api_kind == Api::Messages
    }

    pub(super) fn read(api_kind: Api, path: &str, body: &Value) -> Self {
        let history: Vec<(Role, Vec<String>)> = match api_kind {
            Api::Messages | Api::Chat => list(body, "messages").map(message).collect(),
            Api::Responses => list(body, "input").filter_map(item).collect(),
            Api::Gemini => list(body, "contents").map(content).collect(),
        };
        let streaming = match api_kind {
            Api::Gemini => path.ends_with(":streamGenerateContent"),
            Api::Messages | Api::Responses | Api::Chat => body["stream"] == true,
        };
        Self {
            api_kind,
            streaming,
            model: body["model"].as_str().unwrap_or("loopback").to_owned(),
            tools: tools(api_kind, body),
            turn: turn(&history),
            conversation: 0,
            number: 0,
            history,
        }
    }

    /// Returns whether this is a request for a title, a summary or a model choice. Such requests offer no tools.
    pub(super) fn is_side_request(&self) -> bool {
        self.tools.is_empty()
    }

    /// Returns the texts of the last user message.
    pub(crate) fn prompt(&self) -> &[String] {
        let last = self.history.iter().rev().find(|(role, _)| *role == Role::User);
        last.map_or(&[], |(_, texts)| texts)
    }

    /// Returns whether a message of this role contains the text.
    pub(crate) fn contains(&self, role: Role, text: &str) -> bool {
        let messages = self.history.iter().filter(|(other, _)| *other == role);
        messages
            .flat_map(|(_, texts)| texts)
            .any(|other| other.contains(text))
    }
}

/// Counts the model replies after the last user message; consecutive items of the model are one reply.
fn turn(history: &[(Role, Vec<String>)]) -> usize {
    let (mut turns, mut in_reply) = (0, false);
    for (role, _) in history {
        match role {
            Role::User => (turns, in_reply) = (0, false),
            Role::Model if in_reply => {}
            Role::Model => (turns, in_reply) = (turns + 1, true),
            Role::Tool => in_reply = false,
            Role::System => {}
        }
    }
    turns
}

fn list<'a>(body: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    body[key].as_array().into_iter().flatten()
}

/// Returns a text, or the texts of a list of parts.
fn texts(content: &Value) -> Vec<String> {
    match content {
        Value::String(text) => vec![text.clone()],
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

fn has_part(content: &Value, is: impl Fn(&Value) -> bool) -> bool {
    content.as_array().is_some_and(|parts| parts.iter().any(is))
}

fn message(message: &Value) -> (Role, Vec<String>) {
    let content = &message["content"];
    let role = match message["role"].as_str() {
        Some("assistant") => Role::Model,
        Some("tool") => Role::Tool,
        Some("user") if has_part(content, |part| part["type"] == "tool_result") => Role::Tool,
        Some("user") => Role::User,
        _ => Role::System,
    };
    (role, texts(content))
}

fn item(item: &Value) -> Option<(Role, Vec<String>)> {
    let role = match (item["type"].as_str(), item["role"].as_str()) {
        (Some("message") | None, Some("user")) => Role::User,
        (Some("message") | None, Some("assistant")) => Role::Model,
        (Some("message") | None, _) => Role::System,
        (Some(kind), _) if kind.ends_with("_output") => Role::Tool,
        (Some("reasoning"), _) => Role::Model,
        (Some(kind), _) if kind.ends_with("_call") => Role::Model,
        _ => return None,
    };
    Some((role, texts(&item["content"])))
}

fn content(content: &Value) -> (Role, Vec<String>) {
    let parts = &content["parts"];
    let role = match content["role"].as_str() {
        Some("model") => Role::Model,
        _ if has_part(parts, |part| part["functionResponse"].is_object()) => Role::Tool,
        _ => Role::User,
    };
    (role, texts(parts))
}

fn tools(api_kind: Api, body: &Value) -> Vec<String> {
    let name = |tool: &Value| tool["name"].as_str().map(str::to_owned);
    let offered = list(body, "tools");
    match api_kind {
        Api::Messages => offered.filter_map(name).collect(),
        Api::Chat => offered.filter_map(|tool| name(&tool["function"])).collect(),
        Api::Gemini => offered
            .flat_map(|tool| list(tool, "functionDeclarations"))
            .filter_map(name)
            .collect(),
        Api::Responses => offered
            .flat_map(|tool| list(tool, "tools").chain([tool]))
            .filter_map(name)
            .collect(),
    }
}
