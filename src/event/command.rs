//! What the user tells a run that is already under way.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One thing that the user wants of a running loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Command {
    /// Words for the agent: they go into the next prompt.
    Message { text: String },
    /// Rest when this iteration has ended.
    Pause,
    /// Go on after a pause.
    Resume,
    /// Wait no longer, for a limit or anything else.
    Wake,
    /// Stop this iteration, and go on with the next.
    StopIteration,
}
