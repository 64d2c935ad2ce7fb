//! What the worker reads from the journal of a run: the last iteration, the cost, and the commands that have arrived.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The facts that a checkpoint reports.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct JournalSummary {
    pub(crate) seq: u64,
    /// The last iteration that has ended.
    pub(crate) iteration: u64,
    /// Sum of the iterations' costs.
    pub(crate) cost_usd: f64,
    /// The ids of the commands that the run has received.
    pub(crate) received: Vec<String>,
    /// The outcome of the run, if it has ended: the fields of `run_ended`.
    pub(crate) ended: Option<Value>,
}

impl JournalSummary {
    /// Adds complete lines of the journal.
    pub(crate) fn add(&mut self, lines: &[u8]) {
        for line in lines.split(|byte| *byte == b'\n') {
            if let Ok(record) = serde_json::from_slice::<Value>(line) {
                self.add_record(&record);
            }
        }
    }

    pub(crate) fn add_record(&mut self, record: &Value) {
        self.seq = record["seq"].as_u64().unwrap_or(self.seq).max(self.seq);
        match record["type"].as_str() {
            Some("iteration_ended") => {
                self.iteration = record["iteration"].as_u64().unwrap_or(self.iteration);
                self.cost_usd += record["usage"]["cost_usd"].as_f64().unwrap_or_default();
            }
            Some("told") => self.received.extend(record["id"].as_str().map(str::to_owned)),
            Some("run_ended") => self.ended = Some(record.clone()),
            Some("run_resumed" | "run_started") => self.ended = None,
            _ => {}
        }
    }
}
