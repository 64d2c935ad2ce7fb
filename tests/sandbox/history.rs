//! Reads the run directory with the types of the `ralph` crate.

use std::fs;
use std::path::{Path, PathBuf};

use ralph::event::{IterationOutcome, Record, RunEvent, RunOutcome, Usage};
use serde_json::Value;

use super::{DEADLINE, Sandbox};
use crate::process::helpers::wait_until;

impl Sandbox {
    /// Returns the directory of the only run.
    pub(crate) fn only_run(&self) -> PathBuf {
        let runs = fs::read_dir(self.runs()).expect("runs");
        let mut runs: Vec<PathBuf> = runs.map(|entry| entry.expect("a run").path()).collect();
        assert_eq!(runs.len(), 1, "one run: {runs:?}");
        runs.remove(0)
    }

    pub(crate) fn run_id(&self) -> String {
        let directory = self.only_run();
        directory
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned()
    }

    /// Returns the records of the only run and checks that their sequence numbers have no gap.
    pub(crate) fn history(&self) -> Vec<Record> {
        let text = fs::read(self.only_run().join("events.jsonl")).expect("a journal");
        let records: Vec<Record> = text
            .split(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect();
        for (index, record) in records.iter().enumerate() {
            assert_eq!(record.seq, index as u64 + 1, "sequence numbers without a gap");
        }
        records
    }

    pub(crate) fn wait_for_event(&self, what: &str, found: impl Fn(&RunEvent) -> bool) {
        wait_until(what, DEADLINE, || {
            !self.journal_text().is_empty() && self.history().iter().any(|record| found(&record.event))
        });
    }

    /// Returns iteration, attempt and outcome of each ended iteration.
    pub(crate) fn iteration_outcomes(&self) -> Vec<(u64, u64, IterationOutcome)> {
        let records = self.history().into_iter();
        let ended = records.filter_map(|record| match record.event {
            RunEvent::IterationEnded {
                iteration,
                attempt,
                outcome,
                ..
            } => Some((iteration, attempt, outcome)),
            _ => None,
        });
        ended.collect()
    }

    /// Returns outcome, iterations and usage of the last end of the run.
    pub(crate) fn run_end(&self) -> (RunOutcome, u64, Usage) {
        let records = self.history().into_iter().rev();
        let mut ends = records.filter_map(|record| match record.event {
            RunEvent::RunEnded {
                outcome,
                iterations,
                usage,
                ..
            } => Some((outcome, iterations, *usage)),
            _ => None,
        });
        ends.next().expect("the run has ended")
    }

    /// Returns the reason of a failed run.
    pub(crate) fn failure_reason(&self) -> String {
        match self.run_end().0 {
            RunOutcome::Failed { reason } => reason,
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON")
}
