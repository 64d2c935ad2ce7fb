//! A reviewer: an agent that judges the change of another agent.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Gate;

/// The topic with which an agent answers the findings of a review. No hat receives it.
pub(crate) const FINDING_TOPIC: &str = "finding";

/// One of several reviewers of a gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reviewer {
    /// A name that is unique in the gate.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The agent that reviews.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub agent: Option<String>,
    /// The model of the reviewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub model: Option<String>,
    /// Additional arguments for the reviewer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// A file that says what the reviewer looks for, relative to this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("format" = "path"))]
    pub prompt_file: Option<PathBuf>,
}

impl Reviewer {
    /// Model and arguments belong to an agent, so a reviewer with another agent does not inherit them.
    pub(super) fn inherit(&self, gate: &Gate) -> Self {
        let is_same_agent = self.agent.is_none() || self.agent == gate.agent;
        let model = gate.model.as_ref().filter(|_| is_same_agent);
        let args = gate.args.iter().filter(|_| is_same_agent);
        Self {
            name: self.name.clone(),
            agent: self.agent.clone().or_else(|| gate.agent.clone()),
            model: self.model.as_ref().or(model).cloned(),
            args: args.chain(&self.args).cloned().collect(),
            prompt_file: self.prompt_file.clone().or_else(|| gate.prompt_file.clone()),
        }
    }
}
