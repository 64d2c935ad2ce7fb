//! Lists the benches, newest first.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;

use crate::store::BenchFiles;
use crate::ui::{Cell, Table, Terminal, Tone, units};

use super::stats::Stats;
use super::{Bench, BenchError};

/// A row of the list.
#[derive(Debug, Serialize)]
pub struct BenchRow {
    id: String,
    directory: PathBuf,
    began: Timestamp,
    tasks_file: PathBuf,
    agents: Vec<String>,
    cells: u64,
    passed: u64,
    failed: u64,
    /// Not run yet, or without a verdict.
    open: u64,
    spent_usd: f64,
}

/// Returns the benches in a directory, newest first. Skips benches that cannot be read.
pub fn bench_rows(benches: &Path) -> Vec<BenchRow> {
    let all = BenchFiles::all(benches).into_iter().rev();
    all.filter_map(|files| row(&Bench::load(files).ok()?).ok())
        .collect()
}

fn row(bench: &Bench) -> Result<BenchRow, BenchError> {
    let Bench { files, plan } = bench;
    let history = bench.history()?;
    let stats = Stats::of(plan, &history.results);
    let sum = |of: fn(&super::stats::StatsRow) -> u64| stats.agents.iter().map(of).sum::<u64>();
    Ok(BenchRow {
        id: files.id(),
        directory: files.directory().to_owned(),
        began: plan.began,
        agents: plan.agents.iter().map(|agent| agent.name.clone()).collect(),
        cells: sum(|row| row.cells),
        passed: sum(|row| row.passed),
        failed: sum(|row| row.failed),
        open: sum(|row| row.missing + row.broken),
        spent_usd: bench.total_cost(&history),
        tasks_file: plan.tasks_file.clone(),
    })
}

/// Renders the list as a table.
pub fn bench_table(rows: &[BenchRow], terminal: &Terminal) -> String {
    let mut table = Table::new(["BENCH", "STARTED", "PASSED", "OPEN", "COST", "AGENTS", "TASKS"]);
    let (now, zone) = (Timestamp::now(), crate::ui::local_time_zone());
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
