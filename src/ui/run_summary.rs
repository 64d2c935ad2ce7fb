//! What a run did, iteration by iteration: a fold of its records that stays small however long the run was. Listings
//! and exports are made from it.

use std::collections::VecDeque;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::PassedGates;
use crate::event::{
    Flow, GateResult, IterationOutcome, Meta, Record, RunEvent, RunHeader, RunOutcome, Tag, ToolEnd,
    ToolStart, ToolStatus, TranscriptEvent, Usage,
};

/// A run, summed up.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RunSummary {
    pub header: Option<RunHeader>,
    pub began: Option<Timestamp>,
    /// When the last thing happened.
    pub last: Option<Timestamp>,
    /// Absent while the run has no end.
    #[serde(flatten)]
    pub outcome: Option<RunOutcome>,
    /// Iterations that count.
    pub iterations: u64,
    pub duration_ms: u64,
    pub usage: Usage,
    pub turns: Vec<AttemptSummary>,
    /// What the agent said last; of a long message, its end.
    pub final_message: String,
    #[serde(skip)]
    listening: Listening,
}

/// One try of an iteration.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct AttemptSummary {
    pub iteration: u64,
    pub attempt: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hat: Option<String>,
    pub began: Timestamp,
    /// Absent while it runs, and when it was cut off.
    #[serde(flatten)]
    pub outcome: Option<IterationOutcome>,
    pub duration_ms: u64,
    pub usage: Usage,
    pub tools: u64,
    pub failed_tools: u64,
    pub gates: Vec<GateRun>,
    /// Files that the agent says it changed, or that its tools wrote; those in the workspace are named from there.
    pub files: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GateRun {
    pub name: String,
    pub result: GateResult,
    pub duration_ms: u64,
}

/// What is remembered between two records.
#[derive(Debug, Clone, Default)]
struct Listening {
    /// What is said next begins a message.
    message_over: bool,
    said_something: bool,
    /// Calls that write a file, and which.
    writing: VecDeque<(String, String)>,
}

/// Of the final message, its end is kept.
const LONGEST_MESSAGE: usize = 64 * 1024;
const MOST_FILES: usize = 1000;
const MOST_WRITING: usize = 64;

/// Tools of the known agents that write one file, and where their input names it.
const WRITERS: [&str; 9] = [
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
const PATHS: [&str; 5] = ["file_path", "filePath", "notebook_path", "absolute_path", "path"];

impl RunSummary {
    pub fn hear(&mut self, record: &Record) {
        self.began.get_or_insert(record.at);
        self.last = self.last.max(Some(record.at));
        match &record.event {
            RunEvent::RunStarted(header) => self.header = Some((**header).clone()),
            RunEvent::RunResumed(resumption) => {
                self.header = Some(resumption.header.clone());
                self.outcome = None;
            }
            RunEvent::IterationStarted {
                iteration,
                attempt,
                hat,
                ..
            } => self.turn_began(*iteration, *attempt, hat.as_ref(), record.at),
            RunEvent::Transcript { event, .. } => self.transcript(event),
            RunEvent::GateEnded {
                name,
                result,
                duration_ms,
                ..
            } => self.gate_ended(name, *result, *duration_ms),
            RunEvent::IterationEnded {
                outcome,
                duration_ms,
                usage,
                ..
            } => self.turn_ended(outcome, *duration_ms, usage),
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
            RunEvent::AgentStarted { .. }
            | RunEvent::Stderr { .. }
            | RunEvent::MarkerIgnored { .. }
            | RunEvent::Topic { .. }
            | RunEvent::TopicRerouted { .. }
            | RunEvent::AgentEnded { .. }
            | RunEvent::GateStarted { .. }
            | RunEvent::Waiting { .. }
            | RunEvent::WaitEnded
            | RunEvent::CommandReceived { .. }
            | RunEvent::Progress { .. }
            | RunEvent::Paused
            | RunEvent::Asking
            | RunEvent::Stopping { .. }
            | RunEvent::Notice { .. } => {}
        }
    }

    /// The gates that passed in the last iteration.
    pub fn passed_gates(&self) -> PassedGates {
        let Some(turn) = self.turns.last() else {
            return PassedGates::default();
        };
        let passed = turn.gates.iter().filter(|gate| gate.result == GateResult::Passed);
        PassedGates::new(passed.map(|gate| gate.name.clone()).collect())
    }

    fn turn_began(&mut self, iteration: u64, attempt: u64, hat: Option<&String>, at: Timestamp) {
        self.listening = Listening {
            message_over: true,
            ..Listening::default()
        };
        self.turns.push(AttemptSummary {
            iteration,
            attempt,
            hat: hat.cloned(),
            began: at,
            ..AttemptSummary::default()
        });
    }

    fn turn_ended(&mut self, outcome: &IterationOutcome, duration_ms: u64, usage: &Usage) {
        if let Some(turn) = self.turns.last_mut() {
            turn.outcome = Some(outcome.clone());
            turn.duration_ms = duration_ms;
            turn.usage = usage.clone();
        }
    }

    fn gate_ended(&mut self, name: &str, result: GateResult, duration_ms: u64) {
        if let Some(turn) = self.turns.last_mut() {
            turn.gates.push(GateRun {
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
            } => self.said(text, *flow),
            TranscriptEvent::ToolStart { tool } => self.tool_began(tool),
            TranscriptEvent::ToolEnd { tool } => self.tool_ended(tool),
            TranscriptEvent::Meta {
                meta: Meta::FileChange { path, .. },
            } => self.changed(path),
            TranscriptEvent::Meta {
                meta: Meta::Finished { text: Some(text), .. },
            } if !self.listening.said_something => self.said(text, Flow::Message),
            TranscriptEvent::Text { .. }
            | TranscriptEvent::ToolOutput { .. }
            | TranscriptEvent::Usage { .. }
            | TranscriptEvent::Meta { .. } => {}
        }
    }

    fn said(&mut self, text: &str, flow: Flow) {
        let begins = std::mem::take(&mut self.listening.message_over) || flow == Flow::Message;
        if begins {
            self.final_message.clear();
        } else if flow == Flow::Line {
            self.final_message.push('\n');
        }
        self.final_message.push_str(text);
        self.listening.said_something |= !text.trim().is_empty();
        if self.final_message.len() > 2 * LONGEST_MESSAGE {
            let mut from = self.final_message.len() - LONGEST_MESSAGE;
            while !self.final_message.is_char_boundary(from) {
                from += 1;
            }
            self.final_message.drain(..from);
        }
    }

    fn tool_began(&mut self, tool: &ToolStart) {
        self.listening.message_over |= tool.parent.is_none();
        let Some(turn) = self.turns.last_mut() else { return };
        turn.tools += 1;
        if let Some(path) = written_by(tool) {
            self.listening.writing.truncate(MOST_WRITING - 1);
            self.listening.writing.push_front((tool.id.clone(), path));
        }
    }

    fn tool_ended(&mut self, tool: &ToolEnd) {
        let Some(turn) = self.turns.last_mut() else { return };
        turn.failed_tools += u64::from(tool.status == ToolStatus::Fail);
        let writing = &mut self.listening.writing;
        let known = writing.iter().position(|(id, _)| *id == tool.id);
        let path = known
            .and_then(|index| writing.remove(index))
            .map(|(_, path)| path);
        if let Some(path) = path.filter(|_| tool.status != ToolStatus::Fail) {
            self.changed(&path);
        }
    }

    fn changed(&mut self, path: &str) {
        let workspace = self.header.as_ref().map(|header| header.workspace.as_str());
        let inside = workspace
            .filter(|workspace| !workspace.is_empty())
            .and_then(|workspace| {
                let rest = path.strip_prefix(workspace.trim_end_matches('/'))?;
                rest.strip_prefix('/')
            });
        let path = inside.unwrap_or(path);
        if let Some(turn) = self.turns.last_mut()
            && turn.files.len() < MOST_FILES
            && !turn.files.iter().any(|file| file == path)
        {
            turn.files.push(path.to_owned());
        }
    }
}

/// The file that a call writes, where the tool is one that writes one file.
fn written_by(tool: &ToolStart) -> Option<String> {
    let name = tool.name.to_ascii_lowercase();
    if !WRITERS.contains(&name.as_str()) {
        return None;
    }
    let input = tool.input.as_ref()?.value();
    let path = PATHS
        .iter()
        .find_map(|key| input.get(key).and_then(Value::as_str));
    path.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{FileChangeKind, ToolRef};
    use serde_json::json;

    fn hear(account: &mut RunSummary, event: TranscriptEvent) {
        let (seq, at) = (1, Timestamp::UNIX_EPOCH);
        account.hear(&Record {
            seq,
            at,
            event: RunEvent::Transcript { iteration: 1, event },
        });
    }

    fn begun() -> RunSummary {
        let mut account = RunSummary::default();
        let golden = include_str!("../../tests/golden/events.v1.jsonl");
        for line in golden.lines().take(2) {
            account.hear(&serde_json::from_str(line).unwrap());
        }
        account
    }

    fn call(account: &mut RunSummary, name: &str, path: &str, status: ToolStatus) {
        let id = format!("{name}-{path}");
        let tool = ToolStart {
            id: id.clone(),
            name: name.into(),
            input: Some(json!({ "file_path": path, "content": "…" }).into()),
            parent: None,
        };
        hear(account, TranscriptEvent::ToolStart { tool });
        hear(
            account,
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
        hear(account, TranscriptEvent::ToolEnd { tool });
    }

    #[test]
    fn files_come_from_writing_tools_that_succeed_and_from_what_the_agent_says() {
        let mut account = begun();
        call(&mut account, "Write", "/home/me/project/src/a.rs", ToolStatus::Ok);
        call(
            &mut account,
            "Edit",
            "/home/me/project/src/a.rs",
            ToolStatus::Unknown,
        );
        call(&mut account, "Edit", "/home/me/project/no.rs", ToolStatus::Fail);
        call(&mut account, "Read", "/home/me/project/read.rs", ToolStatus::Ok);
        let (path, change) = ("/etc/x".into(), FileChangeKind::Added);
        hear(
            &mut account,
            TranscriptEvent::meta(Meta::FileChange { path, change }),
        );
        let turn = &account.turns[0];
        assert_eq!(turn.files, ["src/a.rs", "/etc/x"]);
        assert_eq!((turn.tools, turn.failed_tools), (4, 1));
    }

    #[test]
    fn the_final_message_is_the_last_one_whole() {
        let mut account = begun();
        hear(&mut account, TranscriptEvent::message(Tag::Ai, "first"));
        call(&mut account, "Read", "x", ToolStatus::Ok);
        hear(&mut account, TranscriptEvent::message(Tag::Think, "hm"));
        hear(&mut account, TranscriptEvent::line(Tag::Ai, "one"));
        hear(&mut account, TranscriptEvent::line(Tag::Ai, "two"));
        assert_eq!(account.final_message, "one\ntwo");
        hear(
            &mut account,
            TranscriptEvent::message(Tag::Ai, "ü".repeat(200_000)),
        );
        assert!(account.final_message.len() <= 2 * LONGEST_MESSAGE);
    }

    #[test]
    fn a_run_of_every_kind_of_record_is_summed_up() {
        let mut account = RunSummary::default();
        for line in include_str!("../../tests/golden/events.v1.jsonl").lines() {
            account.hear(&serde_json::from_str(line).unwrap());
        }
        assert_eq!(account.outcome, None, "it goes on");
        assert_eq!(account.iterations, 5);
        assert_eq!(account.turns[0].gates.len(), 1);
        let value = serde_json::to_value(&account).unwrap();
        assert_eq!(value["turns"][0]["outcome"], "limit_reached");
    }
}
