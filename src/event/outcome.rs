//! Outcomes of processes, iterations and runs.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a child process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProcessEnd {
    /// The process exited with this code.
    Exited { code: i32 },
    /// A signal killed the process.
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

/// How an agent ended. The end of a process is written as a `ProcessEnd` is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentEnd {
    /// The agent's process exited with this code.
    Exited { code: i32 },
    /// A signal killed the agent's process.
    Signaled { signal: i32 },
    /// The connection to the agent ended without a result.
    Lost { reason: String },
}

impl AgentEnd {
    pub fn success(&self) -> bool {
        *self == Self::Exited { code: 0 }
    }
}

impl From<ProcessEnd> for AgentEnd {
    fn from(end: ProcessEnd) -> Self {
        match end {
            ProcessEnd::Exited { code } => Self::Exited { code },
            ProcessEnd::Signaled { signal } => Self::Signaled { signal },
        }
    }
}

impl fmt::Display for AgentEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited { code } => ProcessEnd::Exited { code: *code }.fmt(f),
            Self::Signaled { signal } => ProcessEnd::Signaled { signal: *signal }.fmt(f),
            Self::Lost { reason } => f.write_str(reason),
        }
    }
}

/// What a running agent is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AgentIdentity {
    /// A process on this machine.
    Process { pid: u32 },
}

impl AgentIdentity {
    pub fn pid(&self) -> Option<u32> {
        match self {
            Self::Process { pid } => Some(*pid),
        }
    }
}

/// Marker value used when the user, not the agent, confirmed completion. Journals contain it, so it must not change.
pub const CONFIRMED_BY_USER: &str = "(the user's word)";

/// How an iteration ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum IterationOutcome {
    /// The agent printed the completion marker and every gate passed.
    Completed { marker: String },
    /// The work is not done yet; the next iteration follows. `rejected_by` names the gate that rejected a completion.
    Continued {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rejected_by: Option<String>,
    },
    /// The iteration failed.
    Failed { failure: IterationFailure },
    /// A time limit of the iteration expired.
    TimedOut { limit: TimeLimit, after_seconds: u64 },
    /// The agent reached a usage limit. The iteration is not counted and is repeated after the reset.
    RateLimited {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resets_at: Option<Timestamp>,
        message: String,
    },
    /// The service that the agent uses is overloaded. The iteration is not counted and is repeated after a wait.
    Overloaded { message: String },
    /// The agent is not authenticated.
    AuthRequired { message: String },
    /// A limit of the whole run was reached during the iteration.
    LimitReached { limit: RunLimit },
    /// The run was interrupted.
    Interrupted,
    /// The user stopped this iteration; the run continues with the next one.
    Skipped,
    /// The agent could not be started.
    CouldNotStart { error: String },
}

/// Why an iteration failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum IterationFailure {
    /// The agent ended with an error.
    Exit { end: AgentEnd, message: String },
    /// The agent reported an error in its terminal event, regardless of the exit code.
    AgentError { message: String },
    /// The model refused the request.
    Refused { message: String },
    /// The agent printed a failure marker.
    Declared { marker: String },
    /// The agent exited with code 0 and printed nothing.
    NoOutput,
    /// The structured output ended without a terminal event: it is truncated.
    NoTerminalEvent,
    /// Files outside `allowed_paths` were changed.
    OutsideAllowedPaths {
        /// The first of these files.
        files: Vec<String>,
        /// The number of further files.
        #[serde(default)]
        more: u64,
    },
    /// The agent printed more than `max_output_bytes`.
    TooMuchOutput { max_bytes: u64 },
    /// The agent used a tool that its hat must not use.
    DisallowedTool { tool: String },
    /// It is unknown whether files outside `allowed_paths` were changed.
    PathsNotChecked { reason: String },
}

/// A time limit of one iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimeLimit {
    /// Total duration of the iteration.
    Wall,
    /// Time without output.
    Idle,
}

/// A limit of the whole run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "limit", rename_all = "snake_case")]
pub enum RunLimit {
    Iterations {
        max: u64,
    },
    Runtime {
        max_seconds: u64,
    },
    Cost {
        max_usd: f64,
    },
    Tokens {
        max: u64,
    },
    /// Too little disk space is free.
    Disk {
        min_free_bytes: u64,
    },
    /// The budget of all runs of a day.
    DayCost {
        max_usd: f64,
    },
    /// The budget of all runs of the project.
    ProjectCost {
        max_usd: f64,
    },
}

impl fmt::Display for RunLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Iterations { max } => write!(f, "max_iterations ({max})"),
            Self::Runtime { max_seconds } => write!(f, "max_runtime_seconds ({max_seconds})"),
            Self::Cost { max_usd } => write!(f, "max_cost_usd ({max_usd})"),
            Self::Tokens { max } => write!(f, "max_tokens ({max})"),
            Self::Disk { min_free_bytes } => write!(f, "min_free_disk_bytes ({min_free_bytes})"),
            Self::DayCost { max_usd } => write!(f, "budgets.per_day_usd ({max_usd})"),
            Self::ProjectCost { max_usd } => write!(f, "budgets.per_project_usd ({max_usd})"),
        }
    }
}

/// The source of an interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Interrupt {
    /// SIGINT (Ctrl-C).
    Int,
    /// SIGTERM.
    Term,
    /// SIGHUP: the terminal was closed.
    Hup,
    /// The user ended the run with a command.
    Quit,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum RunOutcome {
    /// The work is done and all gates passed.
    Complete { marker: String },
    /// Too many iterations failed in a row, or the agent printed a failure marker.
    Failed { reason: String },
    /// The configuration makes the result meaningless; for example, a gate that must fail first passed before any work.
    Misconfigured { reason: String },
    /// The rounds of a review are used up, or only you can decide about its findings.
    Unreviewed { gate: String, reason: String },
    /// The agent is not authenticated.
    AuthRequired { message: String },
    /// A limit of the run was reached.
    LimitReached { limit: RunLimit },
    /// The agent reached its usage limit, and the run does not wait for the reset (`on_limit: exit`).
    RateLimited {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resets_at: Option<Timestamp>,
        message: String,
    },
    /// The checkpoint command refused to let the run continue.
    CheckpointRefused { reason: String },
    /// The user or a signal stopped the run.
    Interrupted { by: Interrupt },
}
