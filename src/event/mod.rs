//! Transcript events, run events, commands, outcomes and records as plain serde types, and the `Sink` trait that consumes
//! records. This module has no access to the clock, the file system or processes.

mod chain_link;
mod command;
mod describe;
mod finding;
mod gate;
mod json;
mod line;
mod money;
mod outcome;
mod quota;
mod run;
mod secrets;
mod snapshot;
mod topic;
pub mod trace_ids;
mod transcript;
pub mod units;
mod usage;
mod verdict;

pub use chain_link::ChainLink;
pub use command::{Answer, Command, CommandNotSent, CommandRequest, CommandSender};
pub use describe::{DescribeContext, Description, Detail, Durability, NoteTag, Tone, later};
pub use finding::{
    Finding, FindingAnswer, FindingStatus, ReportedFinding, ReviewAnswer, ReviewerResult, Severity,
    review_schema,
};
pub use gate::{GateDetails, TestFailure, TestReport};
pub use json::Json;
pub(crate) use json::{find_escapable, find_escapable_in_prefix};
pub use line::{ByteOutput, LINK, RecordWriter};
pub use money::Usd;
pub use outcome::{
    AgentEnd, AgentIdentity, CONFIRMED_BY_USER, Interrupt, IterationFailure, IterationOutcome, ProcessEnd,
    RunLimit, RunOutcome, TimeLimit,
};
pub use quota::{AttemptResult, LimitReport, QuotaEntry, QuotaFact, StartKind};
pub use run::{
    AgentChangeReason, DeniedAccess, ForkOrigin, GateResult, NoticeLevel, Resumption, RunEvent, RunHeader,
    StreamName, TEMPORARY_STATE, UnknownOutput, WaitReason,
};
pub use secrets::Secrets;
pub use snapshot::{ChangedFile, SnapshotMoment, SnapshotRecord};
pub use topic::TopicEvent;
pub use transcript::{
    ErrorClass, FileChangeKind, Flow, Meta, PlanItem, PlanStatus, RateLimitStatus, Tag, ToolEnd, ToolRef,
    ToolStart, ToolStatus, TranscriptEvent, UnknownPart,
};
pub use usage::{CostSource, Usage, UsageMeaning, UsageScope};
pub(crate) use verdict::pause_label;
pub use verdict::{
    PassedGates, Verdict, gate_failure, iteration_label, iteration_verdict, next_step, run_verdict,
    unknown_cost,
};

use std::io;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of the journal format. It increases only when an older reader would misinterpret a new file;
/// a new field with a default does not require it.
pub const FORMAT_VERSION: u32 = 1;

/// The JSON Schema of a record. Later versions may add fields and variants.
pub fn schema() -> serde_json::Value {
    schemars::generate::SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<Record>()
        .to_value()
}

/// One line of the journal: an event with its sequence number and timestamp.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// Sequence number: 1, 2, 3 … without gaps within one run.
    pub seq: u64,
    /// Time of the event.
    pub at: Timestamp,
    #[serde(flatten)]
    pub event: RunEvent,
    /// The first 16 digits of the SHA-256 of the journal up to this field. Absent in journals of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub chain: Option<ChainLink>,
}

impl Record {
    /// A record that is not in a journal yet.
    pub fn new(seq: u64, at: Timestamp, event: RunEvent) -> Self {
        Self {
            seq,
            at,
            event,
            chain: None,
        }
    }
}

/// A consumer of records: the journal, the TUI, a JSON stream.
pub trait Sink {
    /// Consumes one record. An error stops the run, because a run that cannot be recorded must not continue.
    fn accept(&mut self, record: &Record) -> io::Result<()>;

    /// Makes all accepted records visible. The run calls this when no further record is queued.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
