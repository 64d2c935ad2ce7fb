//! The decisions about an account that several runs share: who may start an agent now, who waits, and until when. Pure: the
//! caller passes the time, the lines of the ledger and which runs have died.

mod budgets;
mod state;
#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::Timestamp;

pub use budgets::{Budgets, PartialBudgets, Spend};
pub use state::Account;

use super::percent::Percent;
use super::section::section;
use crate::event::StartKind;

section! {
    /// How the runs of an account share its usage limits.
    QuotaSettings, PartialQuota, "quota" {
        /// The share of each usage limit that stays unused, such as `20%`: runs wait when the agent reports that more of
        /// the limit than the rest is used.
        reserve: Percent = Percent(0),
        /// How many agents of one account may run at the same time. Default: any number.
        #[check(range(min = 1, max = 1000))]
        parallel: u64,
        /// The name of the account, if it cannot be found out, as for custom agents. Runs with the same agent and account
        /// share its limits.
        #[check(length(min = 1, max = 64))]
        account: String,
    }
}

/// The rules of one run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QuotaRules {
    /// Above this utilization, from 0 to 1, the run waits.
    pub reserve: Percent,
    pub parallel: Option<u64>,
    /// A limit is tried again after this time, even if it resets later.
    pub longest_wait: Duration,
}

/// Whether the user asked for the attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    Normal,
    /// The user ended the wait, which overrides all rules.
    Now,
}

/// The answer to a run that wants to start an agent.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub enum Admission {
    Start(StartKind),
    Wait(QuotaWait),
}

/// A wait for an account.
#[derive(Debug, Clone, PartialEq)]
pub struct QuotaWait {
    pub cause: QuotaCause,
    /// When to ask again.
    pub until: Timestamp,
}

/// Why a run waits for an account.
#[derive(Debug, Clone, PartialEq)]
pub enum QuotaCause {
    /// A request was rejected.
    Limited { window: Option<String> },
    /// More than the rest without the reserve is used.
    Reserved {
        window: Option<String>,
        utilization: f64,
        reserve: Percent,
    },
    /// As many agents as allowed are running.
    Parallel { running: usize },
    /// Another run tries the account first after a reset.
    First { run: String },
    /// Others start one after the other after a reset.
    Spread,
}

impl QuotaCause {
    /// Whether the wait lasts until a limit resets; otherwise it depends on other runs.
    pub fn is_limit(&self) -> bool {
        match self {
            Self::Limited { .. } | Self::Reserved { .. } => true,
            Self::Parallel { .. } | Self::First { .. } | Self::Spread => false,
        }
    }

    /// The reason for the user. `account` names the agent and its account.
    pub fn describe(&self, account: &str) -> String {
        let limit = |window: &Option<String>| match window {
            Some(window) => format!("the {window} limit of {account}"),
            None => format!("the usage limit of {account}"),
        };
        match self {
            Self::Limited { window } => format!("{} is reached", limit(window)),
            Self::Reserved {
                window,
                utilization,
                reserve,
            } => format!(
                "{} of {} is used, and {reserve} is reserved (quota.reserve)",
                Percent::of_share(*utilization),
                limit(window)
            ),
            Self::Parallel { running } => {
                let runs = if *running == 1 { "run uses" } else { "runs use" };
                format!("{running} other {runs} {account} (quota.parallel)")
            }
            Self::First { run } => format!("run {run} tries {account} first after the reset"),
            Self::Spread => format!("the runs of {account} start one after the other after the reset"),
        }
    }
}

/// Safety margin after a stated reset.
const AFTER_RESET: Duration = Duration::from_secs(1);
/// A reset that passed this long ago counts as one that has just passed, and as unknown beyond it.
const RESET_TOLERANCE: Duration = Duration::from_secs(60);
/// First and longest time until a limit without a stated reset is tried again; it doubles in between.
const UNKNOWN_RESET: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(3600));
/// How many stated resets in a row are trusted.
const MAX_TRUSTED_RESETS: u32 = 3;
/// An agent that has run this long after a reset without a rejection shows that the limit is over.
const PROBATION: Duration = Duration::from_secs(60);
/// The time between two starts after a reset.
const SPREAD: Duration = Duration::from_secs(2);
/// How long starts are spread out after the first one has worked.
const SPREAD_FOR: Duration = Duration::from_secs(60);
/// When a run that waits for other runs asks again.
const ASK_AGAIN: Duration = Duration::from_secs(2);
/// A utilization without a reset time is considered outdated after this time.
const UNDATED_UTILIZATION: Duration = Duration::from_secs(3600);
/// A time this much before an earlier one means that the clock was set back.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(2);
