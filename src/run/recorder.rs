//! Records the events of a run: removes secrets, numbers the records, writes them to the journal, then publishes them.

use std::path::Path;

use jiff::Timestamp;

use crate::event::{PassedGates, Record, RunEvent, Secrets, Sink};
use crate::ok_or_log;
use crate::policy::Gate;
use crate::snapshot::SnapshotStore;
use crate::store::Journal;

use super::RunError;
use super::broadcast::{BatchState, Broadcast};
use super::receipt::{Receipt, ReceiptError, ReceiptFacts};

/// Whether the run ends when the journal cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Journaling {
    Required,
    /// The run is ending because of an error already.
    BestEffort,
}

pub(super) struct Recorder {
    pub(super) broadcast: Broadcast,
    pub(super) journaling: Journaling,
    /// The gates that the work has passed, for the sentences about the run.
    pub(super) passed_gates: PassedGates,
    journal: Journal,
    /// The number of the last record.
    seq: u64,
    receipt: ReceiptFacts,
    secrets: Secrets,
}

impl Recorder {
    /// `earlier` is the number of the last record of a resumed run, and what all records until then say.
    pub(super) fn new(
        journal: Journal,
        earlier: (u64, ReceiptFacts),
        broadcast: Broadcast,
        secrets: Secrets,
    ) -> Self {
        let (seq, receipt) = earlier;
        Self {
            broadcast,
            journaling: Journaling::Required,
            passed_gates: PassedGates::default(),
            journal,
            seq,
            receipt,
            secrets,
        }
    }

    /// Removes secrets from an event.
    pub(super) fn redact(&self, event: RunEvent) -> RunEvent {
        self.secrets.redact(event)
    }

    /// Removes secrets from an event, and stores the gates that it reports.
    pub(super) fn prepare(&mut self, event: RunEvent) -> RunEvent {
        let event = self.redact(event);
        self.passed_gates.apply(&event);
        event
    }

    /// Stamps an event and passes it to the journal, then to the front ends.
    pub(super) fn record(&mut self, at: Timestamp, event: RunEvent) -> Result<(), RunError> {
        let mut record = Record {
            chain: None,
            seq: self.seq + 1,
            at,
            event,
        };
        let start = self.journal.position();
        let written = self.journal.accept(&record).map_err(RunError::Journal);
        match (written, self.journaling) {
            // Only now, because the number of a record that was not written is reused.
            (Ok(()), _) => {
                self.seq += 1;
                self.receipt.apply(&record);
            }
            (Err(error), Journaling::Required) => return Err(error),
            (Err(error), Journaling::BestEffort) => {
                tracing::warn!(%error, "the last records are not in the journal");
            }
        }
        record.chain = self.journal.last_link();
        match self.broadcast.push(record, start..self.journal.position()) {
            BatchState::Full => self.flush(),
            BatchState::Collecting => Ok(()),
        }
    }

    /// The receipt of the run that has ended.
    pub(super) fn receipt(
        &mut self,
        directory: &Path,
        gates: &[Gate],
        store: &SnapshotStore,
    ) -> Result<Receipt, ReceiptError> {
        let head = self.journal.head();
        self.receipt.receipt(directory, gates, store, head)
    }

    /// Writes and publishes all records.
    pub(super) fn flush(&mut self) -> Result<(), RunError> {
        let flushed = self.journal.flush().map_err(RunError::Journal);
        match self.journaling {
            Journaling::Required => flushed?,
            Journaling::BestEffort => {
                ok_or_log!(flushed, "cannot flush the journal");
            }
        }
        self.broadcast.publish();
        Ok(())
    }
}
