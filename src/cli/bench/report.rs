//! A bench, as a person or a program reads it.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use crate::ui::{Cell, Table, Terminal, Tone, clean, units};

use super::plan::Plan;
use super::results::{CellId, CellResult, History, Verdict};
use super::stats::{Figures, Row, Stats};
use crate::cli::agents::json;

/// Of what did not pass, so many are named.
const MOST_NAMED: usize = 12;

/// All of it, for a program.
#[derive(Debug, Serialize)]
pub(super) struct Report<'a> {
    version: u32,
    bench: String,
    directory: &'a Path,
    tasks_file: &'a Path,
    began: Timestamp,
    /// Whether every cell has been tried to its end.
    complete: bool,
    repeat: u64,
    max_cost_usd: Option<f64>,
    /// By all tries, those included that were cut off or could not be judged.
    spent_usd: f64,
    #[serde(flatten)]
    stats: Stats,
    cells: Vec<&'a CellResult>,
}

impl<'a> Report<'a> {
    pub(super) fn of(plan: &'a Plan, directory: &'a Path, history: &'a History, spent: f64) -> Self {
        let stats = Stats::of(plan, &history.results);
        let cells = plan.cells();
        Self {
            version: 1,
            bench: crate::store::id_of(directory),
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

    pub(super) fn json(&self) -> String {
        json(self)
    }

    pub(super) fn stats(&self) -> &Stats {
        &self.stats
    }

    pub(super) fn text(&self, terminal: &Terminal) -> String {
        let figures = match self.repeat {
            0 | 1 => "",
            _ => "Figures are the median of the tries; below, for each agent, the sum.\n",
        };
        let file = self.tasks_file.display().to_string();
        let mut text = format!("Bench {} · {}\n{figures}\n", self.bench, clean::clean(&file));
        text.push_str(&terminal.render(&by_task(&self.stats.rows)));
        text.push('\n');
        text.push_str(&terminal.render(&by_agent(&self.stats.agents)));
        text.push_str(&self.not_passed(terminal));
        text.push_str(&self.blind_budget());
        if !self.complete {
            let (missing, broken) = (self.stats.missing(), self.stats.broken());
            text.push_str(&format!(
                "\nNot complete: {missing} not tried yet, {broken} could not be judged. To go on: ralph bench run --continue {}\n",
                self.bench
            ));
        }
        text.push_str(&format!("\nEverything is kept in {}\n", self.directory.display()));
        text
    }

    /// What went wrong in the same way is told once.
    fn not_passed(&self, terminal: &Terminal) -> String {
        let mut ways: Vec<(&CellResult, Vec<u64>)> = Vec::new();
        for cell in self.cells.iter().filter(|cell| cell.verdict != Verdict::Passed) {
            match ways.iter_mut().find(|(first, _)| is_alike(first, cell)) {
                Some((_, repeats)) => repeats.push(cell.cell.repeat),
                None => ways.push((cell, vec![cell.cell.repeat])),
            }
        }
        if ways.is_empty() {
            return String::new();
        }
        let mut text = "\nNot passed:\n".to_owned();
        for (cell, repeats) in ways.iter().take(MOST_NAMED) {
            let (mark, tone) = mark(cell.verdict);
            let numbers: Vec<String> = repeats.iter().map(|repeat| format!("#{repeat}")).collect();
            let which = match self.repeat {
                0 | 1 => String::new(),
                _ => format!(" {}", numbers.join(" ")),
            };
            let why = cell.why.as_deref().unwrap_or_default();
            let line = format!("{} · {}{which}: {why}", cell.cell.task, cell.cell.agent);
            let line = clean::clean(&line).replace('\n', " ");
            text.push_str(&format!("  {} {line}\n", terminal.tinted(mark, tone)));
        }
        if let more @ 1.. = ways.len().saturating_sub(MOST_NAMED) {
            text.push_str(&format!("  and {more} more; --json has all of them\n"));
        }
        text
    }

    /// A limit that cannot be held against anything must not look as if it were.
    fn blind_budget(&self) -> String {
        let blind = self.stats.agents.iter().filter(|row| {
            let tried = row.passed + row.failed;
            tried > 0 && row.figures.cost_usd.is_none()
        });
        let names: Vec<&str> = blind.map(|row| row.agent.as_str()).collect();
        match (self.max_cost_usd, names.is_empty()) {
            (Some(limit), false) => format!(
                "\nThe limit of {} does not hold for {}: no costs were reported, and no price list (`pricing`) says them.\n",
                units::dollars(limit),
                names.join(", ")
            ),
            (_, _) => String::new(),
        }
    }
}

fn is_alike(one: &CellResult, other: &CellResult) -> bool {
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

/// A table of figures, and what stands before them.
fn headed(before: &[&str]) -> Table {
    let figures = ["PASSED", "CLAIMED DONE", "ITERATIONS", "TIME", "TOKENS", "COST"];
    Table::new(before.iter().copied().chain(figures))
}

fn by_task(rows: &[Row]) -> Table {
    let mut table = headed(&["TASK", "AGENT"]);
    let mut last = None;
    for row in rows {
        // A task is named once, at its first agent.
        let task = row.task.as_deref().filter(|_| row.task != last);
        last.clone_from(&row.task);
        let cells = [Cell::from(task.unwrap_or_default())]
            .into_iter()
            .chain(common(row));
        table.row(cells);
    }
    table
}

fn by_agent(rows: &[Row]) -> Table {
    let mut table = headed(&["TOTAL"]);
    rows.iter().for_each(|row| table.row(common(row)));
    table
}

/// The cells that both tables have.
fn common(row: &Row) -> [Cell; 7] {
    let tried = row.passed + row.failed;
    let tone = match (tried, row.passed) {
        (0, _) => Tone::Faint,
        (tried, passed) if tried == passed => Tone::Good,
        (_, 0) => Tone::Bad,
        (_, _) => Tone::Warning,
    };
    let passed = match row.broken {
        0 => format!("{}/{tried}", row.passed),
        broken => format!("{}/{tried} (+{broken} not judged)", row.passed),
    };
    let done_tone = if row.false_done > 0 {
        Tone::Warning
    } else {
        Tone::Plain
    };
    let Figures {
        iterations,
        duration_ms,
        tokens,
        cost_usd,
    } = &row.figures;
    let shown = |figure: Option<String>| Cell::from(figure.unwrap_or_else(|| "—".to_owned()));
    [
        Cell::from(row.agent.as_str()),
        Cell::new(&passed, tone),
        Cell::new(&format!("{}/{tried}", row.said_done), done_tone),
        shown(iterations.map(|figure| format!("{}", (figure * 10.0).round() / 10.0))),
        shown(duration_ms.map(|millis| units::duration(Duration::from_secs_f64(millis / 1000.0)))),
        shown(tokens.map(|figure| units::tokens(figure.round() as u64))),
        shown(cost_usd.map(units::dollars)),
    ]
}

pub(super) fn mark(verdict: Verdict) -> (&'static str, Tone) {
    match verdict {
        Verdict::Passed => ("✓", Tone::Good),
        Verdict::Failed => ("✗", Tone::Bad),
        Verdict::Broken | Verdict::OutOfBudget => ("!", Tone::Warning),
    }
}

/// A cell, as it is named to people.
pub(super) fn called(cell: &CellId, repeats: u64) -> String {
    match repeats {
        0 | 1 => format!("{} · {}", cell.task, cell.agent),
        _ => format!("{} · {} #{}", cell.task, cell.agent, cell.repeat),
    }
}

/// What a cell took, in words.
pub(super) fn taken(result: &CellResult) -> String {
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
