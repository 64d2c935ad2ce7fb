//! Restores the state of a run from its journal, and what a damaged journal has lost from the outcomes of the iterations.

use std::collections::BTreeSet;

use crate::engine::RestoredRun;
use crate::event::{Record, RunEvent};
use crate::store::{RestoredRecord, Run, StoreError, restore_records};

/// An iteration and its attempt.
type Attempt = (u64, u64);

/// A restored run, and the attempts whose end was found in `outcome.json` only.
#[derive(Debug)]
pub struct Recovery {
    pub run: RestoredRun,
    pub recovered: Vec<(u64, u64)>,
}

/// Restores the state of a run. An attempt has been lost if a later one started although its end is not in the journal.
pub fn restore_run(run: &Run) -> Result<Recovery, StoreError> {
    let mut restored = Restoring::new(run.stored_outcomes());
    let journal = run.journal_path();
    if journal.exists() {
        restore_records(&journal, |record| restored.fold(record))?;
    }
    Ok(Recovery {
        run: restored.run,
        recovered: restored.recovered,
    })
}

struct Restoring {
    run: RestoredRun,
    /// The attempts that have an `outcome.json`, with their `IterationEnded`.
    stored: Vec<(Attempt, RunEvent)>,
    ended: BTreeSet<Attempt>,
    recovered: Vec<Attempt>,
}

impl Restoring {
    fn new(outcomes: Vec<RunEvent>) -> Self {
        let attempts = outcomes.into_iter().filter_map(|event| match event {
            RunEvent::IterationEnded {
                iteration, attempt, ..
            } => Some(((iteration, attempt), event)),
            _ => None,
        });
        Self {
            run: RestoredRun::default(),
            stored: attempts.collect(),
            ended: BTreeSet::new(),
            recovered: Vec::new(),
        }
    }

    fn fold(&mut self, record: RestoredRecord) {
        match record {
            RestoredRecord::Parsed(record) => {
                match &record.event {
                    RunEvent::IterationStarted {
                        iteration, attempt, ..
                    } => self.recover_before((*iteration, *attempt), &record),
                    RunEvent::IterationEnded {
                        iteration, attempt, ..
                    } => drop(self.ended.insert((*iteration, *attempt))),
                    RunEvent::RunEnded { iterations, .. } => {
                        self.recover_before((iterations + 1, 0), &record);
                    }
                    _ => {}
                }
                self.run.fold(&record);
            }
            RestoredRecord::Skipped { seq, at } => self.run.skip(seq, at),
        }
    }

    /// Applies the ends of all attempts at earlier iterations that the journal has lost. A kill between `outcome.json` and the
    /// journal is no loss: the iteration runs again, as the next attempt. So only the last attempt at an iteration counts.
    fn recover_before(&mut self, next: Attempt, record: &Record) {
        let lost: Vec<(Attempt, RunEvent)> = self
            .stored
            .iter()
            .filter(|(attempt, _)| attempt.0 < next.0 && !self.was_repeated(*attempt))
            .filter(|(attempt, _)| !self.ended.contains(attempt))
            .cloned()
            .collect();
        for ((iteration, attempt), ended) in lost {
            self.ended.insert((iteration, attempt));
            self.recovered.push((iteration, attempt));
            let started = RunEvent::IterationStarted {
                iteration,
                attempt,
                hat: None,
                agent: None,
                prompt_bytes: 0,
            };
            for event in [started, ended] {
                let (seq, at) = (self.run.seq(), record.at);
                self.run.fold(&Record::new(seq, at, event));
            }
        }
    }

    fn was_repeated(&self, (iteration, attempt): Attempt) -> bool {
        let ended = self.ended.iter();
        let stored = self.stored.iter().map(|(other, _)| other);
        ended
            .chain(stored)
            .any(|other| other.0 == iteration && other.1 > attempt)
    }
}
