//! `ralph clean`: removes old runs of the project after confirmation. Never removes active runs, or anything outside the
//! state directory.

use jiff::Timestamp;
use serde::Serialize;

use crate::run::{Host, OutcomeName};
use crate::snapshot::SnapshotStore;
use crate::store::{Project, RunIndex, RunState, directory_size, is_running, remove_runs, time_from_id};
use crate::ui::{Cell, Confirmed, Table, Terminal, Tone, pretty_json, units};

use super::args::CleanArguments;
use super::common::ignore_broken_pipe;
use super::context::current_project;
use super::error::CliError;
use super::exit::Exit;
use super::outcome::{date, outcome_label};

/// Default number of runs to keep.
const DEFAULT_KEEP: usize = 20;
/// Maximum number of runs to list before the confirmation prompt.
const MAX_SHOWN: usize = 20;

/// A run to remove.
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

pub(super) fn clean(arguments: &CleanArguments, terminal: &Terminal, host: &Host) -> Result<Exit, CliError> {
    let project = current_project()?;
    let now = Timestamp::now();
    let index = RunIndex::load(&project).without_legacy();
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
        let done = remove_runs(&project, &ids, now)?;
        candidates.retain(|candidate| done.removed.contains(&candidate.id));
        remove_snapshots(&project, host)?;
    }
    let report = CleanReport {
        dry_run: arguments.dry_run,
        bytes: bytes(&candidates),
        kept: index.len() - candidates.len(),
        removed: &candidates,
    };
    let text = match (arguments.json, arguments.dry_run) {
        (true, _) => pretty_json(&report),
        (false, true) => list(&candidates, usize::MAX, terminal) + &summary(&report),
        (false, false) => summary(&report),
    };
    terminal
        .print(&text)
        .map(|()| Exit::Success)
        .or_else(ignore_broken_pipe)
}

/// Removes the snapshots of runs that no longer exist, unless a run could be storing one.
fn remove_snapshots(project: &Project, host: &Host) -> Result<(), CliError> {
    let store = SnapshotStore::at(project.snapshots(), host.supervisors());
    let Ok(_lock) = project.lock(Timestamp::now()) else {
        return Ok(());
    };
    let index = RunIndex::load(project).without_legacy();
    let ids: Vec<String> = index.newest_first().map(str::to_owned).collect();
    Ok(store.keep_only(&ids)?)
}

fn candidates(index: &RunIndex, arguments: &CleanArguments, now: Timestamp) -> Vec<Candidate> {
    let before = arguments
        .older_than
        .map(|time| time.start(now, &crate::ui::local_time_zone()));
    let default_keep = if before.is_some() { 0 } else { DEFAULT_KEEP };
    index
        .newest_first()
        .skip(arguments.keep.unwrap_or(default_keep))
        .filter(|id| before.is_none_or(|before| time_from_id(id).is_some_and(|began| began < before)))
        .map(|id| index.entry(id))
        .filter(|entry| entry.state != RunState::Running && !is_running(&index.directory(&entry.id)))
        .map(|entry| Candidate {
            bytes: directory_size(&index.directory(&entry.id)),
            outcome: OutcomeName::of(&entry.state),
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
    let text = list(candidates, MAX_SHOWN, terminal);
    let question = format!("Remove {runs} ({})? [y/N] ", units::bytes(bytes(candidates)));
    terminal.print(&text).map_err(CliError::Output)?;
    match terminal.confirm(&question).map_err(CliError::Output)? {
        Confirmed::Yes => Ok(Confirmation::Yes),
        Confirmed::No => Ok(Confirmation::No),
        Confirmed::NoTerminal => Err(CliError::CannotConfirm { runs }),
    }
}

fn list(candidates: &[Candidate], max: usize, terminal: &Terminal) -> String {
    if candidates.is_empty() {
        return String::new();
    }
    let zone = crate::ui::local_time_zone();
    let mut table = Table::new(["RUN", "STARTED", "OUTCOME", "SIZE"]);
    for candidate in candidates.iter().take(max) {
        let (word, tone) = outcome_label(candidate.outcome);
        let began = candidate.began.map(|began| date(began, &zone));
        table.row([
            Cell::new(&candidate.id, Tone::Accent),
            began.unwrap_or_default().into(),
            Cell::new(word, tone),
            units::bytes(candidate.bytes).into(),
        ]);
    }
    let mut text = terminal.render(&table);
    if let more @ 1.. = candidates.len().saturating_sub(max) {
        text.push_str(&format!("… and {} more\n", units::grouped(more as u64)));
    }
    text.push('\n');
    text
}

fn bytes(candidates: &[Candidate]) -> u64 {
    candidates.iter().map(|candidate| candidate.bytes).sum()
}

fn summary(report: &CleanReport) -> String {
    let kept = format!("{} kept", units::count(report.kept as u64, "run"));
    if report.removed.is_empty() {
        return format!("Nothing to remove; {kept}.\n");
    }
    let runs = units::count(report.removed.len() as u64, "run");
    let size = units::bytes(report.bytes);
    match report.dry_run {
        true => format!("Would remove {runs} ({size}); {kept}.\n"),
        false => format!("Removed {runs} ({size}); {kept}.\n"),
    }
}
