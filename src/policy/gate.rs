//! A gate: a command that decides whether the task is done.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Seconds;

/// A command that must succeed before the task counts as done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// A unique name of your choice.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The shell command; exit code 0 means success.
    #[schemars(length(min = 1))]
    pub run: String,
    /// Maximum duration.
    #[serde(default = "Gate::default_timeout")]
    #[schemars(extend("minimum" = 1))]
    pub timeout: Seconds,
    /// Working directory, relative to this file. Default: the directory of this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("format" = "path"))]
    pub cwd: Option<PathBuf>,
    /// An additional environment variable.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

impl Gate {
    pub(crate) fn default_timeout() -> Seconds {
        Seconds(600)
    }
}
