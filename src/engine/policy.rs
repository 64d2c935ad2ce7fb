//! What the engine is told before it begins: limits, deadlines, markers and gates, all plain data.

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::hats::Hats;
use super::marker::Markers;
use super::prices::Prices;

/// The rules of one run.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Wall-clock time at which the run's own clock stood at zero; turns stated reset times into waits.
    pub started_at: Timestamp,
    /// The zone of a stated reset time that names none.
    pub zone: TimeZone,
    /// Makes the jitter of waits repeatable.
    pub seed: u64,
    pub limits: Limits,
    pub costs: CostRules,
    pub timing: Timing,
    pub markers: Markers,
    pub gates: Vec<GateRule>,
    pub hats: Hats,
    pub reading: Reading,
    /// What the user can do when the agent is not logged in.
    pub auth_hint: String,
    /// How the agent's message of a usage limit begins; looked for only where it failed.
    pub limit_phrases: Vec<&'static str>,
    pub on_declared_failure: OnDeclaredFailure,
    pub session: SessionRule,
}

/// Limits on the whole run.
#[derive(Debug, Clone)]
pub struct Limits {
    pub iterations: u64,
    /// Time spent waiting for a usage limit does not count.
    pub runtime: Duration,
    pub cost_usd: Option<f64>,
    pub tokens: Option<u64>,
    pub consecutive_failures: u64,
    /// Iterations in a row that change nothing; 0 for no limit.
    pub no_progress: u64,
}

/// Where figures of cost come from.
#[derive(Debug, Clone, PartialEq)]
pub struct CostRules {
    /// The user's own list, for what the agent does not say itself.
    pub prices: Option<Prices>,
    /// The model that the agent was asked for: what it used, where it does not say.
    pub model: Option<String>,
    pub figures: CostFigures,
}

/// Whether there can be any figure at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CostFigures {
    Possible,
    Impossible { why: String },
}

/// Deadlines within one iteration, and pauses between them.
#[derive(Debug, Clone)]
pub struct Timing {
    pub wall: Option<Duration>,
    /// The longest silence, when no tool is known to be running; `None` for no limit.
    pub idle: Option<Duration>,
    /// The longest silence while a tool runs: agents print nothing then.
    pub idle_in_tool: Option<Duration>,
    /// How long an agent may linger, silent, after its terminal event.
    pub after_result: Duration,
    /// Between asking the agent's processes to end and killing them.
    pub stop_grace: Duration,
    pub cooldown: Duration,
}

/// A command that must succeed before a claim of completion is believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateRule {
    pub name: String,
    pub command: String,
    pub timeout: Duration,
    /// `None` is the workspace.
    pub cwd: Option<PathBuf>,
    /// Set for it.
    pub environment: Vec<(String, String)>,
}

/// What the agent's transcript format is able to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    pub messages: Messages,
    pub ending: Ending,
}

/// Whether a format tells one message from the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Messages {
    Delimited,
    /// Only lines; the last few of them stand for the final message.
    Absent,
    /// The text of a screen that somebody watches: the prompt, what was typed, what tools printed and what the agent
    /// said all stand on it, and nothing tells them apart. Whether the work is done, the one who watches must say.
    Watched,
}

/// Whether a format has a terminal event, without which a stream was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    TerminalEvent,
    ExitOnly,
}

/// What an agent's own "I have failed" means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDeclaredFailure {
    Stop,
    Retry,
}

/// Whether an iteration goes on in the agent's own session of the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionRule {
    Fresh,
    Continue,
}
