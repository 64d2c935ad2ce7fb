//! What a program asks the model, in whichever of the four dialects.

use serde_json::Value;

use super::http::Request;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Anthropic's Messages.
    Messages,
    /// OpenAI's Responses.
    Responses,
    /// OpenAI's chat completions.
    Chat,
    /// Google's generateContent.
    Gemini,
}

impl Dialect {
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
        let dialect = known
            .into_iter()
            .find_map(|(matches, dialect)| matches.then_some(dialect));
        dialect.filter(|_| request.method == "POST")
    }
}

/// Whose turn of the conversation it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    System,
    User,
    Model,
    Tool,
}

/// One question, with the conversation that it carries.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(super) dialect: Dialect,
    pub(super) streaming: bool,
    pub(super) model: String,
    pub(super) tools: Vec<String>,
    /// How many answers the model has given since the user last spoke.
    pub(crate) turn: usize,
    /// How many conversations had begun before this one.
    pub(crate) conversation: usize,
    /// How many questions came before.
    pub(crate) number: usize,
    /// Everything in the conversation that is text, message by message.
    pub(crate) history: Vec<(Role, Vec<String>)>,
}

impl Asked {
    pub(super) fn read(dialect: Dialect, path: &str, body: &Value) -> Self {
        let history: Vec<(Role, Vec<String>)> = match dialect {
            Dialect::Messages | Dialect::Chat => list(body, "messages").map(message).collect(),
            Dialect::Responses => list(body, "input").filter_map(item).collect(),
            Dialect::Gemini => list(body, "contents").map(content).collect(),
        };
        let streaming = match dialect {
            Dialect::Gemini => path.ends_with(":streamGenerateContent"),
            Dialect::Messages | Dialect::Responses | Dialect::Chat => body["stream"] == true,
        };
        Self {
            dialect,
            streaming,
            model: body["model"].as_str().unwrap_or("loopback").to_owned(),
            tools: tools(dialect, body),
            turn: turn(&history),
            conversation: 0,
            number: 0,
            history,
        }
    }

    /// Not part of the work: a title, a summary, the choice of a model. Such questions offer no tools.
    pub(super) fn is_aside(&self) -> bool {
        self.tools.is_empty()
    }

    /// The texts of what the user said last.
    pub(crate) fn prompt(&self) -> &[String] {
        let last = self.history.iter().rev().find(|(role, _)| *role == Role::User);
        last.map_or(&[], |(_, texts)| texts)
    }

    /// Whether somebody said this, word for word, anywhere in the conversation.
    pub(crate) fn remembers(&self, who: Role, words: &str) -> bool {
        let said = self.history.iter().filter(|(role, _)| *role == who);
        said.flat_map(|(_, texts)| texts).any(|text| text.contains(words))
    }
}

/// Model answers after the last word of the user; consecutive items of the model are one answer.
fn turn(history: &[(Role, Vec<String>)]) -> usize {
    let (mut turns, mut speaking) = (0, false);
    for (role, _) in history {
        match role {
            Role::User => (turns, speaking) = (0, false),
            Role::Model if speaking => {}
            Role::Model => (turns, speaking) = (turns + 1, true),
            Role::Tool => speaking = false,
            Role::System => {}
        }
    }
    turns
}

fn list<'a>(body: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    body[key].as_array().into_iter().flatten()
}

/// A text, or the texts of a list of parts.
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

fn tools(dialect: Dialect, body: &Value) -> Vec<String> {
    let name = |tool: &Value| tool["name"].as_str().map(str::to_owned);
    let offered = list(body, "tools");
    match dialect {
        Dialect::Messages => offered.filter_map(name).collect(),
        Dialect::Chat => offered.filter_map(|tool| name(&tool["function"])).collect(),
        Dialect::Gemini => offered
            .flat_map(|tool| list(tool, "functionDeclarations"))
            .filter_map(name)
            .collect(),
        Dialect::Responses => offered
            .flat_map(|tool| list(tool, "tools").chain([tool]))
            .filter_map(name)
            .collect(),
    }
}
