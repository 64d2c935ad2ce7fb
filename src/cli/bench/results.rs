//! The lines of a bench's results, and what they come to. A result is never changed: the last word on a cell counts.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Of a line of results.
pub(super) const VERSION: u32 = 1;

/// One try of one task by one agent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct CellId {
    pub(super) task: String,
    pub(super) agent: String,
    /// From 1.
    pub(super) repeat: u64,
}

/// One line.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Entry {
    Started(Started),
    Ended(Box<CellResult>),
}

/// A cell begins. Without an end of the same attempt it was cut off.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Started {
    pub(super) version: u32,
    pub(super) at: Timestamp,
    #[serde(flatten)]
    pub(super) cell: CellId,
    /// 1 is the first; each has a directory of its own.
    pub(super) attempt: u64,
    /// Below the bench's.
    pub(super) directory: String,
}

/// How a cell ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct CellResult {
    pub(super) version: u32,
    pub(super) at: Timestamp,
    #[serde(flatten)]
    pub(super) cell: CellId,
    pub(super) attempt: u64,
    pub(super) directory: String,
    pub(super) verdict: Verdict,
    /// Whether the loop believed that the work was done: the agent said so, and the gates passed.
    pub(super) done: bool,
    /// How the loop ended, in a word; absent if it never did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ended: Option<String>,
    /// Why it did not pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) why: Option<String>,
    #[serde(default)]
    pub(super) iterations: u64,
    /// Of the loop; setup and verification are not the agent's.
    #[serde(default)]
    pub(super) duration_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cost_usd: Option<f64>,
}

/// What verification says, or why there was none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    Passed,
    Failed,
    /// It could not be tried: setup failed, the agent could not be started, or is not logged in.
    Broken,
    /// The bench's money ran out in the middle of it.
    OutOfBudget,
}

impl Verdict {
    /// Whether it says something about the agent. What does not is tried again by `--continue`.
    pub(super) fn is_final(self) -> bool {
        match self {
            Self::Passed | Self::Failed => true,
            Self::Broken | Self::OutOfBudget => false,
        }
    }
}

/// What the lines come to.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) results: BTreeMap<CellId, CellResult>,
    attempts: BTreeMap<CellId, u64>,
    /// Begun, and never ended.
    pub(super) cut: Vec<Started>,
    /// By all that ended, whatever was tried again later.
    pub(super) spent: f64,
}

impl History {
    pub(super) fn of(entries: Vec<Entry>) -> Self {
        let mut history = Self::default();
        let mut open: BTreeMap<(CellId, u64), Started> = BTreeMap::new();
        for entry in entries {
            match entry {
                Entry::Started(started) => {
                    history.attempts.insert(started.cell.clone(), started.attempt);
                    open.insert((started.cell.clone(), started.attempt), started);
                }
                Entry::Ended(result) => {
                    open.remove(&(result.cell.clone(), result.attempt));
                    history.spent += result.cost_usd.unwrap_or(0.0);
                    history.results.insert(result.cell.clone(), *result);
                }
            }
        }
        history.cut = open.into_values().collect();
        history
    }

    pub(super) fn next_attempt(&self, cell: &CellId) -> u64 {
        self.attempts.get(cell).map_or(1, |last| last + 1)
    }

    /// Whether a cell need not be run any more.
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

    fn started(repeat: u64, attempt: u64) -> Entry {
        Entry::Started(Started {
            version: VERSION,
            at: Timestamp::UNIX_EPOCH,
            cell: cell(repeat),
            attempt,
            directory: format!("cells/{repeat}-{attempt}"),
        })
    }

    fn ended(repeat: u64, attempt: u64, verdict: Verdict) -> Entry {
        Entry::Ended(Box::new(CellResult {
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
    fn what_was_cut_off_or_broken_is_tried_again_and_what_has_ended_is_not() {
        let history = History::of(vec![
            started(1, 1),
            ended(1, 1, Verdict::Failed),
            started(2, 1),
            started(3, 1),
            ended(3, 1, Verdict::Broken),
            started(4, 1),
            started(4, 2),
            ended(4, 2, Verdict::Passed),
        ]);
        let settled: Vec<bool> = (1..=5).map(|n| history.is_settled(&cell(n))).collect();
        assert_eq!(settled, [true, false, false, true, false]);
        let attempts: Vec<u64> = (1..=5).map(|n| history.next_attempt(&cell(n))).collect();
        assert_eq!(attempts, [2, 2, 2, 3, 1]);
        let cut: Vec<&str> = history.cut.iter().map(|cut| cut.directory.as_str()).collect();
        assert_eq!(cut, ["cells/2-1", "cells/4-1"]);
        assert_eq!(history.spent, 1.5);
    }

    #[test]
    fn lines_keep_their_shape() {
        let line = |entry: &Entry| serde_json::to_string(entry).unwrap();
        insta::assert_snapshot!(line(&started(2, 1)), @r#"{"type":"started","version":1,"at":"1970-01-01T00:00:00Z","task":"t","agent":"a","repeat":2,"attempt":1,"directory":"cells/2-1"}"#);
        insta::assert_snapshot!(line(&ended(2, 1, Verdict::OutOfBudget)), @r#"{"type":"ended","version":1,"at":"1970-01-01T00:00:00Z","task":"t","agent":"a","repeat":2,"attempt":1,"directory":"","verdict":"out_of_budget","done":true,"iterations":1,"duration_ms":1,"cost_usd":0.5}"#);
        let read: Entry = serde_json::from_str(&line(&ended(2, 1, Verdict::Passed))).unwrap();
        assert!(matches!(read, Entry::Ended(result) if result.cell == cell(2)));
    }
}
