//! Limits of a run, deadlines of an iteration, and where costs come from.

use std::time::Duration;

use super::Prices;

/// Limits of the whole run.
#[derive(Debug, Clone)]
pub struct Limits {
    pub iterations: u64,
    /// Time spent waiting for a usage limit does not count.
    pub runtime: Duration,
    pub cost_usd: Option<f64>,
    pub tokens: Option<u64>,
    pub consecutive_failures: u64,
    /// The longest wait for a usage limit or an overloaded service; the agent is then tried again.
    pub limit_wait: Duration,
    /// Consecutive iterations without a change; 0 for no limit.
    pub no_progress: u64,
    /// How much an agent may print in one iteration; 0 for no limit.
    pub output_bytes: u64,
    /// The run ends when less than this is free on the disk of the project or of the run's files; 0 for no limit.
    pub free_disk_bytes: u64,
}

/// Where costs come from.
#[derive(Debug, Clone, PartialEq)]
pub struct CostRules {
    /// The user's price list, for usage without a reported cost.
    pub prices: Option<Prices>,
    /// The configured model; assumed when the agent does not report one.
    pub model: Option<String>,
    pub availability: CostAvailability,
}

/// Whether costs can be known at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CostAvailability {
    Available,
    Unavailable { reason: String },
}

/// Deadlines of one attempt of an agent.
#[derive(Debug, Clone, Copy, Default)]
pub struct AttemptTimeouts {
    pub wall: Option<Duration>,
    /// The longest time without output while no tool is running; `None` for no limit.
    pub idle: Option<Duration>,
    /// The longest time without output while a tool runs; agents usually print nothing then.
    pub idle_in_tool: Option<Duration>,
}

/// Grace periods, and the pause between iterations.
#[derive(Debug, Clone)]
pub struct Timing {
    /// How long an agent may stay alive without output after its terminal event.
    pub after_result: Duration,
    /// Time between asking the agent's processes to exit and killing them.
    pub stop_grace: Duration,
    pub cooldown: Duration,
}
