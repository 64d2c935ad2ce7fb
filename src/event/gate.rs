//! Details of a gate's result: the tests that its output reports, and what exactly was verified.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Details of a gate's result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GateDetails {
    /// The test results in the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<TestReport>,
    /// The agent may not learn the command and the output.
    #[serde(default, skip_serializing_if = "super::run::is_false")]
    pub hidden: bool,
    /// The snapshot that the gate checked; none if it ran in the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// The protected files without whose changes the gate fails, or the files that changed afterwards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
}

/// The tests that a gate's output reports.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestReport {
    #[serde(default)]
    pub passed: u64,
    #[serde(default)]
    pub failed: u64,
    #[serde(default)]
    pub skipped: u64,
    /// The first failures, including compiler errors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<TestFailure>,
    /// The number of further failures.
    #[serde(default, skip_serializing_if = "super::run::is_zero")]
    pub more_failures: u64,
}

/// A failed test or a compiler error.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestFailure {
    /// The name of the test; none for a compiler error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The error, without the middle if it is long.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// `2 failed, 5 passed, 1 skipped`
impl fmt::Display for TestReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = [
            (self.failed, "failed"),
            (self.passed, "passed"),
            (self.skipped, "skipped"),
        ];
        let mut parts = counts.iter().filter(|(count, _)| *count > 0);
        match parts.next() {
            Some((count, word)) => write!(f, "{count} {word}")?,
            None => f.write_str("no tests ran")?,
        }
        parts.try_for_each(|(count, word)| write!(f, ", {count} {word}"))
    }
}

impl TestFailure {
    /// `src/lib.rs:10`; `None` if the file is unknown.
    pub fn location(&self) -> Option<String> {
        let file = self.file.as_ref()?;
        Some(match self.line {
            Some(line) => format!("{file}:{line}"),
            None => file.clone(),
        })
    }

    /// `tests::subtracts at src/lib.rs:10`
    pub fn heading(&self) -> String {
        match (&self.name, self.location()) {
            (Some(name), Some(location)) => format!("{name} at {location}"),
            (Some(name), None) => name.clone(),
            (None, Some(location)) => location,
            (None, None) => "error".to_owned(),
        }
    }
}
