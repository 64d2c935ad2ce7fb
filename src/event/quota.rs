//! The lines of the ledger of an account: what its agents reported about usage limits, and which runs use it.

use std::path::PathBuf;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RateLimitStatus;

/// One line of a ledger. All runs that use an account append to its ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuotaEntry {
    /// Time on the clock of the machine.
    pub at: Timestamp,
    /// The id of the run.
    pub run: String,
    #[serde(flatten)]
    pub fact: QuotaFact,
}

/// What a run reports about an account.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum QuotaFact {
    /// The agent reported the state of a usage limit. `rejected` means that a request was refused.
    Limit(LimitReport),
    /// The run starts an agent, and occupies a place until it reports the end.
    Started {
        start: StartKind,
        /// The directory of the run, which shows whether the run is still alive.
        directory: PathBuf,
    },
    /// The agent of the run has ended.
    Ended { result: AttemptResult },
    /// The run waits for the account.
    Waiting {
        directory: PathBuf,
        /// Explanation for the user.
        reason: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    /// The run does not wait any more.
    WaitEnded,
}

/// The state of a usage limit, as an agent reports it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitReport {
    pub status: RateLimitStatus,
    /// The name of the limit, such as `five_hour`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    /// The used share, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilization: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<Timestamp>,
}

/// Why a run may start an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StartKind {
    Normal,
    /// It is the first one after a reset, and the others wait for its result.
    First,
    /// The user ended the wait.
    Forced,
}

/// What the end of an agent shows about the limits of its account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttemptResult {
    /// The account could be used.
    Worked,
    Limited,
    /// The agent ended before it was known whether the account can be used.
    Unknown,
}
