//! `ralph runs --all`: lists the runs of all projects, newest first, with totals by day, project and agent.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::run::{ListTotal, ListTotals, ProjectRow, RunRow};
use crate::store::{Project, RunIndex, par_map};
use crate::ui::{Cell, Table, Terminal, Tone, pretty_json, units};

use super::args::RunsArguments;
use super::common::ignore_broken_pipe;
use super::error::CliError;
use super::exit::Exit;
use super::run_rows::{COLUMNS, RunFilter, cells, find_runs};

#[derive(Debug, Serialize)]
struct AllRuns {
    runs: Vec<ProjectRow>,
    /// Totals of all runs that match, also of those that are not listed.
    totals: ListTotals,
}

/// `project` is the current one. It is listed even if only an earlier version has stored runs in it.
pub(super) fn list(
    project: &Project,
    arguments: &RunsArguments,
    terminal: &Terminal,
) -> Result<Exit, CliError> {
    let (now, zone) = (Timestamp::now(), crate::ui::local_time_zone());
    let filter = RunFilter::new(arguments, now, &zone);
    let mut projects = project.state().projects();
    if !projects.contains(project) {
        projects.push(project.clone());
    }
    let mut runs: Vec<ProjectRow> = projects
        .iter()
        .flat_map(|project| rows_of(project, &filter))
        .collect();
    runs.sort_by(|one, other| other.run.id.cmp(&one.run.id));
    let mut totals = ListTotals::default();
    for row in &runs {
        totals.add(row, &zone);
    }
    if arguments.number > 0 {
        runs.truncate(arguments.number);
    }
    let all = AllRuns { runs, totals };
    let text = if arguments.json {
        pretty_json(&all)
    } else {
        text(&all, now, &zone, terminal)
    };
    terminal
        .print(&text)
        .map(|()| Exit::Success)
        .or_else(ignore_broken_pipe)
}

fn rows_of(project: &Project, filter: &RunFilter) -> Vec<ProjectRow> {
    let index = RunIndex::load(project);
    let found = find_runs(&index, filter, usize::MAX);
    par_map(&found, |entry| ProjectRow {
        project: project.name(),
        project_root: project.root().display().to_string(),
        run: RunRow::read(&index, entry),
    })
}

fn text(all: &AllRuns, now: Timestamp, zone: &TimeZone, terminal: &Terminal) -> String {
    if all.totals.days.is_empty() {
        return "No matching runs. To start one: ralph run -p \"make the tests pass\"\n".to_owned();
    }
    let [run, started, agent, outcome, iterations, time, tokens, cost, _] = COLUMNS;
    let mut table = Table::new([
        run, "PROJECT", started, agent, outcome, iterations, time, tokens, cost,
    ]);
    for row in &all.runs {
        let [run, started, agent, outcome, iterations, time, tokens, cost, _] = cells(&row.run, now, zone);
        let project = Cell::new(&row.project, Tone::Plain);
        table.row([
            run, project, started, agent, outcome, iterations, time, tokens, cost,
        ]);
    }
    let mut text = terminal.render(&table);
    for (name, totals) in [
        ("DAY", &all.totals.days),
        ("PROJECT", &all.totals.projects),
        ("AGENT", &all.totals.agents),
    ] {
        let mut table = Table::new([name, "RUNS", "ITERATIONS", "TOKENS", "COST"]);
        for (key, total) in totals {
            table.row(total_cells(key, total));
        }
        text.push('\n');
        text.push_str(&terminal.render(&table));
    }
    text
}

fn total_cells(key: &str, total: &ListTotal) -> [Cell; 5] {
    let tokens = total.usage.tokens().map(units::tokens);
    let cost = total.usage.cost_usd.map(units::dollars);
    [
        Cell::new(key, Tone::Accent),
        units::grouped(total.runs).into(),
        units::grouped(total.iterations).into(),
        tokens.unwrap_or_default().into(),
        cost.unwrap_or_default().into(),
    ]
}
