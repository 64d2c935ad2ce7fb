//! What an agent said and did, in one model for all of them. The six kinds and their JSON are those of RTF1, so
//! an agent that prints `@@RALPH@@ ` before such an object is understood as it stands.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Json, Usage};

/// One thing that the agent said or did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TranscriptEvent {
    Text {
        tag: Tag,
        text: String,
        #[serde(default, skip_serializing_if = "Flow::is_message")]
        flow: Flow,
        /// The tool call (a subagent) inside which this was said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    ToolStart {
        tool: ToolStart,
    },
    ToolOutput {
        tool: ToolRef,
        text: String,
    },
    ToolEnd {
        tool: ToolEnd,
    },
    Usage {
        /// Out of the way: events are moved from hand to hand, and most are much smaller.
        usage: Box<Usage>,
    },
    Meta {
        meta: Meta,
    },
}

/// Whose words a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Tag {
    /// The assistant's answer: the only text in which markers and topics count.
    Ai,
    /// The assistant's reasoning.
    Think,
    /// The agent program speaking about itself.
    Sys,
    /// Output of a tool that belongs to no known tool call.
    Tool,
    /// The prompt, echoed.
    Prompt,
    User,
}

impl Tag {
    /// As records have it, and as readers see it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ai => "AI",
            Self::Think => "THINK",
            Self::Sys => "SYS",
            Self::Tool => "TOOL",
            Self::Prompt => "PROMPT",
            Self::User => "USER",
        }
    }
}

/// How a text joins the one of the same tag before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Flow {
    /// A new message begins with this text.
    #[default]
    Message,
    /// Goes on in the same line of the same message.
    Delta,
    /// The next line of the same message; what agents without messages print.
    Line,
}

impl Flow {
    fn is_message(&self) -> bool {
        *self == Self::Message
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolStart {
    /// Stable within one iteration.
    pub id: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Json>,
    /// The tool call (a subagent) inside which this one runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolRef {
    pub id: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolEnd {
    pub id: String,
    pub status: ToolStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    Ok,
    Fail,
    Unknown,
}

/// What an agent tells about its session rather than in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Meta {
    /// A session began, or named itself.
    Session {
        session_id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The agent program's own version.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<String>,
    },
    /// The stream's terminal event. An agent may give several; the last one counts.
    Finished {
        success: bool,
        /// The agent's own word for why it ended: `end_turn`, `error_max_turns`, `prompt_too_long` …
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The final message, where the terminal event repeats it. One that it alone gives is told as a text before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turns: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
    },
    /// Something failed; whether that fails the iteration is decided from the whole picture.
    Error {
        class: ErrorClass,
        message: String,
        /// The HTTP status, where there was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
    },
    /// The agent is trying again by itself.
    Retry {
        attempt: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_attempts: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delay_ms: Option<u64>,
        class: ErrorClass,
        message: String,
    },
    /// The state of a usage limit. Only `rejected` is a limit that was hit.
    RateLimit {
        status: RateLimitStatus,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resets_at: Option<Timestamp>,
        /// Which limit: `five_hour`, `seven_day` …
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<String>,
    },
    /// The agent's own list of what it means to do.
    Plan { items: Vec<PlanItem> },
    /// A file that the agent says it changed.
    FileChange { path: String, change: FileChangeKind },
    /// A tool call that was refused for want of permission.
    PermissionDenied { tool: String },
    /// A line that could not be read as the format says. The line itself is shown as SYS text.
    ParseError { message: String },
    /// A line longer than the limit; the raw file has all of it.
    Cut { bytes: u64 },
    /// Whatever else an agent of the user's own wants to tell.
    #[serde(untagged)]
    Other(serde_json::Map<String, serde_json::Value>),
}

/// Why something failed, in words that lead to a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// Not logged in, a bad key, no permission.
    Auth,
    RateLimit,
    /// The service is overloaded or failing (HTTP 5xx, 529).
    Overload,
    BadRequest,
    /// The prompt or the conversation does not fit the model.
    TooLong,
    Network,
    /// The model declined.
    Refused,
    MaxTurns,
    Budget,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RateLimitStatus {
    Allowed,
    Warning,
    Rejected,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanItem {
    pub text: String,
    pub status: PlanStatus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    Pending,
    Active,
    Done,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileChangeKind {
    Added,
    Modified,
    Deleted,
}

impl TranscriptEvent {
    /// A whole message.
    pub fn message(tag: Tag, text: impl Into<String>) -> Self {
        Self::Text {
            tag,
            text: text.into(),
            flow: Flow::Message,
            parent: None,
        }
    }

    /// One more line of what is being said.
    pub fn line(tag: Tag, text: impl Into<String>) -> Self {
        Self::Text {
            tag,
            text: text.into(),
            flow: Flow::Line,
            parent: None,
        }
    }

    pub fn usage(usage: Usage) -> Self {
        Self::Usage {
            usage: Box::new(usage),
        }
    }

    pub fn meta(meta: Meta) -> Self {
        Self::Meta { meta }
    }
}
