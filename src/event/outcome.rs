//! How a process, an iteration and a run can end.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a child process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProcessEnd {
    Exited { code: i32 },
    Signaled { signal: i32 },
}

impl ProcessEnd {
    pub fn success(self) -> bool {
        self == Self::Exited { code: 0 }
    }
}

impl fmt::Display for ProcessEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited { code } => write!(f, "exit code {code}"),
            Self::Signaled { signal } => write!(f, "killed by signal {signal}"),
        }
    }
}

/// In the place of a marker: not the agent said that the work is done, but the user who watched it.
pub const USERS_WORD: &str = "(the user's word)";

/// How one iteration ended, and so what happens next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum IterationOutcome {
    /// The marker counted and every gate passed.
    Completed {
        marker: String,
    },
    /// Healthy work, not yet done. `rejected_by` names the gate that refused the agent's claim to be done.
    Continued {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rejected_by: Option<String>,
    },
    Failed {
        failure: Failure,
    },
    TimedOut {
        limit: TimeLimit,
        after_seconds: u64,
    },
    /// Not counted: the same iteration runs again when the limit is over.
    RateLimited {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resets_at: Option<Timestamp>,
        message: String,
    },
    AuthRequired {
        message: String,
    },
    /// A limit of the whole run was reached while the agent worked.
    LimitReached {
        limit: Limit,
    },
    Interrupted,
    /// The user stopped this iteration; the run goes on with the next.
    Skipped,
    CouldNotStart {
        error: String,
    },
}

/// Why an iteration failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Failure {
    /// The process said so.
    Exit { end: ProcessEnd, message: String },
    /// The agent's terminal event said so, whatever the exit code.
    AgentError { message: String },
    /// The agent gave a failure marker.
    Declared { marker: String },
    /// Exit 0 without any output.
    NoOutput,
    /// A structured stream that ended without its terminal event: truncated output.
    NoTerminalEvent,
    /// Files were changed that `allowed_paths` does not name; the first of them, and how many more there are.
    OutsideAllowedPaths {
        files: Vec<String>,
        #[serde(default)]
        more: u64,
    },
}

/// A limit in time on one iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimeLimit {
    Wall,
    Idle,
}

/// A limit on the whole run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "limit", rename_all = "snake_case")]
pub enum Limit {
    Iterations { max: u64 },
    Runtime { max_seconds: u64 },
    Cost { max_usd: f64 },
    Tokens { max: u64 },
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Iterations { max } => write!(f, "max_iterations ({max})"),
            Self::Runtime { max_seconds } => write!(f, "max_runtime_seconds ({max_seconds})"),
            Self::Cost { max_usd } => write!(f, "max_cost_usd ({max_usd})"),
            Self::Tokens { max } => write!(f, "max_tokens ({max})"),
        }
    }
}

/// Who asked the run to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Interrupt {
    /// Ctrl-C.
    Int,
    Term,
    /// The terminal went away.
    Hup,
    /// The answer to the question between two iterations.
    Quit,
}

/// How the run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum RunOutcome {
    Complete {
        marker: String,
    },
    /// Gave up: too many failures in a row, or the agent declared failure.
    Failed {
        reason: String,
    },
    AuthRequired {
        message: String,
    },
    LimitReached {
        limit: Limit,
    },
    Interrupted {
        by: Interrupt,
    },
}
