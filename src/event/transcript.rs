//! Transcript events: the output of any agent in one model. Their JSON is the RTF1 format, in which an agent prints
//! each event after the prefix `@@RALPH@@ `.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Json, Usage};

/// An event in the agent's output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TranscriptEvent {
    /// Text of the agent.
    Text {
        tag: Tag,
        text: String,
        #[serde(default, skip_serializing_if = "Flow::is_message")]
        flow: Flow,
        /// The tool call that runs the subagent which produced this text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    /// A tool call started.
    ToolStart { tool: ToolStart },
    /// A tool call printed output.
    ToolOutput { tool: ToolRef, text: String },
    /// A tool call ended.
    ToolEnd { tool: ToolEnd },
    /// Tokens and cost.
    Usage {
        // Boxed to keep events small: most of them have no usage.
        usage: Box<Usage>,
    },
    /// Information about the session.
    Meta { meta: Meta },
}

/// The source of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Tag {
    /// The assistant's answer. Markers and topic events count only here.
    Ai,
    /// The assistant's reasoning.
    Think,
    /// A message of the agent program.
    Sys,
    /// Tool output without a known tool call.
    Tool,
    /// The prompt, repeated in the agent's output.
    Prompt,
    /// Any other input to the agent.
    User,
}

impl Tag {
    /// The name used in records and in the user interface.
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

/// How a text joins the previous text with the same tag.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Flow {
    /// The text starts a new message.
    #[default]
    Message,
    /// The text continues the last line of the message.
    Delta,
    /// The text is the next line of the message. Formats without messages use only this value.
    Line,
}

impl Flow {
    fn is_message(&self) -> bool {
        *self == Self::Message
    }
}

/// The start of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolStart {
    /// Identifies the tool call within one iteration.
    pub id: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Json>,
    /// The tool call that runs the subagent which made this call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
}

/// A reference to a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolRef {
    pub id: String,
}

/// The end of a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolEnd {
    pub id: String,
    pub status: ToolStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

/// Result of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    Ok,
    Fail,
    /// The agent ended before it reported a result, or the result is not recognized.
    Unknown,
}

/// Information about the agent's session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Meta {
    /// A session started, or the agent reported its id.
    Session {
        session_id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Version of the agent program.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<String>,
    },
    /// The terminal event. If there are several, the last one counts.
    Finished {
        success: bool,
        /// The agent's reason for ending, such as `end_turn`, `error_max_turns` or `prompt_too_long`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The final message as the terminal event repeats it, or the message of a failure. A final message that occurs
        /// only in the terminal event is also a text event, so readers of the transcript may ignore this field.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turns: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
    },
    /// The agent reported an error. It does not necessarily fail the iteration.
    Error {
        class: ErrorClass,
        message: String,
        /// The HTTP status, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
    },
    /// The agent retries a failed request.
    Retry {
        attempt: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_attempts: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delay_ms: Option<u64>,
        class: ErrorClass,
        message: String,
    },
    /// State of a usage limit. Only `rejected` means that the limit was reached.
    RateLimit {
        status: RateLimitStatus,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resets_at: Option<Timestamp>,
        /// The name of the limit, such as `five_hour` or `seven_day`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<String>,
        /// The used share of the limit, from 0 to 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        utilization: Option<f64>,
    },
    /// The agent's task list.
    Plan { items: Vec<PlanItem> },
    /// A file change reported by the agent.
    FileChange { path: String, change: FileChangeKind },
    /// A tool call was denied because of missing permission.
    PermissionDenied { tool: String },
    /// The descriptions of the agent's background tasks changed. While there are any, a result is not the end: the agent
    /// continues when a task has ended.
    BackgroundTasks { tasks: Vec<String> },
    /// The output has an event type or a field that ralph does not know, probably because the agent is newer. A run records
    /// the first occurrence of each, and counts all of them.
    Unknown { part: UnknownPart, name: String },
    /// A line does not conform to the format. The line itself follows as SYS text.
    ParseError { message: String },
    /// A line exceeded the size limit and was cut. The raw output file contains the complete line.
    Cut { bytes: u64 },
    /// Any other object that a custom agent reports.
    #[serde(untagged)]
    Other(serde_json::Map<String, serde_json::Value>),
}

/// What is unknown in an agent's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnknownPart {
    EventType,
    Field,
}

/// Classification of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// Not logged in, invalid key, or missing permission.
    Auth,
    /// A usage or rate limit was reached.
    RateLimit,
    /// The service is overloaded or failing (HTTP 5xx, 529).
    Overload,
    /// The service rejected the request.
    BadRequest,
    /// The prompt or the conversation exceeds the model's context window.
    TooLong,
    /// The connection failed.
    Network,
    /// The model refused the request.
    Refused,
    /// The agent reached its own turn limit.
    MaxTurns,
    /// The agent reached its own budget.
    Budget,
    Other,
}

/// State of a usage limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RateLimitStatus {
    Allowed,
    Warning,
    Rejected,
}

/// An item of the agent's task list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanItem {
    pub text: String,
    pub status: PlanStatus,
}

/// State of a task list item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    Pending,
    Active,
    Done,
}

/// Kind of a file change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileChangeKind {
    Added,
    Modified,
    Deleted,
}

impl TranscriptEvent {
    /// A text event with a complete message.
    pub fn message(tag: Tag, text: impl Into<String>) -> Self {
        Self::Text {
            tag,
            text: text.into(),
            flow: Flow::Message,
            parent: None,
        }
    }

    /// A text event with the next line of a message.
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
