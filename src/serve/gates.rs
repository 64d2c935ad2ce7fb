//! The gates of a run with their failures and output, from its journal.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::response::{ApiError, ApiResult};
use super::run_files::FoundRun;
use crate::event::{GateResult, RunEvent, TestReport};
use crate::store::Journal;
use crate::ui::gate_failure;

/// The most gates that are listed; the last ones of a longer run.
const MAX_GATES: usize = 500;

/// One run of a gate.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct GateEntry {
    /// The number of the record.
    seq: u64,
    at: Timestamp,
    iteration: u64,
    name: String,
    passed: bool,
    /// Why the gate did not pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
    duration_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<TestReport>,
    output: String,
    /// The protected files without whose changes the gate fails, or the files that changed afterwards.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    paths: Vec<String>,
}

/// The gates in the order in which they ended.
pub(super) fn list(run: &FoundRun) -> ApiResult<Vec<GateEntry>> {
    let records = Journal::read(&run.journal()).map_err(|_| ApiError::not_found("journal"))?;
    let mut gates = std::collections::VecDeque::new();
    for record in records {
        let RunEvent::GateEnded {
            iteration,
            name,
            result,
            duration_ms,
            output,
            details,
        } = record.event
        else {
            continue;
        };
        if gates.len() == MAX_GATES {
            gates.pop_front();
        }
        gates.push_back(GateEntry {
            seq: record.seq,
            at: record.at,
            iteration,
            name,
            passed: result == GateResult::Passed,
            failure: gate_failure(result),
            duration_ms,
            report: details.report,
            output,
            paths: details.paths,
        });
    }
    Ok(gates.into())
}
