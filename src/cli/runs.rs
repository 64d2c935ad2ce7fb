//! `ralph runs`: the runs of this directory, the newest first. Each is judged by the two ends of its journal; only what
//! is shown of a run without an end is read through.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::engine::RestoredRun;
use crate::event::{RunOutcome, Usage};
use crate::store::{RestoredRecord, RunEntry, RunIndex, State, par_map, recall, time_of};
use crate::ui::{Cell, Table, Terminal, Tone, units};

use super::agents::json;
use super::args::{OutcomeName, RunsArguments, TimeArgument};
use super::context::Context;
use super::error::CliError;
use super::exit::Exit;
use super::transcript::ignore_broken_pipe;

/// So many runs are looked at first.
const FIRST_LOOK: usize = 32;
/// Of a prompt, so much is enough for its first words.
const PROMPT_BYTES: usize = 512;
const PROMPT_COLUMNS: usize = 40;

/// One run, as listed.
#[derive(Debug, Serialize)]
struct RunRow {
    id: String,
    began: Option<Timestamp>,
    agent: Option<String>,
    outcome: OutcomeName,
    #[serde(flatten)]
    figures: Option<Figures>,
    /// The first words of its prompt.
    prompt: Option<String>,
}

/// What a run has come to.
#[derive(Debug, Serialize)]
pub(super) struct Figures {
    pub(super) iterations: u64,
    pub(super) duration_ms: u64,
    pub(super) usage: Usage,
}

pub(super) fn runs(arguments: &RunsArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let context = Context::here()?;
    let (now, zone) = (Timestamp::now(), TimeZone::system());
    let index = RunIndex::of(&context.cwd);
    let filter = RunFilter::new(arguments, now, &zone);
    let most = match arguments.number {
        0 => usize::MAX,
        number => number,
    };
    let mut found = found(&index, &filter, most.saturating_add(1));
    // One more was looked for, to know whether there are more.
    let more = found.len() > most;
    found.truncate(most);
    let rows = par_map(&found, |entry| row(&index, entry));
    let text = if arguments.json {
        json(&rows)
    } else {
        text(&rows, more, &index, &zone, terminal)
    };
    terminal
        .print(&text)
        .map(|()| Exit::Success)
        .or_else(ignore_broken_pipe)
}

/// The newest that are wanted, so many at most. The further back, the more are looked at together.
fn found(index: &RunIndex, filter: &RunFilter, most: usize) -> Vec<RunEntry> {
    let ids: Vec<&str> = index.newest_first().filter(|id| filter.is_in_time(id)).collect();
    let (mut found, mut rest, mut together) = (Vec::new(), &ids[..], FIRST_LOOK);
    while found.len() < most && !rest.is_empty() {
        let (next, after) = rest.split_at(together.min(rest.len()));
        found.extend(
            par_map(next, |id| index.entry(id))
                .into_iter()
                .filter(|entry| filter.wants(entry)),
        );
        (rest, together) = (after, together * 8);
    }
    found.truncate(most);
    found
}

struct RunFilter<'a> {
    arguments: &'a RunsArguments,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
}

impl<'a> RunFilter<'a> {
    fn new(arguments: &'a RunsArguments, now: Timestamp, zone: &TimeZone) -> Self {
        Self {
            arguments,
            since: arguments.since.map(|moment| moment.begins(now, zone)),
            until: arguments.until.map(|moment| moment.ends(now, zone)),
        }
    }

    /// The id alone tells; nothing is opened for it.
    fn is_in_time(&self, id: &str) -> bool {
        if self.since.is_none() && self.until.is_none() {
            return true;
        }
        time_of(id).is_some_and(|began| {
            // Ids know no fraction of a second.
            self.since
                .is_none_or(|since| began.as_second() >= since.as_second())
                && self.until.is_none_or(|until| began <= until)
        })
    }

    fn wants(&self, entry: &RunEntry) -> bool {
        let agent = entry.header.as_ref().map(|header| header.agent.as_str());
        let is_agents = self
            .arguments
            .agent
            .as_deref()
            .is_none_or(|name| agent == Some(name));
        let outcomes = &self.arguments.outcome;
        is_agents && (outcomes.is_empty() || outcomes.contains(&outcome_of(&entry.state)))
    }
}

impl TimeArgument {
    /// The time that is meant, or the first of the day.
    pub(super) fn begins(self, now: Timestamp, zone: &TimeZone) -> Timestamp {
        let time = match self {
            Self::Ago(span) => return before(now, span, zone),
            Self::Day(date) => date.at(0, 0, 0, 0),
            Self::At(time) => time,
        };
        time.to_zoned(zone.clone()).map_or(now, |time| time.timestamp())
    }

    /// The time that is meant, or the last of the day.
    fn ends(self, now: Timestamp, zone: &TimeZone) -> Timestamp {
        match self {
            Self::Day(date) => Self::At(date.at(23, 59, 59, 999_999_999)).begins(now, zone),
            Self::Ago(_) | Self::At(_) => self.begins(now, zone),
        }
    }
}

/// Longer ago than the calendar reaches is before everything.
fn before(now: Timestamp, span: jiff::Span, zone: &TimeZone) -> Timestamp {
    let then = now.to_zoned(zone.clone()).checked_sub(span);
    then.map_or(Timestamp::MIN, |then| then.timestamp())
}

pub(super) fn outcome_of(state: &State) -> OutcomeName {
    match state {
        State::AtWork => OutcomeName::Running,
        State::Died => OutcomeName::Died,
        State::Broken => OutcomeName::Broken,
        State::Ended(ending) => match ending.outcome {
            RunOutcome::Complete { .. } => OutcomeName::Complete,
            RunOutcome::Failed { .. } => OutcomeName::Failed,
            RunOutcome::AuthRequired { .. } => OutcomeName::Auth,
            RunOutcome::LimitReached { .. } => OutcomeName::Limit,
            RunOutcome::Interrupted { .. } => OutcomeName::Interrupted,
        },
    }
}

fn row(index: &RunIndex, entry: &RunEntry) -> RunRow {
    let directory = index.directory(&entry.id);
    let outcome = outcome_of(&entry.state);
    let figures = match &entry.state {
        State::Ended(ending) => Some(Figures {
            iterations: ending.iterations,
            duration_ms: ending.duration_ms,
            usage: ending.usage.clone(),
        }),
        State::AtWork | State::Died => partial_figures(&directory.join("events.jsonl")),
        State::Broken => None,
    };
    RunRow {
        prompt: first_words(&directory.join("iterations/0001/prompt.md")),
        id: entry.id.clone(),
        began: entry.began,
        agent: entry.header.as_ref().map(|header| header.agent.clone()),
        outcome,
        figures,
    }
}

/// What a run without an end has come to: that is in the whole of its journal.
pub(super) fn partial_figures(journal: &Path) -> Option<Figures> {
    let mut restored = RestoredRun::default();
    recall(journal, |recalled| match recalled {
        RestoredRecord::Whole(record) => restored.fold(&record),
        RestoredRecord::Passed { seq, at } => restored.seen(seq, at),
    })
    .ok()?;
    Some(Figures {
        iterations: restored.iterations(),
        duration_ms: u64::try_from(restored.elapsed().as_millis()).unwrap_or(u64::MAX),
        usage: restored.used(),
    })
}

/// The first line with words in it, without the marks of a heading.
fn first_words(prompt: &Path) -> Option<String> {
    let mut bytes = [0; PROMPT_BYTES];
    let count = File::open(prompt).ok()?.read(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes[..count]);
    let mut lines = text
        .lines()
        .map(|line| line.trim().trim_start_matches('#').trim());
    let words = lines.find(|line| !line.is_empty())?;
    let mut cut: String = words.chars().take(PROMPT_COLUMNS).collect();
    if cut.len() < words.len() {
        cut.push('…');
    }
    Some(cut)
}

fn text(rows: &[RunRow], more: bool, index: &RunIndex, zone: &TimeZone, terminal: &Terminal) -> String {
    if index.is_empty() {
        return "There are no runs here yet. To begin one: ralph run -p \"make the tests pass\"\n".to_owned();
    }
    if rows.is_empty() {
        let all = units::count(index.len() as u64, "run");
        return format!("No run is like that, of {all} in all. To see them: ralph runs\n");
    }
    let header = [
        "RUN",
        "BEGAN",
        "AGENT",
        "OUTCOME",
        "ITERATIONS",
        "TIME",
        "TOKENS",
        "COST",
        "PROMPT",
    ];
    let mut table = Table::new(header);
    for cells in par_map(rows, |row| cells(row, zone)) {
        table.row(cells);
    }
    let mut text = terminal.render(&table);
    if more {
        text.push_str(&format!(
            "\nThe newest {}, of {} in all; -n 0 shows every one.\n",
            rows.len(),
            units::grouped(index.len() as u64)
        ));
    }
    text
}

fn cells(row: &RunRow, zone: &TimeZone) -> [Cell; 9] {
    let began = row.began.map(|began| date(began, zone));
    let figures = row.figures.as_ref();
    let (word, tone) = outcome_words(row.outcome);
    let took = figures.map(|figures| units::duration(Duration::from_millis(figures.duration_ms)));
    let usage = figures.map(|figures| &figures.usage);
    [
        Cell::new(&row.id, Tone::Accent),
        began.unwrap_or_default().into(),
        row.agent.as_deref().unwrap_or_default().into(),
        Cell::new(word, tone),
        figures
            .map(|figures| units::grouped(figures.iterations))
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
        Cell::new(row.prompt.as_deref().unwrap_or_default(), Tone::Faint),
    ]
}

/// `2026-11-15 20:45`, on the user's clock.
pub(super) fn date(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M").to_string()
}

pub(super) fn outcome_words(outcome: OutcomeName) -> (&'static str, Tone) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_meant_from_its_first_moment_to_its_last() {
        let now: Timestamp = "2026-11-16T12:00:00Z".parse().unwrap();
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let day = TimeArgument::Day("2026-11-15".parse().unwrap());
        assert_eq!(day.begins(now, &zone).to_string(), "2026-11-14T22:00:00Z");
        assert_eq!(day.ends(now, &zone).to_string(), "2026-11-15T21:59:59.999999999Z");
        let ago = TimeArgument::Ago("2d".parse().unwrap());
        assert_eq!(ago.begins(now, &zone).to_string(), "2026-11-14T12:00:00Z");
        let ages = TimeArgument::Ago("19998y".parse().unwrap());
        assert_eq!(ages.begins(now, &zone), Timestamp::MIN);
    }
}
