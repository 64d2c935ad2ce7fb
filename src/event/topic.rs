//! What an agent published for the other hats.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `<event topic="…" target="…">payload</event>`, as found in what the assistant said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TopicEvent {
    pub topic: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    pub payload: String,
}
