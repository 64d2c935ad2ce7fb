//! Topic events, which an agent publishes for other hats.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An event that the agent published: `<event topic="…" target="…">payload</event>` in its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TopicEvent {
    /// The topic, which selects the hat that receives the event.
    pub topic: String,
    /// The hat that the agent addressed directly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    pub payload: String,
}
