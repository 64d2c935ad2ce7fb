//! The exit codes.

use std::process::ExitCode;

use crate::event::{Interrupt, RunOutcome};

/// The result of a command. The numbers are documented and stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Exit {
    /// The work is done, or the command succeeded.
    Success = 0,
    /// The loop gave up, or the agent failed or is not logged in.
    Failed = 1,
    /// The command line or the configuration is invalid.
    Usage = 2,
    /// A limit was reached: iterations, time, cost, tokens.
    Limit = 3,
    NoAgent = 4,
    /// Another loop runs in this workspace.
    Busy = 5,
    /// The rounds of a review are used up.
    Unreviewed = 6,
    /// The agent's usage limit is reached, and `--on-limit exit` does not wait.
    RateLimited = 7,
    /// The checkpoint command refused to let the run continue.
    CheckpointRefused = 8,
    HungUp = 129,
    Interrupted = 130,
    Terminated = 143,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl From<&RunOutcome> for Exit {
    fn from(outcome: &RunOutcome) -> Self {
        match outcome {
            RunOutcome::Complete { .. } => Self::Success,
            RunOutcome::Failed { .. } | RunOutcome::AuthRequired { .. } => Self::Failed,
            RunOutcome::Misconfigured { .. } => Self::Usage,
            RunOutcome::Unreviewed { .. } => Self::Unreviewed,
            RunOutcome::LimitReached { .. } => Self::Limit,
            RunOutcome::RateLimited { .. } => Self::RateLimited,
            RunOutcome::CheckpointRefused { .. } => Self::CheckpointRefused,
            RunOutcome::Interrupted { by } => Self::from(*by),
        }
    }
}

impl From<Interrupt> for Exit {
    fn from(by: Interrupt) -> Self {
        match by {
            Interrupt::Int | Interrupt::Quit => Self::Interrupted,
            Interrupt::Term => Self::Terminated,
            Interrupt::Hup => Self::HungUp,
        }
    }
}
