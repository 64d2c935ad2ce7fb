//! The attempts of a run: what the list of iterations shows, and the transcripts that are kept in memory.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::transcript::Transcript;
use crate::event::{ChangedFile, GateResult, IterationOutcome, Record, SnapshotRecord, Usage};
use crate::ui::tui::run_files::AttemptId;
use crate::ui::{Tone, iteration_label};

/// Limit for the transcripts of all earlier attempts together.
const MAX_EARLIER_BYTES: usize = 2 * 1024 * 1024;

/// One attempt of one iteration, as shown in the list of iterations.
#[derive(Debug, Clone)]
pub(in crate::ui::tui) struct AttemptEntry {
    pub(in crate::ui::tui) id: AttemptId,
    pub(in crate::ui::tui) hat: Option<String>,
    /// The agent, if the run has several.
    pub(in crate::ui::tui) agent: Option<String>,
    pub(in crate::ui::tui) model: Option<String>,
    pub(in crate::ui::tui) started: Timestamp,
    /// Sequence numbers of its first and last record.
    pub(in crate::ui::tui) first_seq: u64,
    pub(in crate::ui::tui) last_seq: u64,
    pub(in crate::ui::tui) usage: Usage,
    pub(in crate::ui::tui) tool_calls: u64,
    /// What it changed, according to the snapshots.
    pub(in crate::ui::tui) changes: Option<Arc<AttemptChanges>>,
    /// The gate that failed last, and its number of failed tests.
    failed_gate: Option<(String, u64)>,
    pub(in crate::ui::tui) end: Option<AttemptEnd>,
}

#[derive(Debug, Clone)]
pub(in crate::ui::tui) struct AttemptEnd {
    pub(in crate::ui::tui) mark: &'static str,
    pub(in crate::ui::tui) tone: Tone,
    /// Why it ended like this, in a few words.
    pub(in crate::ui::tui) reason: String,
    pub(in crate::ui::tui) took: Duration,
}

/// The files that changed between two snapshots.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::ui::tui) struct AttemptChanges {
    pub(in crate::ui::tui) from: Arc<str>,
    pub(in crate::ui::tui) to: Arc<str>,
    /// Also counts the files that are not listed.
    pub(in crate::ui::tui) count: u64,
    pub(in crate::ui::tui) added: u64,
    pub(in crate::ui::tui) removed: u64,
    pub(in crate::ui::tui) files: Vec<ChangedFile>,
}

impl AttemptChanges {
    pub(super) fn new(from: Arc<str>, snapshot: &SnapshotRecord) -> Self {
        Self {
            from,
            to: Arc::from(snapshot.id.as_str()),
            count: snapshot.files,
            added: snapshot.added,
            removed: snapshot.removed,
            files: snapshot.changes.clone(),
        }
    }
}

impl AttemptEntry {
    pub(super) fn new(id: AttemptId, [hat, agent]: [Option<String>; 2], record: &Record) -> Self {
        Self {
            id,
            hat,
            agent,
            model: None,
            started: record.at,
            first_seq: record.seq,
            last_seq: record.seq,
            usage: Usage::default(),
            tool_calls: 0,
            changes: None,
            failed_gate: None,
            end: None,
        }
    }

    /// `3`, or `3.2` for the second attempt.
    pub(in crate::ui::tui) fn name(&self) -> String {
        match self.id.attempt {
            0 | 1 => self.id.iteration.to_string(),
            attempt => format!("{}.{attempt}", self.id.iteration),
        }
    }

    /// `+12 −3`; `None` without changes.
    pub(in crate::ui::tui) fn changes_label(&self) -> Option<String> {
        let changes = self.changes.as_ref().filter(|changes| changes.count > 0)?;
        Some(format!("+{} −{}", changes.added, changes.removed))
    }

    pub(super) fn gate_ended(&mut self, name: &str, result: GateResult, failed_tests: u64) {
        if !result.passed() {
            self.failed_gate = Some((name.to_owned(), failed_tests));
        }
    }

    /// `test failed: 3`, `done`, `timed out` …
    pub(super) fn reason(&self, outcome: &IterationOutcome) -> String {
        let IterationOutcome::Continued {
            rejected_by: Some(gate),
        } = outcome
        else {
            return iteration_label(outcome).to_owned();
        };
        match &self.failed_gate {
            Some((name, tests @ 1..)) if name == gate => format!("{gate} failed: {tests}"),
            _ => format!("{gate} failed"),
        }
    }
}

/// The newest transcripts of earlier attempts.
#[derive(Debug, Clone, Default)]
pub(in crate::ui::tui) struct EarlierTranscripts {
    transcripts: VecDeque<(usize, Arc<Transcript>)>,
    bytes: usize,
}

impl EarlierTranscripts {
    /// Adds the transcript of the attempt with this index, and drops the oldest ones if there are too many.
    pub(super) fn push(&mut self, index: usize, transcript: Arc<Transcript>) {
        self.bytes += transcript.bytes();
        self.transcripts.push_back((index, transcript));
        while self.bytes > MAX_EARLIER_BYTES {
            let Some((_, oldest)) = self.transcripts.pop_front() else {
                return;
            };
            self.bytes = self.bytes.saturating_sub(oldest.bytes());
        }
    }

    pub(super) fn get(&self, index: usize) -> Option<&Transcript> {
        let position = self.transcripts.binary_search_by_key(&index, |(index, _)| *index);
        position.ok().map(|position| &*self.transcripts[position].1)
    }

    /// The attempts whose transcripts are in memory.
    pub(in crate::ui::tui) fn iter(&self) -> impl Iterator<Item = (usize, &Transcript)> {
        self.transcripts
            .iter()
            .map(|(index, transcript)| (*index, &**transcript))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_transcripts_are_dropped_first() {
        let mut earlier = EarlierTranscripts::default();
        let large = || Arc::new(Transcript::of_size(MAX_EARLIER_BYTES / 3));
        (0..5).for_each(|index| earlier.push(index, large()));
        let kept: Vec<usize> = earlier.iter().map(|(index, _)| index).collect();
        assert_eq!(kept, [2, 3, 4]);
        assert!(earlier.get(1).is_none() && earlier.get(4).is_some());
    }
}
