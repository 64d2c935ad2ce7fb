//! The totals of a run that has not ended, read from its journal.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::RestoredRun;
use crate::event::Usage;
use crate::store::{RestoredRecord, restore_records};

/// Totals of a run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RunTotals {
    pub iterations: u64,
    pub duration_ms: u64,
    pub usage: Usage,
}

/// Totals of a run that has not ended, from its whole journal.
pub fn partial_totals(journal: &Path) -> Option<RunTotals> {
    let mut restored = RestoredRun::default();
    restore_records(journal, |restored_record| match restored_record {
        RestoredRecord::Parsed(record) => restored.fold(&record),
        RestoredRecord::Skipped { seq, at } => restored.skip(seq, at),
    })
    .ok()?;
    Some(RunTotals::of(&restored))
}

impl RunTotals {
    pub(super) fn of(run: &RestoredRun) -> Self {
        Self {
            iterations: run.iterations(),
            duration_ms: u64::try_from(run.elapsed().as_millis()).unwrap_or(u64::MAX),
            usage: run.used(),
        }
    }
}
