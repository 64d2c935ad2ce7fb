//! What a run left behind, in the program's own words.

use std::fs;
use std::path::{Path, PathBuf};

use ralph::event::{IterationOutcome, Record, RunEvent, RunOutcome, Usage};
use serde_json::Value;

use super::{DEADLINE, Sandbox};
use crate::process::stage::wait_until;

impl Sandbox {
    /// The directory of the only run that there is.
    pub(crate) fn only_run(&self) -> PathBuf {
        let runs = fs::read_dir(self.work().join(".agent/runs")).expect("runs");
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

    /// Every line of the only run's journal that is a record. Their numbers have no gap.
    pub(crate) fn history(&self) -> Vec<Record> {
        let text = fs::read(self.only_run().join("events.jsonl")).expect("a journal");
        let records: Vec<Record> = text
            .split(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect();
        for (index, record) in records.iter().enumerate() {
            assert_eq!(record.seq, index as u64 + 1, "numbers without a gap");
        }
        records
    }

    pub(crate) fn wait_for_event(&self, what: &str, found: impl Fn(&RunEvent) -> bool) {
        let has_begun = || {
            let runs = fs::read_dir(self.work().join(".agent/runs"));
            runs.is_ok_and(|mut runs| {
                runs.next()
                    .is_some_and(|run| run.is_ok_and(|run| run.path().join("events.jsonl").exists()))
            })
        };
        wait_until(what, DEADLINE, || {
            has_begun() && self.history().iter().any(|record| found(&record.event))
        });
    }

    /// How each iteration ended: its number, the attempt, the outcome.
    pub(crate) fn ended(&self) -> Vec<(u64, u64, IterationOutcome)> {
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

    /// How the run ended last: its outcome, iterations and usage.
    pub(crate) fn end(&self) -> (RunOutcome, u64, Usage) {
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

    /// Why it gave up.
    pub(crate) fn reason(&self) -> String {
        match self.end().0 {
            RunOutcome::Failed { reason } => reason,
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON")
}
