//! The outcome and the start time of a run, as listings show them.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::event::RunOutcome;
use crate::store::RunState;
use crate::ui::Tone;

use super::args::OutcomeName;

pub(super) fn outcome_of(state: &RunState) -> OutcomeName {
    match state {
        RunState::Running => OutcomeName::Running,
        RunState::Died => OutcomeName::Died,
        RunState::Broken => OutcomeName::Broken,
        RunState::Ended(ending) => match ending.outcome {
            RunOutcome::Complete { .. } => OutcomeName::Complete,
            RunOutcome::Failed { .. } => OutcomeName::Failed,
            RunOutcome::AuthRequired { .. } => OutcomeName::Auth,
            RunOutcome::LimitReached { .. } => OutcomeName::Limit,
            RunOutcome::Interrupted { .. } => OutcomeName::Interrupted,
        },
    }
}

/// `2026-11-15 20:45`, in the user's time zone.
pub(super) fn date(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M").to_string()
}

pub(super) fn outcome_label(outcome: OutcomeName) -> (&'static str, Tone) {
    match outcome {
        OutcomeName::Complete => ("✓ complete", Tone::Good),
        OutcomeName::Failed => ("✗ failed", Tone::Bad),
        OutcomeName::Auth => ("✗ not logged in", Tone::Bad),
        OutcomeName::Limit => ("! limit", Tone::Warning),
        OutcomeName::Interrupted => ("! interrupted", Tone::Warning),
        OutcomeName::Running => ("▸ running", Tone::Accent),
        OutcomeName::Died => ("✗ died", Tone::Bad),
        OutcomeName::Broken => ("? broken", Tone::Bad),
    }
}
