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
    /// Run the gate before the first iteration too. It must fail there: a gate that passes before any work proves nothing.
    #[serde(default, skip_serializing_if = "is_false")]
    pub must_fail_first: bool,
    /// Keep the command and its output from the agent, which learns only that a hidden check failed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub hidden: bool,
    /// A JUnit XML file that the command writes, relative to `cwd`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub report: Option<PathBuf>,
    /// The number of passed tests that the output or `report` must show at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub min_tests: Option<u64>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes the field by reference"
)]
fn is_false(value: &bool) -> bool {
    !*value
}

impl Gate {
    /// A gate with only a name and a command.
    pub(crate) fn new(name: impl Into<String>, run: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            run: run.into(),
            timeout: Self::default_timeout(),
            cwd: None,
            env: BTreeMap::new(),
            must_fail_first: false,
            hidden: false,
            report: None,
            min_tests: None,
        }
    }

    /// The command as the agent and its files may show it.
    pub(crate) fn shown_command(&self) -> &str {
        match self.hidden {
            true => "(hidden)",
            false => &self.run,
        }
    }

    pub(crate) fn default_timeout() -> Seconds {
        Seconds(600)
    }
}
