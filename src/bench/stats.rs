//! Statistics of a bench: per task and agent, and per agent.

use std::collections::BTreeMap;

use serde::Serialize;

use super::plan::BenchPlan;
use super::results::{CellId, CellResult, CellVerdict};

/// A row for one task and agent, or the total of one agent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct StatsRow {
    /// Absent in a total.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) task: Option<String>,
    pub(super) agent: String,
    /// Number of planned cells.
    pub(super) cells: u64,
    pub(super) passed: u64,
    pub(super) failed: u64,
    /// Without a verdict.
    pub(super) broken: u64,
    /// Not run yet.
    pub(super) missing: u64,
    /// Cells with a verdict whose loop completed.
    #[serde(rename = "said_done")]
    pub(super) claimed_done: u64,
    /// Of `claimed_done`: cells that failed verification.
    pub(super) false_done: u64,
    pub(super) figures: StatsFigures,
}

/// Medians for a task and agent, sums for an agent; only of cells with a verdict.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct StatsFigures {
    pub(super) iterations: Option<f64>,
    pub(super) duration_ms: Option<f64>,
    pub(super) tokens: Option<f64>,
    pub(super) cost_usd: Option<f64>,
}

/// The statistics of a bench.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stats {
    pub(super) rows: Vec<StatsRow>,
    pub(super) agents: Vec<StatsRow>,
}

impl Stats {
    pub(super) fn of(plan: &BenchPlan, results: &BTreeMap<CellId, CellResult>) -> Self {
        let cells = plan.cells();
        let matching = |task: Option<&str>, agent: &str| -> Vec<Option<&CellResult>> {
            let is_selected =
                |cell: &&CellId| cell.agent == agent && task.is_none_or(|task| cell.task == task);
            cells
                .iter()
                .filter(is_selected)
                .map(|cell| results.get(cell))
                .collect()
        };
        let pairs = plan
            .tasks
            .iter()
            .flat_map(|task| plan.agents.iter().map(move |agent| (task, agent)));
        let rows = pairs.map(|(task, agent)| {
            let cells = matching(Some(&task.name), &agent.name);
            StatsRow::of(Some(&task.name), &agent.name, &cells, median)
        });
        let agents = plan
            .agents
            .iter()
            .map(|agent| StatsRow::of(None, &agent.name, &matching(None, &agent.name), sum));
        Self {
            rows: rows.collect(),
            agents: agents.collect(),
        }
    }

    pub(super) fn missing(&self) -> u64 {
        self.agents.iter().map(|row| row.missing).sum()
    }

    pub fn broken(&self) -> u64 {
        self.agents.iter().map(|row| row.broken).sum()
    }
}

impl StatsRow {
    fn of(
        task: Option<&str>,
        agent: &str,
        cells: &[Option<&CellResult>],
        fold: fn(Vec<f64>) -> Option<f64>,
    ) -> Self {
        let existing: Vec<&CellResult> = cells.iter().copied().flatten().collect();
        let decided: Vec<&CellResult> = existing
            .iter()
            .copied()
            .filter(|cell| cell.verdict.is_final())
            .collect();
        let count =
            |verdict: CellVerdict| existing.iter().filter(|cell| cell.verdict == verdict).count() as u64;
        let done = decided.iter().filter(|cell| cell.done);
        let false_done = done.clone().filter(|cell| cell.verdict == CellVerdict::Failed);
        let figure =
            |of: fn(&CellResult) -> Option<f64>| fold(decided.iter().filter_map(|cell| of(cell)).collect());
        Self {
            task: task.map(str::to_owned),
            agent: agent.to_owned(),
            cells: cells.len() as u64,
            passed: count(CellVerdict::Passed),
            failed: count(CellVerdict::Failed),
            broken: (existing.len() - decided.len()) as u64,
            missing: (cells.len() - existing.len()) as u64,
            claimed_done: done.clone().count() as u64,
            false_done: false_done.count() as u64,
            figures: StatsFigures {
                iterations: figure(|cell| Some(cell.iterations as f64)),
                duration_ms: figure(|cell| Some(cell.duration_ms as f64)),
                tokens: figure(|cell| cell.tokens.map(|tokens| tokens as f64)),
                cost_usd: figure(|cell| cell.cost_usd),
            },
        }
    }
}

fn median(mut figures: Vec<f64>) -> Option<f64> {
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    match figures.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(figures[middle]),
        _ => Some(f64::midpoint(figures[middle - 1], figures[middle])),
    }
}

fn sum(figures: Vec<f64>) -> Option<f64> {
    figures.into_iter().reduce(|one, other| one + other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_is_the_middle_value() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0]), Some(2.5));
    }
}
