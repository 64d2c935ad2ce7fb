//! Where a completion marker counts, and what follows a rejected one, a failure marker or a usage limit.

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

/// What happens to the files when an iteration breaks a gate that passed before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnRejected {
    /// They stay as the agent left them.
    #[default]
    Keep,
    /// They are restored to the state in which the gate passed.
    Restore,
}

/// What to do if the agent reports that it failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnDeclaredFailure {
    #[default]
    Stop,
    Retry,
}

/// What to do when the agent reaches its usage limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnLimit {
    /// Wait for the reset.
    #[default]
    Wait,
    /// End the run, so that the caller decides when it continues.
    Exit,
}
