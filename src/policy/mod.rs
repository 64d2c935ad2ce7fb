//! The rules that configuration, engine and driver share, as plain data: limits, durations, completion, gates, hats,
//! hooks, prices, sandbox and sessions.

mod completion;
mod gate;
mod hat;
mod hooks;
mod limits;
mod notify;
mod percent;
mod prices;
mod quota;
mod review;
mod sandbox;
mod seconds;
pub(crate) mod section;
mod session;
mod worktree;

pub use completion::{MarkerPlacement, OnDeclaredFailure, OnLimit, OnRejected};
pub use gate::{Gate, GatePlace};
pub(crate) use hat::QUESTION_TOPIC;
pub use hat::{Hat, PartialHat, START_TOPIC};
pub use hooks::{Hooks, PartialHooks};
pub use limits::{AttemptTimeouts, CostAvailability, CostRules, Limits, Timing};
pub use notify::{Notify, NotifyEvent, PartialNotify};
pub use percent::Percent;
pub(crate) use prices::MissingPrice;
pub use prices::{Price, Prices};
#[cfg(test)]
pub use quota::QuotaCause;
pub use quota::{
    Account, Admission, Budgets, PartialBudgets, PartialQuota, QuotaRules, QuotaSettings, QuotaWait, Spend,
    Urgency,
};
pub(crate) use review::FINDING_TOPIC;
pub use review::Reviewer;
pub use sandbox::{
    EnvironmentRules, HostRule, NetworkAccess, PartialEnvironmentRules, PartialSandbox, Sandbox, SandboxMode,
};
pub use seconds::Seconds;
pub use session::Session;
pub use worktree::{CommitPolicy, PartialWorktree, Worktree};
