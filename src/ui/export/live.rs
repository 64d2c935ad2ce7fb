//! Renders the records of a run as HTML blocks that can change while the run continues, for a page that follows it.

use std::collections::BTreeSet;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

use super::blocks;
use super::sections::SectionBuilder;
use crate::event::{IterationOutcome, Record, RunEvent};
use crate::ui::{iteration_verdict, units};

/// One block of the page. A later block with the same id replaces it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PageBlock {
    /// The attempt that the block belongs to, counted from 0 for the time before the first one.
    pub section: u64,
    /// The position in the section; 0 is its heading.
    pub index: u64,
    /// The number and the time of the record that the block started with.
    pub seq: u64,
    pub at: Timestamp,
    pub html: String,
}

/// Folds records into blocks. Memory use is bounded by the longest attempt.
#[derive(Debug, Default)]
pub struct LiveBlocks {
    sections: SectionBuilder,
    section: u64,
    /// The record that started the section.
    section_seq: u64,
    heading_changed: bool,
    /// How the current attempt ended.
    verdict: Option<String>,
    changed: BTreeSet<usize>,
    /// Final versions of the blocks of earlier sections that have not been taken yet.
    finished: Vec<PageBlock>,
}

impl LiveBlocks {
    /// Applies a record. The records of a run must be applied in order, from the first one.
    pub fn apply(&mut self, record: &Record) {
        if let RunEvent::IterationStarted { .. } = record.event {
            self.finished = self.take_blocks();
            self.changed.clear();
            self.section += 1;
            self.section_seq = record.seq;
            self.heading_changed = true;
            self.verdict = None;
        }
        let _previous = self.sections.apply(record);
        if let RunEvent::IterationEnded {
            outcome, duration_ms, ..
        } = &record.event
        {
            self.attempt_ended(outcome, *duration_ms, record);
        }
        self.changed.extend(self.sections.take_changed());
    }

    /// Returns the blocks that were added or changed since the last call.
    pub fn take_changes(&mut self) -> Vec<PageBlock> {
        self.take_blocks()
    }

    /// Forgets the changes, so that a reader which has them receives only later ones.
    pub fn discard_changes(&mut self) {
        self.changed.clear();
        self.finished.clear();
        self.heading_changed = false;
    }

    fn attempt_ended(&mut self, outcome: &IterationOutcome, duration_ms: u64, record: &Record) {
        let verdict = iteration_verdict(outcome, record.at, &TimeZone::UTC);
        let duration = units::duration(std::time::Duration::from_millis(duration_ms));
        self.verdict = Some(format!(
            " <span class=\"{}\"><span class=\"mark\">{}</span> {}</span> <small>{duration}</small>",
            blocks::class_of(verdict.tone),
            verdict.mark,
            blocks::escaped(&verdict.sentence)
        ));
        self.heading_changed = true;
    }

    fn take_blocks(&mut self) -> Vec<PageBlock> {
        let mut taken = std::mem::take(&mut self.finished);
        let section = self.sections.current();
        if std::mem::take(&mut self.heading_changed) {
            let began = section.began.to_zoned(crate::ui::local_time_zone());
            taken.push(PageBlock {
                section: self.section,
                index: 0,
                seq: self.section_seq,
                at: section.began,
                html: format!(
                    "<h2>{} <small>{}</small>{}</h2>\n",
                    blocks::escaped(&section.title()),
                    began.strftime("%H:%M:%S"),
                    self.verdict.as_deref().unwrap_or_default()
                ),
            });
        }
        for index in std::mem::take(&mut self.changed) {
            if let Some(item) = section.items.get(index) {
                let origin = self.sections.origin(index);
                taken.push(PageBlock {
                    section: self.section,
                    index: index as u64 + 1,
                    seq: origin.seq,
                    at: origin.at,
                    html: blocks::item(item, ""),
                });
            }
        }
        taken
    }
}
