//! Whether an iteration resumes the agent session of the previous one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether an iteration resumes the agent session of the previous one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Session {
    #[default]
    Fresh,
    Continue,
}
