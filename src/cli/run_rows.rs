//! The rows of a list of runs: finds the runs that match the arguments, and prints them as cells of a table.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::event::Usage;
use crate::run::{OutcomeName, RunRow};
use crate::store::{RunEntry, RunIndex, par_map, time_from_id};
use crate::ui::{Cell, Tone, units};

use super::args::{RunsArguments, TimeArgument};
use super::outcome::{date, outcome_label};

/// Number of runs in the first batch.
const FIRST_BATCH: usize = 32;
/// The columns of a prompt's first line.
const PROMPT_COLUMNS: usize = 40;
pub(super) const COLUMNS: [&str; 9] = [
    "RUN",
    "STARTED",
    "AGENT",
    "OUTCOME",
    "ITERATIONS",
    "TIME",
    "TOKENS",
    "COST",
    "PROMPT",
];

/// Finds the newest runs that match, in batches of increasing size.
pub(super) fn find_runs(index: &RunIndex, filter: &RunFilter, max: usize) -> Vec<RunEntry> {
    let ids: Vec<&str> = index
        .newest_first()
        .filter(|id| filter.matches_time(id))
        .collect();
    let (mut found, mut rest, mut batch) = (Vec::new(), &ids[..], FIRST_BATCH);
    while found.len() < max && !rest.is_empty() {
        let (next, after) = rest.split_at(batch.min(rest.len()));
        found.extend(
            par_map(next, |id| index.entry(id))
                .into_iter()
                .filter(|entry| filter.matches(entry)),
        );
        (rest, batch) = (after, batch * 8);
    }
    found.truncate(max);
    found
}

pub(super) struct RunFilter<'a> {
    arguments: &'a RunsArguments,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
}

impl<'a> RunFilter<'a> {
    pub(super) fn new(arguments: &'a RunsArguments, now: Timestamp, zone: &TimeZone) -> Self {
        Self {
            arguments,
            since: arguments.since.map(|time| time.start(now, zone)),
            until: arguments.until.map(|time| time.end(now, zone)),
        }
    }

    /// Reads the time from the id, without opening files.
    fn matches_time(&self, id: &str) -> bool {
        if self.since.is_none() && self.until.is_none() {
            return true;
        }
        time_from_id(id).is_some_and(|began| {
            // Ids have no fractions of a second.
            self.since
                .is_none_or(|since| began.as_second() >= since.as_second())
                && self.until.is_none_or(|until| began <= until)
        })
    }

    fn matches(&self, entry: &RunEntry) -> bool {
        let agent = entry.header.as_ref().map(|header| header.agent.as_str());
        let matches_agent = self
            .arguments
            .agent
            .as_deref()
            .is_none_or(|name| agent == Some(name));
        let outcomes = &self.arguments.outcome;
        matches_agent && (outcomes.is_empty() || outcomes.contains(&OutcomeName::of(&entry.state)))
    }
}

impl TimeArgument {
    /// The time, or the start of the day.
    pub(super) fn start(self, now: Timestamp, zone: &TimeZone) -> Timestamp {
        let time = match self {
            Self::Ago(span) => return time_ago(now, span, zone),
            Self::Day(date) => date.at(0, 0, 0, 0),
            Self::At(time) => time,
        };
        time.to_zoned(zone.clone()).map_or(now, |time| time.timestamp())
    }

    /// The time, or the end of the day.
    fn end(self, now: Timestamp, zone: &TimeZone) -> Timestamp {
        match self {
            Self::Day(date) => Self::At(date.at(23, 59, 59, 999_999_999)).start(now, zone),
            Self::Ago(_) | Self::At(_) => self.start(now, zone),
        }
    }
}

/// Subtracts a span; `Timestamp::MIN` on overflow.
fn time_ago(now: Timestamp, span: jiff::Span, zone: &TimeZone) -> Timestamp {
    let then = now.to_zoned(zone.clone()).checked_sub(span);
    then.map_or(Timestamp::MIN, |then| then.timestamp())
}

pub(super) fn cells(row: &RunRow, now: Timestamp, zone: &TimeZone) -> [Cell; 9] {
    let began = row.began.map(|began| date(began, zone));
    let totals = row.totals.as_ref();
    let (word, tone) = outcome_label(row.outcome);
    // The journal of a waiting run does not grow, but its time does.
    let running_for = row.began.filter(|_| row.outcome == OutcomeName::Running);
    let took = running_for.map(|began| units::since(began, now)).or_else(|| {
        let totals = totals?;
        Some(Duration::from_millis(totals.duration_ms))
    });
    let took = took.map(units::duration);
    let usage = totals.map(|totals| &totals.usage);
    [
        Cell::new(&row.id, Tone::Accent),
        began.unwrap_or_default().into(),
        row.agent.as_deref().unwrap_or_default().into(),
        Cell::new(word, tone),
        totals
            .map(|totals| units::grouped(totals.iterations))
            .unwrap_or_default()
            .into(),
        took.unwrap_or_default().into(),
        usage
            .and_then(Usage::tokens)
            .map(units::tokens)
            .unwrap_or_default()
            .into(),
        usage
            .and_then(|usage| usage.cost_usd)
            .map(units::dollars)
            .unwrap_or_default()
            .into(),
        Cell::new(&shortened(row.prompt.as_deref().unwrap_or_default()), Tone::Faint),
    ]
}

fn shortened(prompt: &str) -> String {
    match prompt.char_indices().nth(PROMPT_COLUMNS) {
        Some((end, _)) => format!("{}…", &prompt[..end]),
        None => prompt.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_spans_from_midnight_to_midnight() {
        let now: Timestamp = "2026-11-16T12:00:00Z".parse().unwrap();
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let day = TimeArgument::Day("2026-11-15".parse().unwrap());
        assert_eq!(day.start(now, &zone).to_string(), "2026-11-14T22:00:00Z");
        assert_eq!(day.end(now, &zone).to_string(), "2026-11-15T21:59:59.999999999Z");
        let ago = TimeArgument::Ago("2d".parse().unwrap());
        assert_eq!(ago.start(now, &zone).to_string(), "2026-11-14T12:00:00Z");
        let ages = TimeArgument::Ago("19998y".parse().unwrap());
        assert_eq!(ages.start(now, &zone), Timestamp::MIN);
    }
}
