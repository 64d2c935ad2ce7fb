//! Run events: everything that the journal, the front ends and the JSON output record about a run.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AgentEnd, AgentIdentity, Command, Finding, GateDetails, IterationOutcome, ProcessEnd, ReviewerResult,
    RunOutcome, SnapshotRecord, TopicEvent, TranscriptEvent, Usage,
};

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RunEvent {
    /// The run started.
    RunStarted(Box<RunHeader>),
    /// An ended or interrupted run was resumed.
    RunResumed(Box<Resumption>),
    /// An iteration started.
    IterationStarted {
        /// Number of the iteration, starting at 1. A repeated iteration keeps its number.
        iteration: u64,
        /// Number of the attempt at this iteration, starting at 1.
        attempt: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hat: Option<String>,
        /// The agent and its model, if the run has several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// Size of the prompt in bytes.
        prompt_bytes: u64,
    },
    /// Another agent takes over, or the first one returns. The labels name the agents and their models.
    AgentChanged {
        from: String,
        to: String,
        why: AgentChangeReason,
        /// When the usage limit resets after which the first agent returns.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    /// The agent started.
    AgentStarted {
        iteration: u64,
        /// Absent in journals of earlier versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        identity: Option<AgentIdentity>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pid: Option<u32>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        command: Vec<String>,
    },
    /// The agent's output contained a transcript event.
    Transcript { iteration: u64, event: TranscriptEvent },
    /// A line that the agent wrote to stderr.
    Stderr { iteration: u64, text: String },
    /// The agent printed a marker that was ignored.
    MarkerIgnored {
        iteration: u64,
        marker: String,
        /// Explanation for the user.
        reason: String,
    },
    /// The agent published a topic event.
    Topic { iteration: u64, event: TopicEvent },
    /// A topic event was delivered to another hat than its topic selects, or was not delivered.
    TopicRerouted {
        iteration: u64,
        topic: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hat: Option<String>,
        /// Explanation for the user.
        reason: String,
    },
    /// The agent ended.
    AgentEnded {
        iteration: u64,
        end: AgentEnd,
        duration_ms: u64,
        /// Number of processes that the agent left running and that were stopped.
        #[serde(default, skip_serializing_if = "is_zero")]
        swept: u64,
    },
    /// A gate command started.
    GateStarted {
        iteration: u64,
        name: String,
        command: String,
    },
    /// A gate command ended.
    GateEnded {
        iteration: u64,
        name: String,
        result: GateResult,
        duration_ms: u64,
        /// Output of the gate. The middle of long output is omitted. Empty for a hidden gate.
        output: String,
        #[serde(flatten)]
        details: Box<GateDetails>,
    },
    /// A reviewer of a review gate started.
    ReviewStarted {
        iteration: u64,
        gate: String,
        reviewer: String,
        /// The agent and its model.
        agent: String,
        /// Number of the round, starting at 1.
        round: u64,
        /// How many rounds there are at most.
        rounds: u64,
    },
    /// The reviewer's output contained a transcript event.
    ReviewTranscript {
        iteration: u64,
        reviewer: String,
        event: TranscriptEvent,
    },
    /// A reviewer ended. Its usage is also part of the iteration's usage.
    ReviewEnded {
        iteration: u64,
        gate: String,
        reviewer: String,
        agent: String,
        round: u64,
        result: ReviewerResult,
        duration_ms: u64,
        usage: Box<Usage>,
    },
    /// A finding is new, or its state changed. Precedes the `gate_ended` of the review.
    Finding(Box<Finding>),
    /// The run is complete: what was verified.
    Verification {
        /// Whether gates are configured.
        verified: bool,
        /// The names of the gates, which all passed.
        gates: Vec<String>,
        /// The snapshot that was verified.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tree: Option<String>,
        /// Tests, scripts of gates and configuration files that changed during the run.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed_checks: Vec<String>,
    },
    /// An iteration ended.
    IterationEnded {
        iteration: u64,
        attempt: u64,
        #[serde(flatten)]
        outcome: IterationOutcome,
        duration_ms: u64,
        usage: Box<Usage>,
    },
    /// The run waits for the given time, or until a `wake` command.
    Waiting {
        why: WaitReason,
        /// 0 if it is unknown how long the wait takes.
        wait_ms: u64,
        /// Explanation for the user.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The wait ended.
    WaitEnded,
    /// The run received a command. The sender gives it the id; each id is applied once.
    #[serde(rename = "told")]
    CommandReceived {
        id: String,
        #[serde(flatten)]
        command: Command,
    },
    /// State of the workspace at the start of an iteration.
    Progress {
        iteration: u64,
        /// Fingerprint of the workspace.
        fingerprint: String,
        /// Number of consecutive iterations without a change.
        unchanged: u64,
    },
    /// A snapshot of the project was taken.
    Snapshot(Box<SnapshotRecord>),
    /// The run is paused until a `resume` command.
    Paused,
    /// The run asks the user whether to continue.
    Asking,
    /// The agent asked the user a question. The run is paused until it is answered.
    QuestionAsked { iteration: u64, question: String },
    /// The question was not answered in time. The run continues with the configured answer.
    QuestionExpired { answer: String },
    /// The run is ending; a running agent is being stopped.
    Stopping { reason: String },
    /// The run ends, and the agent's output had parts that ralph does not know.
    UnknownOutput(Box<UnknownOutput>),
    /// The sandbox denied access. Each host or path is reported once.
    Denied {
        iteration: u64,
        #[serde(flatten)]
        access: DeniedAccess,
    },
    /// A message for the user.
    Notice { level: NoticeLevel, text: String },
    /// The run ended.
    RunEnded {
        #[serde(flatten)]
        outcome: RunOutcome,
        iterations: u64,
        duration_ms: u64,
        usage: Box<Usage>,
    },
}

/// What a sandbox denied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeniedAccess {
    /// A host, with its port unless it is that of HTTP or HTTPS.
    Host(String),
    /// A file that the agent must not create and that ralph has removed.
    Path(String),
}

/// What ralph did not know in the output of an agent, and how often it occurred.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnknownOutput {
    pub agent: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The version that ralph was tested with, if the agent is newer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newer_than: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub event_types: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, u64>,
}

/// The position at which a run is resumed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Resumption {
    #[serde(flatten)]
    pub header: RunHeader,
    /// Number of the next iteration.
    pub iteration: u64,
    /// Number of the next attempt.
    pub attempt: u64,
    /// Number of iterations that ended before.
    pub iterations: u64,
    /// Usage of these iterations.
    pub usage: Usage,
    /// Running time of the run so far, in milliseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub elapsed_ms: u64,
    /// Settings that changed, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
}

/// Properties that do not change during a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunHeader {
    /// Version of the journal format.
    pub version: u32,
    pub run_id: String,
    /// Version of ralph that wrote the journal.
    pub ralph: String,
    pub agent: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<String>,
    /// Transcript format of the agent's output.
    pub transcript: String,
    /// The directory in which the agent runs.
    pub workspace: String,
    /// The directory that the lock, the allowed paths and the progress refer to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_root: Option<String>,
    /// The directory of the run's files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    pub max_iterations: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_runtime_seconds: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<f64>,
    /// SHA-256 of run.json, which contains the settings and the flags of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings_sha256: Option<String>,
    /// The iteration of another run that this run continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ForkOrigin>,
}

/// An iteration of a run from whose end another run continues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForkOrigin {
    pub run: String,
    pub iteration: u64,
}

/// The start of the name of a state directory that is deleted after its run, as that of the demo.
pub const TEMPORARY_STATE: &str = "ralph-demo-state-";

impl RunHeader {
    /// The directory of the run's files, if it still exists after the run.
    pub fn kept_directory(&self) -> Option<&str> {
        let directory = self.directory.as_deref()?;
        let is_temporary = directory.split('/').any(|name| name.starts_with(TEMPORARY_STATE));
        (!is_temporary).then_some(directory)
    }
}

/// An output stream of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreamName {
    Stdout,
    Stderr,
}

/// Result of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GateResult {
    Passed,
    Failed {
        end: ProcessEnd,
    },
    TimedOut,
    CouldNotStart,
    /// The command succeeds with the agent's version of protected files only.
    Tampered,
    /// The files changed after the command had succeeded.
    Outdated,
    /// The command succeeded, but fewer tests passed than `min_tests` requires.
    TooFewTests {
        passed: u64,
    },
    /// The review has findings that reject the result.
    Rejected {
        findings: u64,
    },
    /// Too few reviewers gave a valid answer.
    Unanswered,
}

impl GateResult {
    pub fn passed(self) -> bool {
        self == Self::Passed
    }
}

/// The reason for a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitReason {
    /// The configured delay between iterations.
    Cooldown,
    /// The delay after a failure.
    Backoff,
    /// A usage limit of the agent.
    RateLimit,
    /// The service that the agent uses is overloaded.
    Overload,
    /// The agent's account, which other runs use too.
    Quota,
}

/// Why another agent takes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentChangeReason {
    /// The agent reached a usage limit that resets late.
    Limit,
    NotLoggedIn,
    ProgramMissing,
    /// An agent that the configuration prefers can work again.
    Available,
}

/// Severity of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoticeLevel {
    Info,
    Warning,
    Error,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes the field by reference"
)]
pub(super) fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes the field by reference"
)]
pub(super) fn is_false(value: &bool) -> bool {
    !*value
}
