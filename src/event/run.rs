//! What the run did: the one vocabulary of the journal, the screens and the JSON output.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Command, IterationOutcome, ProcessEnd, RunOutcome, TopicEvent, TranscriptEvent, Usage};

/// One thing that happened in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RunEvent {
    RunStarted(Box<RunHeader>),
    /// A run that had ended, in whatever way, goes on.
    RunResumed(Box<Resumption>),
    IterationStarted {
        /// 1 is the first. An iteration that is run again keeps its number.
        iteration: u64,
        /// 1 for the first try of this iteration.
        attempt: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hat: Option<String>,
        prompt_bytes: u64,
    },
    AgentStarted {
        iteration: u64,
        pid: u32,
        command: Vec<String>,
    },
    Transcript {
        iteration: u64,
        event: TranscriptEvent,
    },
    /// A line that the agent wrote beside its transcript.
    Stderr {
        iteration: u64,
        text: String,
    },
    /// A marker was seen but does not count; why, in words for the user.
    MarkerIgnored {
        iteration: u64,
        marker: String,
        reason: String,
    },
    Topic {
        iteration: u64,
        event: TopicEvent,
    },
    /// An event did not go where its topic says, or nowhere at all; why, in words for the user.
    TopicRerouted {
        iteration: u64,
        topic: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hat: Option<String>,
        reason: String,
    },
    AgentEnded {
        iteration: u64,
        end: ProcessEnd,
        duration_ms: u64,
        /// Processes that the agent had left behind and that were stopped.
        #[serde(default, skip_serializing_if = "is_zero")]
        swept: u64,
    },
    GateStarted {
        iteration: u64,
        name: String,
        command: String,
    },
    GateEnded {
        iteration: u64,
        name: String,
        result: GateResult,
        duration_ms: u64,
        /// What the gate printed, its middle left out where it is long.
        output: String,
    },
    IterationEnded {
        iteration: u64,
        attempt: u64,
        #[serde(flatten)]
        outcome: IterationOutcome,
        duration_ms: u64,
        usage: Box<Usage>,
    },
    /// Nothing happens until the given time has passed, or the user wakes the run.
    Waiting {
        why: Pause,
        wait_ms: u64,
    },
    WaitEnded,
    /// The user left something in the run's inbox. `id` is its name there; it is taken in once.
    #[serde(rename = "told")]
    CommandReceived {
        id: String,
        #[serde(flatten)]
        order: Command,
    },
    /// The state of the workspace as an iteration begins, and for how many iterations in a row nothing has changed.
    Progress {
        iteration: u64,
        fingerprint: String,
        unchanged: u64,
    },
    /// Nothing happens until the user lets the run go on.
    Paused,
    /// The user is asked whether the run is to go on.
    Asking,
    /// The run is about to end; the agent, if any, is being stopped.
    Stopping {
        reason: String,
    },
    Notice {
        level: Level,
        text: String,
    },
    RunEnded {
        #[serde(flatten)]
        outcome: RunOutcome,
        iterations: u64,
        duration_ms: u64,
        usage: Box<Usage>,
    },
}

/// Where a run goes on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Resumption {
    #[serde(flatten)]
    pub header: RunHeader,
    /// What runs next.
    pub iteration: u64,
    pub attempt: u64,
    /// Iterations that had ended before.
    pub iterations: u64,
    /// What they had used.
    pub usage: Usage,
    /// How long the run had taken before, on its own clock.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub elapsed_ms: u64,
    /// Settings that are different from now on, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
}

/// What is fixed for a whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunHeader {
    pub version: u32,
    pub run_id: String,
    /// The version of ralph that wrote this.
    pub ralph: String,
    pub agent: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<String>,
    pub transcript: String,
    pub workspace: String,
    pub max_iterations: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_runtime_seconds: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreamName {
    Stdout,
    Stderr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GateResult {
    Passed,
    Failed { end: ProcessEnd },
    TimedOut,
    CouldNotStart,
}

/// Why the run is waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pause {
    /// Between iterations, as configured.
    Cooldown,
    /// After a failure, before trying again.
    Backoff,
    RateLimit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Info,
    Warning,
    Error,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes the field by reference"
)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
