//! Exit codes: what `ralph` tells its caller.

use std::process::ExitCode;

use crate::event::{Interrupt, RunOutcome};

/// How `ralph` ended. The numbers are documented; they never change their meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Exit {
    /// The work is done, or the command did what it says.
    Success = 0,
    /// Gave up, the agent reported failure, or it is not logged in.
    Failed = 1,
    /// The command line or the configuration is wrong.
    Usage = 2,
    /// A limit was reached: iterations, time, cost, tokens.
    Limit = 3,
    NoAgent = 4,
    /// Another loop holds this workspace.
    Busy = 5,
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
            RunOutcome::LimitReached { .. } => Self::Limit,
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
