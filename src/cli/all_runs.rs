//! `ralph runs --all`: lists the runs of all projects, newest first, with totals by day, project and agent.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::event::Usage;
use crate::store::{Project, RunIndex, par_map};
use crate::ui::{Cell, Table, Terminal, Tone, pretty_json, units};

use super::args::RunsArguments;
use super::common::ignore_broken_pipe;
use super::error::CliError;
use super::exit::Exit;
use super::run_rows::{COLUMNS, RunFilter, RunRow, cells, find_runs, row};

/// A run of any project.
#[derive(Debug, Serialize)]
struct ProjectRow {
    project: String,
    project_root: String,
    #[serde(flatten)]
    run: RunRow,
}

/// Totals of all runs that match, also of those that are not listed.
#[derive(Debug, Default, Serialize)]
struct Totals {
    /// By local date, the newest last.
    days: BTreeMap<String, Total>,
    /// By project root.
    projects: BTreeMap<String, Total>,
    agents: BTreeMap<String, Total>,
}

#[derive(Debug, Default, Serialize)]
struct Total {
    runs: u64,
    iterations: u64,
    usage: Usage,
}

#[derive(Debug, Serialize)]
struct AllRuns {
    runs: Vec<ProjectRow>,
    totals: Totals,
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
    let mut totals = Totals::default();
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
        text(&all, &zone, terminal)
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
        run: row(&index, entry),
    })
}

impl Totals {
    fn add(&mut self, row: &ProjectRow, zone: &TimeZone) {
        let day = row
            .run
            .began
            .map(|began| began.to_zoned(zone.clone()).date().to_string());
        let agent = row.run.agent.clone();
        let totals = [
            self.days.entry(day.unwrap_or_else(|| "unknown".to_owned())),
            self.projects.entry(row.project_root.clone()),
            self.agents.entry(agent.unwrap_or_else(|| "unknown".to_owned())),
        ];
        for total in totals {
            let total = total.or_default();
            total.runs += 1;
            if let Some(of_run) = &row.run.totals {
                total.iterations += of_run.iterations;
                total.usage.add(&of_run.usage);
            }
        }
    }
}

fn text(all: &AllRuns, zone: &TimeZone, terminal: &Terminal) -> String {
    if all.totals.days.is_empty() {
        return "No matching runs. To start one: ralph run -p \"make the tests pass\"\n".to_owned();
    }
    let [run, started, agent, outcome, iterations, time, tokens, cost, _] = COLUMNS;
    let mut table = Table::new([
        run, "PROJECT", started, agent, outcome, iterations, time, tokens, cost,
    ]);
    for row in &all.runs {
        let [run, started, agent, outcome, iterations, time, tokens, cost, _] = cells(&row.run, zone);
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
            table.row(total.cells(key));
        }
        text.push('\n');
        text.push_str(&terminal.render(&table));
    }
    text
}

impl Total {
    fn cells(&self, key: &str) -> [Cell; 5] {
        let tokens = self.usage.tokens().map(units::tokens);
        let cost = self.usage.cost_usd.map(units::dollars);
        [
            Cell::new(key, Tone::Accent),
            units::grouped(self.runs).into(),
            units::grouped(self.iterations).into(),
            tokens.unwrap_or_default().into(),
            cost.unwrap_or_default().into(),
        ]
    }
}
