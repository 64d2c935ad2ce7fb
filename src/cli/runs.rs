//! `ralph runs`: lists the runs of this project, newest first. Reads only the first and last record of each journal,
//! and whole journals only for listed runs that have not ended.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::event::Usage;
use crate::run::RunRow;
use crate::store::{RunIndex, par_map};
use crate::ui::{Table, Terminal, Tone, pretty_json, units};

use super::all_runs;
use super::args::RunsArguments;
use super::common::ignore_broken_pipe;
use super::context::current_project;
use super::error::CliError;
use super::exit::Exit;
use super::run_rows::{COLUMNS, RunFilter, cells, find_runs};

pub(super) fn runs(arguments: &RunsArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let project = current_project()?;
    if arguments.all {
        return all_runs::list(&project, arguments, terminal);
    }
    let (now, zone) = (Timestamp::now(), crate::ui::local_time_zone());
    let index = RunIndex::load(&project);
    let filter = RunFilter::new(arguments, now, &zone);
    let max = match arguments.number {
        0 => usize::MAX,
        number => number,
    };
    let mut found = find_runs(&index, &filter, max.saturating_add(1));
    // One more than requested is searched for, to know whether there are more.
    let more = found.len() > max;
    found.truncate(max);
    let rows = par_map(&found, |entry| RunRow::read(&index, entry));
    let text = if arguments.json {
        pretty_json(&rows)
    } else {
        let found = Found {
            rows: &rows,
            more,
            index: &index,
        };
        text(found, now, &zone, terminal)
    };
    terminal
        .print(&text)
        .map(|()| Exit::Success)
        .or_else(ignore_broken_pipe)
}

/// The runs that match, and whether there are more.
struct Found<'a> {
    rows: &'a [RunRow],
    more: bool,
    index: &'a RunIndex,
}

fn text(found: Found<'_>, now: Timestamp, zone: &TimeZone, terminal: &Terminal) -> String {
    let Found { rows, more, index } = found;
    if index.is_empty() {
        return "No runs yet. To start one: ralph run -p \"make the tests pass\"\n".to_owned();
    }
    if rows.is_empty() {
        let all = units::count(index.len() as u64, "run");
        return format!("No matching runs (of {all}). To list all: ralph runs\n");
    }
    let mut table = Table::new(COLUMNS);
    for cells in par_map(rows, |row| cells(row, now, zone)) {
        table.row(cells);
    }
    let mut text = terminal.render(&table);
    if rows.len() > 1 {
        text.push_str(&terminal.styled(&totals_line(rows), Tone::Faint));
        text.push('\n');
    }
    if more {
        text.push_str(&format!(
            "\nShowing the newest {} of {} runs; -n 0 lists all.\n",
            rows.len(),
            units::grouped(index.len() as u64)
        ));
    }
    text
}

/// The totals of the listed runs.
fn totals_line(rows: &[RunRow]) -> String {
    let (mut iterations, mut usage) = (0, Usage::default());
    for totals in rows.iter().filter_map(|row| row.totals.as_ref()) {
        iterations += totals.iterations;
        usage.add(&totals.usage);
    }
    let mut parts = vec![
        units::count(rows.len() as u64, "run"),
        units::count(iterations, "iteration"),
    ];
    parts.extend(
        usage
            .tokens()
            .map(|tokens| format!("{} tokens", units::tokens(tokens))),
    );
    parts.extend(usage.cost_usd.map(units::dollars));
    format!("total: {}", parts.join(" · "))
}
