//! The outcome and the start time of a run, as listings show them.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::run::OutcomeName;
use crate::ui::Tone;

/// `2026-11-15 20:45`, in the user's time zone.
pub(super) fn date(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M").to_string()
}

pub(super) fn outcome_label(outcome: OutcomeName) -> (&'static str, Tone) {
    match outcome {
        OutcomeName::Complete => ("✓ complete", Tone::Good),
        OutcomeName::Failed => ("✗ failed", Tone::Bad),
        OutcomeName::Unreviewed => ("! unreviewed", Tone::Warning),
        OutcomeName::Auth => ("✗ not logged in", Tone::Bad),
        OutcomeName::Limit => ("! limit", Tone::Warning),
        OutcomeName::Interrupted => ("! interrupted", Tone::Warning),
        OutcomeName::Running => ("▸ running", Tone::Accent),
        OutcomeName::Died => ("✗ died", Tone::Bad),
        OutcomeName::Broken => ("? broken", Tone::Bad),
    }
}
