//! The receipt of a run: who worked on what, which gates passed on which files, and the head of the journal. It can be
//! checked later and on another machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::event::{
    ForkOrigin, GateResult, Meta, Record, RunEvent, RunHeader, RunOutcome, SnapshotMoment, TestReport,
    TranscriptEvent, Usage,
};
use crate::policy::Gate;
use crate::snapshot::{SnapshotError, SnapshotId, SnapshotStore, SnapshotTree};
use crate::store::{RestoredRecord, StoreError, restore_records, verify_chain};

use super::clean_gate::protected_changes;
use super::saved_run::SavedRun;

/// The version of the format.
pub const RECEIPT_VERSION: u32 = 1;
/// The files of a larger project are not listed.
const MAX_ENTRIES: usize = 5_000;
/// Digits of a file's hash in the list.
const ENTRY_DIGITS: usize = 16;
const HIDDEN: &str = "(hidden)";

/// The receipt of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// Version of the format.
    pub receipt: u32,
    pub run: String,
    /// Version of ralph.
    pub ralph: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ForkOrigin>,
    pub agents: Vec<ReceiptAgent>,
    /// Hash of the first prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_sha256: Option<String>,
    pub started: Option<Timestamp>,
    pub ended: Option<Timestamp>,
    /// Absent if the run has not ended.
    #[serde(flatten)]
    pub outcome: Option<RunOutcome>,
    /// Whether gates passed on `tree`.
    pub verified: bool,
    pub iterations: u64,
    pub duration_ms: u64,
    pub usage: Usage,
    /// The files that were verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<ReceiptTree>,
    /// The gates of the run, with their results in the last check.
    pub gates: Vec<ReceiptGate>,
    /// Tests, scripts of gates and configuration files that changed during the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed_checks: Vec<String>,
    pub snapshots: Vec<ReceiptSnapshot>,
    pub journal: ReceiptJournal,
    /// Hash of everything else in this file.
    pub sha256: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptAgent {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// The files of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptTree {
    pub snapshot: String,
    /// Hash of all paths, contents and executable bits, the same in every clone.
    pub content_sha256: String,
    pub files: u64,
    /// The start of each file's hash, unless there are very many.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub entries: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptGate {
    /// The gate without the values of its variables; a hidden command is left out.
    pub definition: Gate,
    /// Hash of the complete definition.
    pub definition_sha256: String,
    /// Absent if the gate did not run in the last check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<GateResult>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Hash of the output, as the journal contains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_sha256: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestCounts>,
    /// The protected files that differ from the start of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protected_changes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestCounts {
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptSnapshot {
    pub iteration: u64,
    pub moment: SnapshotMoment,
    pub id: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptJournal {
    pub records: u64,
    /// SHA-256 of the journal.
    pub head: String,
}

/// Why a receipt cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum ReceiptError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    #[error("the journal of this run has no header")]
    NoHeader,
}

impl Receipt {
    /// Creates the receipt of a run that is not running. `records` limits it to the start of the journal.
    pub fn of_run(
        directory: &Path,
        store: &SnapshotStore,
        records: Option<u64>,
        head: Option<&str>,
    ) -> Result<Self, ReceiptError> {
        let journal = directory.join("events.jsonl");
        let mut facts = ReceiptFacts::default();
        restore_records(&journal, |record| match record {
            RestoredRecord::Parsed(record) if records.is_none_or(|max| record.seq <= max) => {
                facts.apply(&record)
            }
            RestoredRecord::Skipped { seq, .. } if records.is_none_or(|max| seq <= max) => facts.skip(seq),
            RestoredRecord::Parsed(_) | RestoredRecord::Skipped { .. } => {}
        })?;
        let head = match head {
            Some(head) => head.to_owned(),
            None => verify_chain(&journal, None)?.head,
        };
        let text = std::fs::read(directory.join("run.json")).unwrap_or_default();
        let saved: Option<SavedRun> = serde_json::from_slice(&text).ok();
        let gates = saved.map(|saved| saved.gates()).unwrap_or_default();
        facts.receipt(directory, &gates, store, head)
    }

    /// Parses a receipt. `None` if the text is something else.
    pub fn parse(text: &[u8]) -> Option<Self> {
        serde_json::from_slice(text).ok()
    }

    /// Whether the text contains exactly this receipt and nothing in it was changed.
    pub fn is_unchanged(&self, text: &[u8]) -> bool {
        let given: Option<serde_json::Value> = serde_json::from_slice(text).ok();
        given == serde_json::to_value(self).ok() && self.hash() == self.sha256
    }

    fn hash(&self) -> String {
        let unsealed = Self {
            sha256: String::new(),
            ..self.clone()
        };
        sha256(&serde_json::to_vec(&unsealed).unwrap_or_default())
    }
}

impl ReceiptTree {
    /// Describes files.
    pub fn of(snapshot: SnapshotId, tree: &SnapshotTree) -> Self {
        let files = tree.files().count();
        let entries = tree.files().take(if files <= MAX_ENTRIES { files } else { 0 });
        let entries = entries.map(|(path, entry)| {
            let id = entry.id.to_string();
            let text = format!("{} {}", entry.git_mode(), &id[..ENTRY_DIGITS]);
            (String::from_utf8_lossy(path).into_owned(), text)
        });
        Self {
            snapshot: snapshot.to_string(),
            content_sha256: tree.content_sha256(),
            files: files as u64,
            entries: entries.collect(),
        }
    }

    /// The paths that differ from those of another tree, as far as they are listed.
    pub fn differences(&self, found: &Self) -> Vec<String> {
        if self.entries.is_empty() || found.entries.is_empty() {
            return Vec::new();
        }
        let names = self.entries.keys().chain(found.entries.keys());
        let mut names: Vec<String> = names
            .filter(|name| self.entries.get(*name) != found.entries.get(*name))
            .cloned()
            .collect();
        names.sort_unstable();
        names.dedup();
        let described = names.into_iter().map(|name| {
            let (expected, found) = (self.entries.get(&name), found.entries.get(&name));
            match (expected, found) {
                (Some(_), None) => format!("{name} (missing)"),
                (None, Some(_)) => format!("{name} (added)"),
                _ => name,
            }
        });
        described.collect()
    }
}

impl ReceiptGate {
    /// Describes a gate of a project. Paths are relative to its root, so that they are the same in every clone.
    pub fn of(gate: &Gate, root: &Path) -> Self {
        let complete = relative(gate, root);
        let mut definition = complete.clone();
        definition.env.values_mut().for_each(String::clear);
        if gate.hidden && !gate.is_review() {
            HIDDEN.clone_into(&mut definition.run);
        }
        Self {
            definition_sha256: sha256(&serde_json::to_vec(&complete).unwrap_or_default()),
            definition,
            result: None,
            duration_ms: None,
            output_sha256: None,
            tests: None,
            protected_changes: Vec::new(),
        }
    }

    /// The gate, for a project with this root; `None` if the receipt does not contain all of it.
    pub fn gate(&self, root: &Path) -> Option<Gate> {
        let mut gate = self.definition.clone();
        gate.cwd = gate.cwd.map(|cwd| root.join(cwd));
        (Self::of(&gate, root).definition_sha256 == self.definition_sha256).then_some(gate)
    }
}

fn relative(gate: &Gate, root: &Path) -> Gate {
    let below = |cwd: &PathBuf| match cwd.strip_prefix(root) {
        Ok(below) if below.as_os_str().is_empty() => None,
        Ok(below) => Some(below.to_owned()),
        Err(_) => Some(cwd.clone()),
    };
    Gate {
        cwd: gate.cwd.as_ref().and_then(below),
        ..gate.clone()
    }
}

fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What the records of a run say.
#[derive(Debug, Default)]
pub(super) struct ReceiptFacts {
    header: Option<RunHeader>,
    agents: Vec<ReceiptAgent>,
    started: Option<Timestamp>,
    ended: Option<Timestamp>,
    outcome: Option<RunOutcome>,
    iterations: u64,
    duration_ms: u64,
    usage: Usage,
    verified: bool,
    tree: Option<String>,
    changed_checks: Vec<String>,
    gates: BTreeMap<String, GateFacts>,
    snapshots: Vec<ReceiptSnapshot>,
    records: u64,
}

#[derive(Debug)]
struct GateFacts {
    result: GateResult,
    duration_ms: u64,
    output_sha256: Option<String>,
    tests: Option<TestCounts>,
}

impl ReceiptFacts {
    pub(super) fn read(journal: &Path) -> Result<Self, StoreError> {
        let mut facts = Self::default();
        restore_records(journal, |record| match record {
            RestoredRecord::Parsed(record) => facts.apply(&record),
            RestoredRecord::Skipped { seq, .. } => facts.skip(seq),
        })?;
        Ok(facts)
    }

    pub(super) fn apply(&mut self, record: &Record) {
        self.skip(record.seq);
        match &record.event {
            RunEvent::RunStarted(header) => {
                self.started = Some(record.at);
                self.set_header(header);
            }
            RunEvent::RunResumed(resumption) => {
                self.set_header(&resumption.header);
                (self.outcome, self.ended) = (None, None);
            }
            RunEvent::IterationStarted { agent, .. } => {
                self.gates.clear();
                (self.verified, self.tree) = (false, None);
                if let Some(agent) = agent {
                    self.agent(agent);
                }
            }
            RunEvent::Transcript {
                event:
                    TranscriptEvent::Meta {
                        meta: Meta::Session { model, version, .. },
                    },
                ..
            } => self.session(model.as_ref(), version.as_ref()),
            RunEvent::GateEnded { .. } => self.gate_ended(&record.event),
            RunEvent::Verification {
                verified,
                tree,
                changed_checks,
                ..
            } => {
                self.verified = *verified;
                self.tree.clone_from(tree);
                self.changed_checks.clone_from(changed_checks);
            }
            RunEvent::Snapshot(snapshot) => self.snapshots.push(ReceiptSnapshot {
                iteration: snapshot.iteration,
                moment: snapshot.moment,
                id: snapshot.id.clone(),
            }),
            RunEvent::RunEnded {
                outcome,
                iterations,
                duration_ms,
                usage,
            } => {
                self.outcome = Some(outcome.clone());
                self.ended = Some(record.at);
                (self.iterations, self.duration_ms) = (*iterations, *duration_ms);
                self.usage = (**usage).clone();
            }
            // Not part of the receipt.
            _ => {}
        }
    }

    fn gate_ended(&mut self, event: &RunEvent) {
        let RunEvent::GateEnded {
            name,
            result,
            duration_ms,
            output,
            details,
            ..
        } = event
        else {
            return;
        };
        let facts = GateFacts {
            result: *result,
            duration_ms: *duration_ms,
            output_sha256: (!details.hidden).then(|| sha256(output.as_bytes())),
            tests: details.report.as_ref().map(counts),
        };
        self.gates.insert(name.clone(), facts);
    }

    pub(super) fn skip(&mut self, seq: u64) {
        self.records = self.records.max(seq);
    }

    fn set_header(&mut self, header: &RunHeader) {
        self.header = Some(header.clone());
        self.agent(&header.agent);
        if let Some(agent) = self.agents.last_mut() {
            agent.version = header.agent_version.clone().or(agent.version.take());
        }
    }

    /// Makes this agent the last one.
    fn agent(&mut self, name: &str) {
        let known = self.agents.iter().position(|agent| agent.name == name);
        let agent = match known {
            Some(index) => self.agents.remove(index),
            None => ReceiptAgent {
                name: name.to_owned(),
                ..ReceiptAgent::default()
            },
        };
        self.agents.push(agent);
    }

    fn session(&mut self, model: Option<&String>, version: Option<&String>) {
        if let Some(agent) = self.agents.last_mut() {
            agent.model = model.cloned().or(agent.model.take());
            agent.version = version.cloned().or(agent.version.take());
        }
    }

    /// Creates the receipt. `gates` are those of the run.
    pub(super) fn receipt(
        &self,
        directory: &Path,
        gates: &[Gate],
        store: &SnapshotStore,
        head: String,
    ) -> Result<Receipt, ReceiptError> {
        let header = self.header.as_ref().ok_or(ReceiptError::NoHeader)?;
        let root = header.project_root.as_ref().unwrap_or(&header.workspace);
        let prompt = std::fs::read(directory.join("iterations/0001/prompt.md")).ok();
        let tree = self.tree.as_deref().and_then(SnapshotId::parse);
        let gates = gates
            .iter()
            .map(|gate| self.gate(gate, Path::new(root), store, tree))
            .collect::<Result<_, ReceiptError>>()?;
        let mut receipt = Receipt {
            receipt: RECEIPT_VERSION,
            run: header.run_id.clone(),
            ralph: header.ralph.clone(),
            forked_from: header.forked_from.clone(),
            agents: self.agents.clone(),
            prompt_sha256: prompt.map(|prompt| sha256(&prompt)),
            started: self.started,
            ended: self.ended,
            outcome: self.outcome.clone(),
            verified: self.verified && matches!(self.outcome, Some(RunOutcome::Complete { .. })),
            iterations: self.iterations,
            duration_ms: self.duration_ms,
            usage: self.usage.clone(),
            tree: tree
                .map(|id| store.tree(id).map(|tree| ReceiptTree::of(id, &tree)))
                .transpose()?,
            gates,
            changed_checks: self.changed_checks.clone(),
            snapshots: self.snapshots.clone(),
            journal: ReceiptJournal {
                records: self.records,
                head,
            },
            sha256: String::new(),
        };
        receipt.sha256 = receipt.hash();
        Ok(receipt)
    }

    fn gate(
        &self,
        gate: &Gate,
        root: &Path,
        store: &SnapshotStore,
        tree: Option<SnapshotId>,
    ) -> Result<ReceiptGate, ReceiptError> {
        let first = self
            .snapshots
            .first()
            .and_then(|first| SnapshotId::parse(&first.id));
        let changes = match (first, tree) {
            (Some(first), Some(tree)) => protected_changes(store, first, tree, gate)?,
            (None, _) | (_, None) => Vec::new(),
        };
        let facts = self.gates.get(&gate.name);
        Ok(ReceiptGate {
            result: facts.map(|facts| facts.result),
            duration_ms: facts.map(|facts| facts.duration_ms),
            output_sha256: facts.and_then(|facts| facts.output_sha256.clone()),
            tests: facts.and_then(|facts| facts.tests.clone()),
            protected_changes: changes,
            ..ReceiptGate::of(gate, root)
        })
    }
}

fn counts(report: &TestReport) -> TestCounts {
    TestCounts {
        passed: report.passed,
        failed: report.failed,
        skipped: report.skipped,
    }
}
