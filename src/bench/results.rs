//! The results file of a bench (JSON lines) and its summary. Lines are only appended; the last result of a cell counts.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The version of a line.
pub(super) const VERSION: u32 = 1;

/// One attempt of one task by one agent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct CellId {
    pub(super) task: String,
    pub(super) agent: String,
    /// Starts at 1.
    pub(super) repeat: u64,
}

/// A line of the results file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ResultEntry {
    Started(CellStarted),
    Ended(Box<CellResult>),
}

/// The start of a cell. Without an end of the same attempt, the cell was interrupted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct CellStarted {
    pub(super) version: u32,
    pub(super) at: Timestamp,
    #[serde(flatten)]
    pub(super) cell: CellId,
    /// Starts at 1; each attempt has its own directory.
    pub(super) attempt: u64,
    /// Relative to the bench's directory.
    pub(super) directory: String,
}

/// The result of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct CellResult {
    pub(super) version: u32,
    pub(super) at: Timestamp,
    #[serde(flatten)]
    pub(super) cell: CellId,
    pub(super) attempt: u64,
    pub(super) directory: String,
    pub(super) verdict: CellVerdict,
    /// Whether the loop completed: the agent claimed completion, and the gates passed.
    pub(super) done: bool,
    /// The outcome of the loop; absent if it did not end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ended: Option<String>,
    /// Why the cell did not pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) why: Option<String>,
    #[serde(default)]
    pub(super) iterations: u64,
    /// Duration of the loop, without setup and verification.
    #[serde(default)]
    pub(super) duration_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cost_usd: Option<f64>,
}

/// The result of the verification, or why there was none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CellVerdict {
    Passed,
    Failed,
    /// The cell could not run: setup failed, or the agent could not be started or is not logged in.
    Broken,
    /// The bench's budget ran out during the cell.
    OutOfBudget,
}

impl CellVerdict {
    /// Whether the verdict is about the agent. `--continue` runs other cells again.
    pub(super) fn is_final(self) -> bool {
        match self {
            Self::Passed | Self::Failed => true,
            Self::Broken | Self::OutOfBudget => false,
        }
    }
}

/// The summary of a results file.
#[derive(Debug, Default)]
pub struct BenchHistory {
    pub(super) results: BTreeMap<CellId, CellResult>,
    attempts: BTreeMap<CellId, u64>,
    /// Started, but not ended.
    pub(super) interrupted: Vec<CellStarted>,
    /// Cost of all finished attempts, including repeated ones.
    pub(super) spent: f64,
}

impl BenchHistory {
    pub(super) fn of(entries: Vec<ResultEntry>) -> Self {
        let mut history = Self::default();
        let mut open: BTreeMap<(CellId, u64), CellStarted> = BTreeMap::new();
        for entry in entries {
            match entry {
                ResultEntry::Started(started) => {
                    history.attempts.insert(started.cell.clone(), started.attempt);
                    open.insert((started.cell.clone(), started.attempt), started);
                }
                ResultEntry::Ended(result) => {
                    open.remove(&(result.cell.clone(), result.attempt));
                    history.spent += result.cost_usd.unwrap_or(0.0);
                    history.results.insert(result.cell.clone(), *result);
                }
            }
        }
        history.interrupted = open.into_values().collect();
        history
    }

    pub(super) fn next_attempt(&self, cell: &CellId) -> u64 {
        self.attempts.get(cell).map_or(1, |last| last + 1)
    }

    /// Whether a cell has a final verdict.
    pub(super) fn is_settled(&self, cell: &CellId) -> bool {
        self.results
            .get(cell)
            .is_some_and(|result| result.verdict.is_final())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(repeat: u64) -> CellId {
        CellId {
            task: "t".into(),
            agent: "a".into(),
            repeat,
        }
    }

    fn started(repeat: u64, attempt: u64) -> ResultEntry {
        ResultEntry::Started(CellStarted {
            version: VERSION,
            at: Timestamp::UNIX_EPOCH,
            cell: cell(repeat),
            attempt,
            directory: format!("cells/{repeat}-{attempt}"),
        })
    }

    fn ended(repeat: u64, attempt: u64, verdict: CellVerdict) -> ResultEntry {
        ResultEntry::Ended(Box::new(CellResult {
            version: VERSION,
            at: Timestamp::UNIX_EPOCH,
            cell: cell(repeat),
            attempt,
            directory: String::new(),
            verdict,
            done: true,
            ended: None,
            why: None,
            iterations: 1,
            duration_ms: 1,
            tokens: None,
            cost_usd: Some(0.5),
        }))
    }

    #[test]
    fn interrupted_and_broken_cells_run_again() {
        let history = BenchHistory::of(vec![
            started(1, 1),
            ended(1, 1, CellVerdict::Failed),
            started(2, 1),
            started(3, 1),
            ended(3, 1, CellVerdict::Broken),
            started(4, 1),
            started(4, 2),
            ended(4, 2, CellVerdict::Passed),
        ]);
        let settled: Vec<bool> = (1..=5).map(|n| history.is_settled(&cell(n))).collect();
        assert_eq!(settled, [true, false, false, true, false]);
        let attempts: Vec<u64> = (1..=5).map(|n| history.next_attempt(&cell(n))).collect();
        assert_eq!(attempts, [2, 2, 2, 3, 1]);
        let interrupted: Vec<&str> = history
            .interrupted
            .iter()
            .map(|cell| cell.directory.as_str())
            .collect();
        assert_eq!(interrupted, ["cells/2-1", "cells/4-1"]);
        assert_eq!(history.spent, 1.5);
    }

    #[test]
    fn line_format_is_stable() {
        let line = |entry: &ResultEntry| serde_json::to_string(entry).unwrap();
        insta::assert_snapshot!(line(&started(2, 1)), @r#"{"type":"started","version":1,"at":"1970-01-01T00:00:00Z","task":"t","agent":"a","repeat":2,"attempt":1,"directory":"cells/2-1"}"#);
        insta::assert_snapshot!(line(&ended(2, 1, CellVerdict::OutOfBudget)), @r#"{"type":"ended","version":1,"at":"1970-01-01T00:00:00Z","task":"t","agent":"a","repeat":2,"attempt":1,"directory":"","verdict":"out_of_budget","done":true,"iterations":1,"duration_ms":1,"cost_usd":0.5}"#);
        let read: ResultEntry = serde_json::from_str(&line(&ended(2, 1, CellVerdict::Passed))).unwrap();
        assert!(matches!(read, ResultEntry::Ended(result) if result.cell == cell(2)));
    }
}
