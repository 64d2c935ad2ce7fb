//! Findings of reviews: what a reviewer answers, and what a run records about each finding.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How serious a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Low,
    Medium,
    High,
    Critical,
}

impl Severity {
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }

    /// The severity this many levels above, at most the highest one.
    #[must_use]
    pub fn raised(self, levels: u64) -> Self {
        const LEVELS: [Severity; 4] = [
            Severity::Low,
            Severity::Medium,
            Severity::High,
            Severity::Critical,
        ];
        let index = usize::try_from(levels).unwrap_or(LEVELS.len()).min(LEVELS.len()) + self as usize;
        LEVELS[index.min(LEVELS.len() - 1)]
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The answer of a reviewer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewAnswer {
    /// The problems in the change; empty if there are none.
    pub findings: Vec<ReportedFinding>,
    /// The ids of earlier findings that no longer apply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resolved: Vec<String>,
}

/// A finding as a reviewer reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReportedFinding {
    /// The id of an earlier finding, if this is the same one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The file, relative to the root of the project; absent if the finding concerns no single file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The number of the first line, starting at 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// A short name for the kind of problem, such as `correctness` or `security`.
    pub category: String,
    pub severity: Severity,
    /// What is wrong, and when it fails.
    pub claim: String,
    /// A command that fails because of the problem.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// The id of an earlier finding that demands the opposite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contradicts: Option<String>,
}

/// A finding of a run and its state. Each record replaces the previous one with the same id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Unique in the run, such as `F3`.
    pub id: String,
    /// The iteration whose result was reviewed.
    pub iteration: u64,
    /// The name of the gate.
    pub gate: String,
    /// The round of the review in which the finding got this state, starting at 1.
    pub round: u64,
    pub status: FindingStatus,
    pub severity: Severity,
    pub category: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    pub claim: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// The reviewers that reported it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reviewers: Vec<String>,
    /// The id of the finding that demands the opposite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contradicts: Option<String>,
    /// What the agent answered to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<FindingAnswer>,
}

/// The state of a finding. The first three reject the agent's claim to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FindingStatus {
    /// Reported for the first time.
    Open,
    /// Reported again, or not shown to be fixed.
    StillOpen,
    /// It demands the opposite of an earlier finding. You have to decide.
    Contested,
    /// Not serious enough for this round, or about lines that did not change since the first round.
    Advice,
    /// Enough other reviewers approve of the change.
    Outvoted,
    /// Not reported any more after a change, or withdrawn by the reviewer.
    Resolved,
}

impl FindingStatus {
    /// Whether the finding rejects the agent's claim to be done.
    pub fn blocks(self) -> bool {
        match self {
            Self::Open | Self::StillOpen | Self::Contested => true,
            Self::Advice | Self::Outvoted | Self::Resolved => false,
        }
    }

    pub fn label(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::StillOpen => "still open",
            Self::Contested => "contested",
            Self::Advice => "advice",
            Self::Outvoted => "outvoted",
            Self::Resolved => "resolved",
        }
    }
}

/// The agent's answer to a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FindingAnswer {
    Fixed,
    Disputed { why: String },
}

impl fmt::Display for FindingAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed => f.write_str("fixed"),
            Self::Disputed { why } => write!(f, "disputed: {why}"),
        }
    }
}

/// How the work of one reviewer ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReviewerResult {
    /// The reviewer answered with this number of findings.
    Answered { findings: u64 },
    /// There is no valid answer.
    Unanswered { problem: String },
    /// The reviewer reached a usage limit and starts again later.
    Limited { message: String },
    /// The reviewer was stopped from outside.
    Stopped,
}

impl Finding {
    /// `src/lib.rs:10`; `None` if the finding concerns no single file.
    pub fn location(&self) -> Option<String> {
        let file = self.file.as_ref()?;
        Some(match self.line {
            Some(line) => format!("{file}:{line}"),
            None => file.clone(),
        })
    }

    /// `F3 high correctness at src/lib.rs:10`
    pub fn heading(&self) -> String {
        let location = self.location().map(|location| format!(" at {location}"));
        format!(
            "{} {} {}{}",
            self.id,
            self.severity,
            self.category,
            location.unwrap_or_default()
        )
    }
}

/// The JSON Schema of a reviewer's answer.
pub fn review_schema() -> serde_json::Value {
    schemars::generate::SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<ReviewAnswer>()
        .to_value()
}

#[cfg(test)]
mod tests {
    use super::Severity;

    #[test]
    fn severity_rises_to_the_highest_level_and_no_further() {
        assert_eq!(Severity::Low.raised(0), Severity::Low);
        assert_eq!(Severity::Low.raised(2), Severity::High);
        assert_eq!(Severity::High.raised(9), Severity::Critical);
        assert_eq!(Severity::High.raised(u64::MAX), Severity::Critical);
    }
}
