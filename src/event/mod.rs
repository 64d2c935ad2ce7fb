//! The words: everything that can be said about a run, as plain serde types, and the `Sink` that hears them.
//! No behaviour beyond arithmetic lives here; nothing here reads a clock, a disk or a process.

mod command;
mod json;
mod line;
mod outcome;
mod run;
mod secrets;
mod topic;
mod transcript;
mod usage;

pub use command::Command;
pub use json::Json;
pub(crate) use json::{next_to_escape, next_to_escape_nearby};
pub use line::{LineWriter, Paper};
pub use outcome::{
    Failure, Interrupt, IterationOutcome, Limit, ProcessEnd, RunOutcome, TimeLimit, USERS_WORD,
};
pub use run::{GateResult, Level, Pause, Resumption, RunEvent, RunHeader, StreamName};
pub use secrets::Secrets;
pub use topic::TopicEvent;
pub use transcript::{
    ErrorClass, FileChangeKind, Flow, Meta, PlanItem, PlanStatus, RateLimitStatus, Tag, ToolEnd, ToolRef,
    ToolStart, ToolStatus, TranscriptEvent,
};
pub use usage::{CostSource, Usage, UsageScope};

use std::io;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of the journal's format. It grows only when an old reader would misunderstand a new file;
/// a new field with a default does not need it.
pub const FORMAT_VERSION: u32 = 1;

/// The JSON Schema of a record. It tells what is there; a later version may add to it.
pub fn schema() -> serde_json::Value {
    schemars::generate::SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<Record>()
        .to_value()
}

/// One line of the journal: what happened, stamped in the order in which it happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// 1, 2, 3 … without a gap within one run.
    pub seq: u64,
    pub at: Timestamp,
    #[serde(flatten)]
    pub event: RunEvent,
}

/// Somebody who hears what the run does: the journal, a screen, a JSON stream.
pub trait Sink {
    /// Takes one record. An error stops the run: what cannot be recorded must not go on.
    fn accept(&mut self, record: &Record) -> io::Result<()>;

    /// Nothing more is waiting right now: make what was accepted visible.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
