//! The rules for markers: where a completion marker counts, and what follows a failure marker.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a completion marker is recognized.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MarkerPlacement {
    /// Alone on a line of the final message.
    #[default]
    Line,
    /// Anywhere in the agent's text.
    Anywhere,
}

/// What to do if the agent reports that it failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnDeclaredFailure {
    #[default]
    Stop,
    Retry,
}
