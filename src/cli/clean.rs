//! `ralph clean`: removes old runs, after a question. What is at work stays, and nothing outside `.agent/runs` is touched.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::store::{RunIndex, State, discard, size_of, time_of};
use crate::ui::{Cell, Confirmed, Table, Terminal, Tone, units};

use super::agents::json;
use super::args::{CleanArguments, OutcomeName};
use super::context::Context;
use super::error::CliError;
use super::exit::Exit;
use super::runs::{date, outcome_of, outcome_words};
use super::transcript::ignore_broken_pipe;

/// Without a word about it, so many stay.
const USUALLY_KEPT: usize = 20;
/// Of a longer list, so many are shown before the question.
const MOST_SHOWN: usize = 20;

/// A run that may go.
#[derive(Debug, Serialize)]
struct Candidate {
    id: String,
    began: Option<Timestamp>,
    outcome: OutcomeName,
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct CleanReport<'a> {
    dry_run: bool,
    removed: &'a [Candidate],
    bytes: u64,
    kept: usize,
}

pub(super) fn clean(arguments: &CleanArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let context = Context::here()?;
    let now = Timestamp::now();
    let index = RunIndex::of(&context.cwd);
    let mut candidates = candidates(&index, arguments, now);
    if !arguments.dry_run && !candidates.is_empty() {
        if let Confirmation::No = confirm_removal(&candidates, arguments, terminal)? {
            let text = "Nothing was removed.\n";
            return terminal
                .print(text)
                .map(|()| Exit::Failed)
                .map_err(CliError::Output);
        }
        let ids: Vec<String> = candidates.iter().map(|candidate| candidate.id.clone()).collect();
        let done = discard(&context.cwd, &ids, now)?;
        candidates.retain(|candidate| done.removed.contains(&candidate.id));
    }
    let report = CleanReport {
        dry_run: arguments.dry_run,
        bytes: bytes(&candidates),
        kept: index.len() - candidates.len(),
        removed: &candidates,
    };
    let text = match (arguments.json, arguments.dry_run) {
        (true, _) => json(&report),
        (false, true) => listed(&candidates, usize::MAX, terminal) + &sentence(&report),
        (false, false) => sentence(&report),
    };
    terminal
        .print(&text)
        .map(|()| Exit::Success)
        .or_else(ignore_broken_pipe)
}

fn candidates(index: &RunIndex, arguments: &CleanArguments, now: Timestamp) -> Vec<Candidate> {
    let before = arguments
        .older_than
        .map(|moment| moment.begins(now, &TimeZone::system()));
    let usually = if before.is_some() { 0 } else { USUALLY_KEPT };
    index
        .newest_first()
        .skip(arguments.keep.unwrap_or(usually))
        .filter(|id| before.is_none_or(|before| time_of(id).is_some_and(|began| began < before)))
        .map(|id| index.entry(id))
        .filter(|entry| entry.state != State::AtWork && !index.is_at_work(&entry.id))
        .map(|entry| Candidate {
            bytes: size_of(&index.directory(&entry.id)),
            outcome: outcome_of(&entry.state),
            began: entry.began,
            id: entry.id,
        })
        .collect()
}

enum Confirmation {
    Yes,
    No,
}

fn confirm_removal(
    candidates: &[Candidate],
    arguments: &CleanArguments,
    terminal: &Terminal,
) -> Result<Confirmation, CliError> {
    if arguments.yes {
        return Ok(Confirmation::Yes);
    }
    let runs = units::count(candidates.len() as u64, "run");
    if !terminal.can_ask() {
        return Err(CliError::CannotConfirm { runs });
    }
    let list = listed(candidates, MOST_SHOWN, terminal);
    let question = format!("Remove {runs} ({})? [y/N] ", units::bytes(bytes(candidates)));
    terminal.print(&list).map_err(CliError::Output)?;
    match terminal.confirm(&question).map_err(CliError::Output)? {
        Confirmed::Yes => Ok(Confirmation::Yes),
        Confirmed::No => Ok(Confirmation::No),
        Confirmed::NobodyToAsk => Err(CliError::CannotConfirm { runs }),
    }
}

fn listed(candidates: &[Candidate], most: usize, terminal: &Terminal) -> String {
    if candidates.is_empty() {
        return String::new();
    }
    let zone = TimeZone::system();
    let mut table = Table::new(["RUN", "BEGAN", "OUTCOME", "SIZE"]);
    for candidate in candidates.iter().take(most) {
        let (word, tone) = outcome_words(candidate.outcome);
        let began = candidate.began.map(|began| date(began, &zone));
        table.row([
            Cell::new(&candidate.id, Tone::Accent),
            began.unwrap_or_default().into(),
            Cell::new(word, tone),
            units::bytes(candidate.bytes).into(),
        ]);
    }
    let mut text = terminal.render(&table);
    if let more @ 1.. = candidates.len().saturating_sub(most) {
        text.push_str(&format!("… and {} more\n", units::grouped(more as u64)));
    }
    text.push('\n');
    text
}

fn bytes(candidates: &[Candidate]) -> u64 {
    candidates.iter().map(|candidate| candidate.bytes).sum()
}

fn sentence(report: &CleanReport) -> String {
    let stay = match report.kept {
        1 => "1 run stays".to_owned(),
        kept => format!("{} stay", units::count(kept as u64, "run")),
    };
    if report.removed.is_empty() {
        return format!("There is nothing to remove; {stay}.\n");
    }
    let runs = units::count(report.removed.len() as u64, "run");
    let size = units::bytes(report.bytes);
    match report.dry_run {
        true => format!("{runs} would go ({size}); {stay}. Nothing was removed.\n"),
        false => format!("Removed {runs}, {size} freed; {stay}.\n"),
    }
}
