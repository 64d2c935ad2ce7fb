//! Summarizes the records of a run, attempt by attempt, for listings and exports. Stores one small entry per
//! attempt, not the transcript.

use std::collections::VecDeque;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{PassedGates, UsageByRole};
use crate::event::{
    ChangedFile, Finding, Flow, GateResult, IterationOutcome, Meta, Record, RunEvent, RunHeader, RunOutcome,
    SnapshotMoment, SnapshotRecord, Tag, ToolEnd, ToolStart, ToolStatus, TranscriptEvent, Usage,
};

/// The summary of a run.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct RunSummary {
    pub header: Option<RunHeader>,
    pub began: Option<Timestamp>,
    /// The time of the last record.
    pub last: Option<Timestamp>,
    /// The snapshot that the gates verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified_tree: Option<String>,
    /// Absent until the run ends.
    #[serde(flatten)]
    pub outcome: Option<RunOutcome>,
    /// Iterations that count towards the limit.
    pub iterations: u64,
    pub duration_ms: u64,
    pub usage: Usage,
    /// Usage of each role, if there are several.
    #[serde(skip_serializing_if = "UsageByRole::is_single")]
    #[schemars(default)]
    pub roles: UsageByRole,
    #[serde(rename = "turns")]
    pub attempts: Vec<AttemptSummary>,
    /// The findings of reviews in their last state.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub findings: Vec<Finding>,
    /// The agent's last message; only the end of a long one.
    pub final_message: String,
    #[serde(skip)]
    scan: ScanState,
}

/// One attempt at an iteration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct AttemptSummary {
    pub iteration: u64,
    pub attempt: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hat: Option<String>,
    /// The agent and its model, if the run has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    pub began: Timestamp,
    /// Absent while the attempt is running, and if ralph died during it.
    #[serde(flatten)]
    pub outcome: Option<IterationOutcome>,
    pub duration_ms: u64,
    pub usage: Usage,
    pub tools: u64,
    pub failed_tools: u64,
    pub gates: Vec<GateRun>,
    /// Files that changed according to the snapshots. Without snapshots: files that the agent reported as changed or that
    /// its tools wrote; relative to the workspace where possible.
    pub files: Vec<String>,
    /// Absent without snapshots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<ChangeTotals>,
    /// The first of these files, with their added and removed lines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed_files: Vec<ChangedFile>,
}

impl AttemptSummary {
    /// `3 +41 −7`, or only the number of files that the agent reported; `None` without files.
    pub fn files_label(&self) -> Option<String> {
        match &self.changes {
            Some(changes) if changes.files > 0 => Some(format!(
                "{} +{} −{}",
                changes.files, changes.added, changes.removed
            )),
            Some(_) => None,
            None => (!self.files.is_empty()).then(|| self.files.len().to_string()),
        }
    }
}

/// What an attempt changed, according to the snapshots.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct ChangeTotals {
    pub files: u64,
    pub added: u64,
    pub removed: u64,
    /// The names of the snapshots before and after the attempt.
    #[serde(skip)]
    pub snapshots: Option<(String, String)>,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct GateRun {
    pub name: String,
    pub result: GateResult,
    pub duration_ms: u64,
}

/// State carried from one record to the next.
#[derive(Debug, Clone, Default)]
struct ScanState {
    /// The next text starts a new message.
    message_ended: bool,
    /// Running calls that write a file: call id and path.
    pending_writes: VecDeque<(String, String)>,
    last_snapshot: Option<String>,
}

/// How many bytes of the final message's end are stored.
const MAX_MESSAGE_BYTES: usize = 64 * 1024;
const MAX_FILES: usize = 1000;
const MAX_PENDING_WRITES: usize = 64;

/// Tools of the known agents that write one file.
const FILE_WRITING_TOOLS: [&str; 9] = [
    "write",
    "edit",
    "multiedit",
    "notebookedit",
    "write_file",
    "replace",
    "create_file",
    "edit_file",
    "create",
];
/// Input fields of these tools that contain the path.
const PATH_FIELDS: [&str; 5] = ["file_path", "filePath", "notebook_path", "absolute_path", "path"];

impl RunSummary {
    pub fn apply(&mut self, record: &Record) {
        self.began.get_or_insert(record.at);
        self.last = self.last.max(Some(record.at));
        self.roles.apply(&record.event);
        match &record.event {
            RunEvent::RunStarted(header) => self.header = Some((**header).clone()),
            RunEvent::RunResumed(resumption) => {
                self.header = Some(resumption.header.clone());
                (self.outcome, self.verified_tree) = (None, None);
            }
            RunEvent::IterationStarted {
                iteration,
                attempt,
                hat,
                agent,
                ..
            } => {
                self.attempt_started(*iteration, *attempt, record.at);
                if let Some(last) = self.attempts.last_mut() {
                    (last.hat, last.agent) = (hat.clone(), agent.clone());
                }
            }
            RunEvent::Transcript { event, .. } => self.transcript(event),
            RunEvent::GateEnded {
                name,
                result,
                duration_ms,
                ..
            } => self.gate_ended(name, *result, *duration_ms),
            RunEvent::Finding(finding) => update_findings(&mut self.findings, finding),
            RunEvent::Snapshot(snapshot) => self.snapshot_taken(snapshot),
            RunEvent::IterationEnded {
                outcome,
                duration_ms,
                usage,
                ..
            } => self.attempt_ended(outcome, *duration_ms, usage),
            RunEvent::Verification { verified, tree, .. } => {
                self.verified_tree = tree.clone().filter(|_| *verified);
            }
            RunEvent::RunEnded {
                outcome,
                iterations,
                duration_ms,
                usage,
            } => {
                self.outcome = Some(outcome.clone());
                (self.iterations, self.duration_ms) = (*iterations, *duration_ms);
                self.usage = (**usage).clone();
            }
            // Not part of the summary.
            _ => {}
        }
    }

    /// The snapshots are exact; what the agent reports is not.
    fn snapshot_taken(&mut self, snapshot: &SnapshotRecord) {
        let before = self.scan.last_snapshot.replace(snapshot.id.clone());
        if snapshot.moment == SnapshotMoment::End
            && let Some(attempt) = self.attempts.last_mut()
        {
            let files = snapshot.changes.iter().map(|change| change.path.clone());
            attempt.files = files.collect();
            attempt.changed_files.clone_from(&snapshot.changes);
            attempt.changes = Some(ChangeTotals {
                files: snapshot.files,
                added: snapshot.added,
                removed: snapshot.removed,
                snapshots: before.map(|before| (before, snapshot.id.clone())),
            });
        }
    }

    /// The gates that passed in the last iteration.
    pub fn passed_gates(&self) -> PassedGates {
        let Some(attempt) = self.attempts.last() else {
            return PassedGates::default();
        };
        let passed = attempt
            .gates
            .iter()
            .filter(|gate| gate.result == GateResult::Passed);
        PassedGates::new(passed.map(|gate| gate.name.clone()).collect())
    }

    fn attempt_started(&mut self, iteration: u64, attempt: u64, at: Timestamp) {
        self.scan = ScanState {
            message_ended: true,
            last_snapshot: self.scan.last_snapshot.take(),
            ..ScanState::default()
        };
        self.attempts.push(AttemptSummary {
            iteration,
            attempt,
            began: at,
            ..AttemptSummary::default()
        });
    }

    fn attempt_ended(&mut self, outcome: &IterationOutcome, duration_ms: u64, usage: &Usage) {
        if let Some(attempt) = self.attempts.last_mut() {
            attempt.outcome = Some(outcome.clone());
            attempt.duration_ms = duration_ms;
            attempt.usage = usage.clone();
        }
    }

    fn gate_ended(&mut self, name: &str, result: GateResult, duration_ms: u64) {
        if let Some(attempt) = self.attempts.last_mut() {
            attempt.gates.push(GateRun {
                name: name.to_owned(),
                result,
                duration_ms,
            });
        }
    }

    fn transcript(&mut self, event: &TranscriptEvent) {
        match event {
            TranscriptEvent::Text {
                tag: Tag::Ai,
                text,
                flow,
                parent: None,
            } => self.append_message(text, *flow),
            TranscriptEvent::ToolStart { tool } => self.tool_started(tool),
            TranscriptEvent::ToolEnd { tool } => self.tool_ended(tool),
            TranscriptEvent::Meta {
                meta: Meta::FileChange { path, .. },
            } => self.add_file(path),
            TranscriptEvent::Text { .. }
            | TranscriptEvent::ToolOutput { .. }
            | TranscriptEvent::Usage { .. }
            | TranscriptEvent::Meta { .. } => {}
        }
    }

    fn append_message(&mut self, text: &str, flow: Flow) {
        let starts_message = std::mem::take(&mut self.scan.message_ended) || flow == Flow::Message;
        if starts_message {
            self.final_message.clear();
        } else if flow == Flow::Line {
            self.final_message.push('\n');
        }
        self.final_message.push_str(text);
        if self.final_message.len() > 2 * MAX_MESSAGE_BYTES {
            let mut from = self.final_message.len() - MAX_MESSAGE_BYTES;
            while !self.final_message.is_char_boundary(from) {
                from += 1;
            }
            self.final_message.drain(..from);
        }
    }

    fn tool_started(&mut self, tool: &ToolStart) {
        self.scan.message_ended |= tool.parent.is_none();
        let Some(attempt) = self.attempts.last_mut() else {
            return;
        };
        attempt.tools += 1;
        if let Some(path) = written_path(tool) {
            self.scan.pending_writes.truncate(MAX_PENDING_WRITES - 1);
            self.scan.pending_writes.push_front((tool.id.clone(), path));
        }
    }

    fn tool_ended(&mut self, tool: &ToolEnd) {
        let Some(attempt) = self.attempts.last_mut() else {
            return;
        };
        attempt.failed_tools += u64::from(tool.status == ToolStatus::Fail);
        let pending = &mut self.scan.pending_writes;
        let index = pending.iter().position(|(id, _)| *id == tool.id);
        let path = index
            .and_then(|index| pending.remove(index))
            .map(|(_, path)| path);
        if let Some(path) = path.filter(|_| tool.status != ToolStatus::Fail) {
            self.add_file(&path);
        }
    }

    fn add_file(&mut self, path: &str) {
        let workspace = self.header.as_ref().map(|header| header.workspace.as_str());
        let relative = workspace
            .filter(|workspace| !workspace.is_empty())
            .and_then(|workspace| {
                let rest = path.strip_prefix(workspace.trim_end_matches('/'))?;
                rest.strip_prefix('/')
            });
        let path = relative.unwrap_or(path);
        if let Some(attempt) = self.attempts.last_mut()
            && attempt.files.len() < MAX_FILES
            && !attempt.files.iter().any(|file| file == path)
        {
            attempt.files.push(path.to_owned());
        }
    }
}

/// Each record of a finding replaces the previous one.
fn update_findings(findings: &mut Vec<Finding>, finding: &Finding) {
    match findings.iter_mut().find(|known| known.id == finding.id) {
        Some(known) => known.clone_from(finding),
        None => findings.push(finding.clone()),
    }
}

/// The path of the file that the call writes, for known tools that write one file.
fn written_path(tool: &ToolStart) -> Option<String> {
    let name = tool.name.to_ascii_lowercase();
    if !FILE_WRITING_TOOLS.contains(&name.as_str()) {
        return None;
    }
    let input = tool.input.as_ref()?.value();
    let path = PATH_FIELDS
        .iter()
        .find_map(|key| input.get(key).and_then(Value::as_str));
    path.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{FileChangeKind, ToolRef};
    use serde_json::json;

    fn apply(summary: &mut RunSummary, event: TranscriptEvent) {
        let (seq, at) = (1, Timestamp::UNIX_EPOCH);
        summary.apply(&Record {
            chain: None,
            seq,
            at,
            event: RunEvent::Transcript { iteration: 1, event },
        });
    }

    fn started_run() -> RunSummary {
        let mut summary = RunSummary::default();
        let golden = include_str!("../../tests/golden/events.v1.jsonl");
        for line in golden.lines().take(2) {
            summary.apply(&serde_json::from_str(line).unwrap());
        }
        summary
    }

    fn call(summary: &mut RunSummary, name: &str, path: &str, status: ToolStatus) {
        let id = format!("{name}-{path}");
        let tool = ToolStart {
            id: id.clone(),
            name: name.into(),
            input: Some(json!({ "file_path": path, "content": "…" }).into()),
            parent: None,
        };
        apply(summary, TranscriptEvent::ToolStart { tool });
        apply(
            summary,
            TranscriptEvent::ToolOutput {
                tool: ToolRef { id: id.clone() },
                text: "ok".into(),
            },
        );
        let tool = ToolEnd {
            id,
            status,
            duration_ms: None,
        };
        apply(summary, TranscriptEvent::ToolEnd { tool });
    }

    #[test]
    fn files_come_from_successful_writing_tools_and_file_change_events() {
        let mut summary = started_run();
        call(&mut summary, "Write", "/home/me/project/src/a.rs", ToolStatus::Ok);
        call(
            &mut summary,
            "Edit",
            "/home/me/project/src/a.rs",
            ToolStatus::Unknown,
        );
        call(&mut summary, "Edit", "/home/me/project/no.rs", ToolStatus::Fail);
        call(&mut summary, "Read", "/home/me/project/read.rs", ToolStatus::Ok);
        let (path, change) = ("/etc/x".into(), FileChangeKind::Added);
        apply(
            &mut summary,
            TranscriptEvent::meta(Meta::FileChange { path, change }),
        );
        let attempt = &summary.attempts[0];
        assert_eq!(attempt.files, ["src/a.rs", "/etc/x"]);
        assert_eq!((attempt.tools, attempt.failed_tools), (4, 1));
    }

    #[test]
    fn final_message_is_the_whole_last_message() {
        let mut summary = started_run();
        apply(&mut summary, TranscriptEvent::message(Tag::Ai, "first"));
        call(&mut summary, "Read", "x", ToolStatus::Ok);
        apply(&mut summary, TranscriptEvent::message(Tag::Think, "hm"));
        apply(&mut summary, TranscriptEvent::line(Tag::Ai, "one"));
        apply(&mut summary, TranscriptEvent::line(Tag::Ai, "two"));
        assert_eq!(summary.final_message, "one\ntwo");
        apply(
            &mut summary,
            TranscriptEvent::message(Tag::Ai, "ü".repeat(200_000)),
        );
        assert!(summary.final_message.len() <= 2 * MAX_MESSAGE_BYTES);
    }

    #[test]
    fn every_kind_of_record_is_summarized() {
        let mut summary = RunSummary::default();
        for line in include_str!("../../tests/golden/events.v1.jsonl").lines() {
            summary.apply(&serde_json::from_str(line).unwrap());
        }
        let ended = matches!(summary.outcome, Some(RunOutcome::Unreviewed { .. }));
        assert!(ended, "the last end counts: {:?}", summary.outcome);
        let value = serde_json::to_value(&summary).unwrap();
        assert_eq!(value["turns"][0]["outcome"], "limit_reached");
    }
}
