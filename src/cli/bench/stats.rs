//! What the results come to: for each task and agent, for each agent, and for the bench. Pure.

use std::collections::BTreeMap;

use serde::Serialize;

use super::plan::Plan;
use super::results::{CellId, CellResult, Verdict};

/// One task and one agent, or all that one agent did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Row {
    /// Absent where it is about all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) task: Option<String>,
    pub(super) agent: String,
    /// How many there are to be.
    pub(super) cells: u64,
    pub(super) passed: u64,
    pub(super) failed: u64,
    /// Could not be tried, or not to the end.
    pub(super) broken: u64,
    /// Not tried yet.
    pub(super) missing: u64,
    /// Of those that were tried: where the loop ended because the work was said to be done.
    pub(super) said_done: u64,
    /// Of those, where verification said otherwise.
    pub(super) false_done: u64,
    pub(super) figures: Figures,
}

/// Of a task and an agent the medians; of an agent the sums. Only of what was tried to the end.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct Figures {
    pub(super) iterations: Option<f64>,
    pub(super) duration_ms: Option<f64>,
    pub(super) tokens: Option<f64>,
    pub(super) cost_usd: Option<f64>,
}

/// The whole of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Stats {
    pub(super) rows: Vec<Row>,
    pub(super) agents: Vec<Row>,
}

impl Stats {
    pub(super) fn of(plan: &Plan, results: &BTreeMap<CellId, CellResult>) -> Self {
        let cells = plan.cells();
        let matching = |task: Option<&str>, agent: &str| -> Vec<Option<&CellResult>> {
            let wanted = |cell: &&CellId| cell.agent == agent && task.is_none_or(|task| cell.task == task);
            cells
                .iter()
                .filter(wanted)
                .map(|cell| results.get(cell))
                .collect()
        };
        let pairs = plan
            .tasks
            .iter()
            .flat_map(|task| plan.agents.iter().map(move |agent| (task, agent)));
        let rows = pairs.map(|(task, agent)| {
            let cells = matching(Some(&task.name), &agent.name);
            Row::of(Some(&task.name), &agent.name, &cells, median)
        });
        let agents = plan
            .agents
            .iter()
            .map(|agent| Row::of(None, &agent.name, &matching(None, &agent.name), sum));
        Self {
            rows: rows.collect(),
            agents: agents.collect(),
        }
    }

    pub(super) fn missing(&self) -> u64 {
        self.agents.iter().map(|row| row.missing).sum()
    }

    pub(super) fn broken(&self) -> u64 {
        self.agents.iter().map(|row| row.broken).sum()
    }
}

impl Row {
    fn of(
        task: Option<&str>,
        agent: &str,
        cells: &[Option<&CellResult>],
        fold: fn(Vec<f64>) -> Option<f64>,
    ) -> Self {
        let there: Vec<&CellResult> = cells.iter().copied().flatten().collect();
        let tried: Vec<&CellResult> = there
            .iter()
            .copied()
            .filter(|cell| cell.verdict.is_final())
            .collect();
        let count = |verdict: Verdict| there.iter().filter(|cell| cell.verdict == verdict).count() as u64;
        let done = tried.iter().filter(|cell| cell.done);
        let false_done = done.clone().filter(|cell| cell.verdict == Verdict::Failed);
        let figure =
            |of: fn(&CellResult) -> Option<f64>| fold(tried.iter().filter_map(|cell| of(cell)).collect());
        Self {
            task: task.map(str::to_owned),
            agent: agent.to_owned(),
            cells: cells.len() as u64,
            passed: count(Verdict::Passed),
            failed: count(Verdict::Failed),
            broken: (there.len() - tried.len()) as u64,
            missing: (cells.len() - there.len()) as u64,
            said_done: done.clone().count() as u64,
            false_done: false_done.count() as u64,
            figures: Figures {
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
    fn the_median_is_what_lies_in_the_middle() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0]), Some(2.5));
    }
}
