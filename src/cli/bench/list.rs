//! `ralph bench list`: which benches there are.

use std::path::PathBuf;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::store::BenchFiles;
use crate::ui::{Cell, Table, Terminal, Tone, units};

use super::plan::Plan;
use super::results::History;
use super::stats::Stats;
use crate::cli::agents::json;
use crate::cli::args::BenchListArguments;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;

/// One bench, as listed.
#[derive(Debug, Serialize)]
struct Row {
    id: String,
    directory: PathBuf,
    began: Timestamp,
    tasks_file: PathBuf,
    agents: Vec<String>,
    cells: u64,
    passed: u64,
    failed: u64,
    /// Not tried yet, or could not be judged.
    open: u64,
    spent_usd: f64,
}

pub(super) fn list(arguments: &BenchListArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let context = Context::here()?;
    let benches = BenchFiles::all(&super::place(&arguments.place, &context.cwd)?);
    // What cannot be read, for whatever reason, is not in the way of the others.
    let rows: Vec<Row> = benches.iter().rev().filter_map(|files| row(files).ok()).collect();
    let text = match (arguments.json, rows.is_empty()) {
        (true, _) => json(&rows),
        (false, true) => "There is no bench yet. To begin one: ralph bench run tasks.yml\n".to_owned(),
        (false, false) => table(&rows, terminal),
    };
    terminal.print(&text).map_err(CliError::Output)?;
    Ok(Exit::Success)
}

fn row(files: &BenchFiles) -> Result<Row, CliError> {
    let plan: Plan = super::saved(files)?;
    let history = History::of(files.entries()?);
    let stats = Stats::of(&plan, &history.results);
    let sum = |of: fn(&super::stats::Row) -> u64| stats.agents.iter().map(of).sum::<u64>();
    Ok(Row {
        id: files.id(),
        directory: files.directory().to_owned(),
        began: plan.began,
        agents: plan.agents.iter().map(|agent| agent.name.clone()).collect(),
        cells: sum(|row| row.cells),
        passed: sum(|row| row.passed),
        failed: sum(|row| row.failed),
        open: sum(|row| row.missing + row.broken),
        spent_usd: super::spent(&history, files),
        tasks_file: plan.tasks_file,
    })
}

fn table(rows: &[Row], terminal: &Terminal) -> String {
    let mut table = Table::new(["BENCH", "BEGAN", "PASSED", "OPEN", "COST", "AGENTS", "TASKS"]);
    let (now, zone) = (Timestamp::now(), TimeZone::system());
    for row in rows {
        let open_tone = if row.open > 0 { Tone::Warning } else { Tone::Faint };
        table.row([
            Cell::from(row.id.as_str()),
            Cell::from(units::clock(row.began, now, &zone)),
            Cell::from(format!("{}/{}", row.passed, row.passed + row.failed)),
            Cell::new(&row.open.to_string(), open_tone),
            Cell::from(if row.spent_usd > 0.0 {
                units::dollars(row.spent_usd)
            } else {
                "—".to_owned()
            }),
            Cell::from(row.agents.join(", ")),
            Cell::from(row.tasks_file.display().to_string()),
        ]);
    }
    terminal.render(&table)
}
