//! The report of a bench, as tables or JSON.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use crate::ui::{Cell, Table, Terminal, Tone, clean, units};

use super::plan::BenchPlan;
use super::results::{BenchHistory, CellId, CellResult, CellVerdict};
use super::stats::{Stats, StatsFigures, StatsRow};

/// Maximum number of failures to list.
const MAX_NAMED: usize = 12;

/// The report, as printed with `--json`.
#[derive(Debug, Serialize)]
pub struct BenchReport<'a> {
    version: u32,
    bench: String,
    directory: &'a Path,
    tasks_file: &'a Path,
    began: Timestamp,
    /// Whether every cell has a verdict.
    complete: bool,
    repeat: u64,
    max_cost_usd: Option<f64>,
    /// Cost of all attempts, including interrupted ones and those without a verdict.
    spent_usd: f64,
    #[serde(flatten)]
    stats: Stats,
    cells: Vec<&'a CellResult>,
}

impl<'a> BenchReport<'a> {
    pub(super) fn of(
        plan: &'a BenchPlan,
        directory: &'a Path,
        history: &'a BenchHistory,
        spent: f64,
    ) -> Self {
        let stats = Stats::of(plan, &history.results);
        let cells = plan.cells();
        Self {
            version: 1,
            bench: crate::store::id_from_path(directory),
            directory,
            tasks_file: &plan.tasks_file,
            began: plan.began,
            complete: stats.missing() + stats.broken() == 0,
            repeat: plan.repeat,
            max_cost_usd: plan.max_cost_usd,
            spent_usd: spent,
            cells: cells
                .iter()
                .filter_map(|cell| history.results.get(cell))
                .collect(),
            stats,
        }
    }

    /// The cost of all attempts.
    pub fn spent_usd(&self) -> f64 {
        self.spent_usd
    }

    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Renders the tables, the failures and the next step.
    pub fn text(&self, terminal: &Terminal) -> String {
        let figures = match self.repeat {
            0 | 1 => "",
            _ => "Figures per task are medians over the repeats; totals per agent are sums.\n",
        };
        let file = self.tasks_file.display().to_string();
        let mut text = format!("Bench {} · {}\n{figures}\n", self.bench, clean::clean(&file));
        text.push_str(&terminal.render(&by_task(&self.stats.rows)));
        text.push('\n');
        text.push_str(&terminal.render(&by_agent(&self.stats.agents)));
        text.push_str(&self.failures(terminal));
        text.push_str(&self.unenforced_limit());
        if !self.complete {
            let (missing, broken) = (self.stats.missing(), self.stats.broken());
            text.push_str(&format!(
                "\nIncomplete: {missing} not run yet, {broken} without a verdict. To resume: ralph bench run --continue {}\n",
                self.bench
            ));
        }
        text.push_str(&format!("\nFiles: {}\n", self.directory.display()));
        text
    }

    /// Lists the cells that did not pass; equal failures are merged.
    fn failures(&self, terminal: &Terminal) -> String {
        let mut groups: Vec<(&CellResult, Vec<u64>)> = Vec::new();
        for cell in self
            .cells
            .iter()
            .filter(|cell| cell.verdict != CellVerdict::Passed)
        {
            match groups.iter_mut().find(|(first, _)| same_failure(first, cell)) {
                Some((_, repeats)) => repeats.push(cell.cell.repeat),
                None => groups.push((cell, vec![cell.cell.repeat])),
            }
        }
        if groups.is_empty() {
            return String::new();
        }
        let mut text = "\nNot passed:\n".to_owned();
        for (cell, repeats) in groups.iter().take(MAX_NAMED) {
            let (mark, tone) = mark(cell.verdict);
            let numbers: Vec<String> = repeats.iter().map(|repeat| format!("#{repeat}")).collect();
            let which = match self.repeat {
                0 | 1 => String::new(),
                _ => format!(" {}", numbers.join(" ")),
            };
            let why = cell.why.as_deref().unwrap_or_default();
            let line = format!("{} · {}{which}: {why}", cell.cell.task, cell.cell.agent);
            let line = clean::clean(&line).replace('\n', " ");
            text.push_str(&format!("  {} {line}\n", terminal.styled(mark, tone)));
        }
        if let more @ 1.. = groups.len().saturating_sub(MAX_NAMED) {
            text.push_str(&format!("  … and {more} more; use --json to list all\n"));
        }
        text
    }

    /// Warns if the cost limit could not be enforced.
    fn unenforced_limit(&self) -> String {
        let without_costs = self.stats.agents.iter().filter(|row| {
            let tried = row.passed + row.failed;
            tried > 0 && row.figures.cost_usd.is_none()
        });
        let names: Vec<&str> = without_costs.map(|row| row.agent.as_str()).collect();
        match (self.max_cost_usd, names.is_empty()) {
            (Some(limit), false) => format!(
                "\nThe limit of {} is not enforced for {}: no costs were reported, and no price list (`pricing`) is configured.\n",
                units::dollars(limit),
                names.join(", ")
            ),
            (_, _) => String::new(),
        }
    }
}

fn same_failure(one: &CellResult, other: &CellResult) -> bool {
    let of = |cell: &CellResult| {
        (
            cell.cell.task.clone(),
            cell.cell.agent.clone(),
            cell.verdict,
            cell.why.clone(),
        )
    };
    of(one) == of(other)
}

/// Creates a table with the given columns, followed by the figures.
fn figures_table(columns: &[&str]) -> Table {
    let figures = ["PASSED", "CLAIMED DONE", "ITERATIONS", "TIME", "TOKENS", "COST"];
    Table::new(columns.iter().copied().chain(figures))
}

fn by_task(rows: &[StatsRow]) -> Table {
    let mut table = figures_table(&["TASK", "AGENT"]);
    let mut last = None;
    for row in rows {
        // Show the task's name only in its first row.
        let task = row.task.as_deref().filter(|_| row.task != last);
        last.clone_from(&row.task);
        let cells = [Cell::from(task.unwrap_or_default())]
            .into_iter()
            .chain(shared_cells(row));
        table.row(cells);
    }
    table
}

fn by_agent(rows: &[StatsRow]) -> Table {
    let mut table = figures_table(&["TOTAL"]);
    rows.iter().for_each(|row| table.row(shared_cells(row)));
    table
}

/// Returns the cells that both tables have.
fn shared_cells(row: &StatsRow) -> [Cell; 7] {
    let tried = row.passed + row.failed;
    let tone = match (tried, row.passed) {
        (0, _) => Tone::Faint,
        (tried, passed) if tried == passed => Tone::Good,
        (_, 0) => Tone::Bad,
        (_, _) => Tone::Warning,
    };
    let passed = match row.broken {
        0 => format!("{}/{tried}", row.passed),
        broken => format!("{}/{tried} (+{broken} no verdict)", row.passed),
    };
    let done_tone = if row.false_done > 0 {
        Tone::Warning
    } else {
        Tone::Plain
    };
    let StatsFigures {
        iterations,
        duration_ms,
        tokens,
        cost_usd,
    } = &row.figures;
    let shown = |figure: Option<String>| Cell::from(figure.unwrap_or_else(|| "—".to_owned()));
    [
        Cell::from(row.agent.as_str()),
        Cell::new(&passed, tone),
        Cell::new(&format!("{}/{tried}", row.claimed_done), done_tone),
        shown(iterations.map(|figure| format!("{}", (figure * 10.0).round() / 10.0))),
        shown(duration_ms.map(|millis| units::duration(Duration::from_secs_f64(millis / 1000.0)))),
        shown(tokens.map(|figure| units::tokens(figure.round() as u64))),
        shown(cost_usd.map(units::dollars)),
    ]
}

pub(super) fn mark(verdict: CellVerdict) -> (&'static str, Tone) {
    match verdict {
        CellVerdict::Passed => ("✓", Tone::Good),
        CellVerdict::Failed => ("✗", Tone::Bad),
        CellVerdict::Broken | CellVerdict::OutOfBudget => ("!", Tone::Warning),
    }
}

/// Returns the display name of a cell.
pub(super) fn cell_name(cell: &CellId, repeats: u64) -> String {
    match repeats {
        0 | 1 => format!("{} · {}", cell.task, cell.agent),
        _ => format!("{} · {} #{}", cell.task, cell.agent, cell.repeat),
    }
}

/// Returns the iterations, time, tokens and cost of a cell as text.
pub(super) fn cell_figures(result: &CellResult) -> String {
    let mut parts = vec![
        units::count(result.iterations, "iteration"),
        units::duration(Duration::from_millis(result.duration_ms)),
    ];
    parts.extend(
        result
            .tokens
            .map(|tokens| format!("{} tokens", units::tokens(tokens))),
    );
    parts.extend(result.cost_usd.map(units::dollars));
    parts.join(" · ")
}
