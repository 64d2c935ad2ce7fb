//! What a running run is doing, read from its journal while another process appends to it.

use std::io;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::totals::RunTotals;
use crate::engine::RestoredRun;
use crate::event::{Command, RunEvent, TranscriptEvent, WaitReason};
use crate::store::{JournalEntry, JournalTail, StoreError};

/// What a run is doing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Activity {
    /// Between two steps.
    #[default]
    Starting,
    /// The agent works.
    Agent {
        /// The name of the running tool.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
    },
    /// A gate runs.
    Gate { name: String },
    /// The run waits until a time.
    Waiting {
        why: WaitReason,
        until: Timestamp,
        /// Explanation for the user.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The run is paused until a `resume` command.
    Paused,
    /// The run asks the user whether to continue.
    Asking,
    /// The agent asked the user a question.
    Question { text: String },
    /// The run is ending.
    Stopping { reason: String },
}

/// The state of a run that has not ended, with its totals so far.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LiveState {
    pub iteration: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hat: Option<String>,
    /// When the current iteration started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    pub activity: Activity,
    /// The totals up to the last record.
    pub totals: RunTotals,
    /// The time of the last record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Timestamp>,
}

impl LiveState {
    /// Whether the run waits for the user or for a limit.
    pub fn needs_attention(&self) -> bool {
        match self.activity {
            Activity::Asking | Activity::Question { .. } | Activity::Paused | Activity::Waiting { .. } => {
                true
            }
            Activity::Starting
            | Activity::Agent { .. }
            | Activity::Gate { .. }
            | Activity::Stopping { .. } => false,
        }
    }
}

/// Follows the journal of one run. It keeps only the state, not the records.
#[derive(Debug)]
pub struct ActivityFollower {
    tail: JournalTail,
    restored: RestoredRun,
    hat: Option<String>,
    since: Option<Timestamp>,
    last: Option<Timestamp>,
    activity: Activity,
}

impl ActivityFollower {
    pub fn open(journal: &Path) -> Result<Self, StoreError> {
        Ok(Self {
            tail: JournalTail::open(journal)?,
            restored: RestoredRun::default(),
            hat: None,
            since: None,
            last: None,
            activity: Activity::default(),
        })
    }

    /// Reads the records that were added since the last call.
    pub fn advance(&mut self) -> io::Result<()> {
        while let Some(entry) = self.tail.next_entry()? {
            if let JournalEntry::Record(record) = entry {
                self.last = Some(record.at);
                self.apply(record.at, &record.event);
                self.restored.fold(&record);
            }
        }
        Ok(())
    }

    pub fn state(&self) -> LiveState {
        LiveState {
            iteration: self.restored.iteration(),
            hat: self.hat.clone(),
            since: self.since,
            activity: self.activity.clone(),
            totals: RunTotals::of(&self.restored),
            last: self.last,
        }
    }

    fn apply(&mut self, at: Timestamp, event: &RunEvent) {
        self.activity = match event {
            RunEvent::IterationStarted { hat, .. } => {
                (self.hat, self.since) = (hat.clone(), Some(at));
                Activity::Agent { tool: None }
            }
            RunEvent::Transcript {
                event: TranscriptEvent::ToolStart { tool },
                ..
            } => Activity::Agent {
                tool: Some(tool.name.clone()),
            },
            RunEvent::Transcript {
                event: TranscriptEvent::ToolEnd { .. },
                ..
            } => Activity::Agent { tool: None },
            RunEvent::GateStarted { name, .. } | RunEvent::ReviewStarted { gate: name, .. } => {
                Activity::Gate { name: name.clone() }
            }
            RunEvent::Waiting { why, wait_ms, reason } => Activity::Waiting {
                why: *why,
                reason: reason.clone(),
                until: at
                    .checked_add(Duration::from_millis(*wait_ms))
                    .unwrap_or(Timestamp::MAX),
            },
            RunEvent::Paused => Activity::Paused,
            RunEvent::Asking => Activity::Asking,
            RunEvent::QuestionAsked { question, .. } => Activity::Question {
                text: question.clone(),
            },
            RunEvent::Stopping { reason } => Activity::Stopping {
                reason: reason.clone(),
            },
            RunEvent::GateEnded { .. }
            | RunEvent::WaitEnded
            | RunEvent::RunResumed(_)
            | RunEvent::QuestionExpired { .. }
            | RunEvent::CommandReceived {
                command: Command::AnswerQuestion { .. },
                ..
            } => Activity::Starting,
            _ => return,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn state_follows_the_journal() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events.jsonl");
        let header = include_str!("../../tests/golden/events.v1.jsonl")
            .lines()
            .next()
            .unwrap();
        std::fs::write(&path, format!("{header}\n")).unwrap();
        let mut journal = std::fs::File::options().append(true).open(&path).unwrap();
        let mut seq = 1;
        let mut append = |event: &str| {
            seq += 1;
            writeln!(
                journal,
                "{{\"seq\":{seq},\"at\":\"2026-11-15T20:45:01Z\",{event}}}"
            )
            .unwrap();
        };
        let mut follower = ActivityFollower::open(&path).unwrap();
        let mut state = || {
            follower.advance().unwrap();
            follower.state()
        };
        assert_eq!(state().activity, Activity::Starting);
        append(r#""type":"iteration_started","iteration":2,"attempt":1,"hat":"tester","prompt_bytes":3"#);
        let working = state();
        assert_eq!(working.last, "2026-11-15T20:45:01Z".parse().ok());
        assert_eq!(
            (working.iteration, working.hat.as_deref(), working.activity),
            (2, Some("tester"), Activity::Agent { tool: None })
        );
        append(
            r#""type":"transcript","iteration":2,"event":{"type":"tool_start","tool":{"id":"1","name":"Bash"}}"#,
        );
        assert_eq!(
            state().activity,
            Activity::Agent {
                tool: Some("Bash".into())
            }
        );
        append(r#""type":"gate_started","iteration":2,"name":"tests","command":"true""#);
        assert_eq!(state().activity, Activity::Gate { name: "tests".into() });
        append(r#""type":"waiting","why":"rate_limit","wait_ms":60000"#);
        let until = "2026-11-15T20:46:01Z".parse().unwrap();
        assert_eq!(
            state().activity,
            Activity::Waiting {
                why: WaitReason::RateLimit,
                until,
                reason: None
            }
        );
        append(r#""type":"asking""#);
        assert_eq!(state().activity, Activity::Asking);
        append(r#""type":"question_asked","iteration":2,"question":"Drop the table?""#);
        let text = "Drop the table?".to_owned();
        assert_eq!(state().activity, Activity::Question { text });
        append(r#""type":"told","id":"web-1","kind":"answer_question","text":"no""#);
        assert_eq!(state().activity, Activity::Starting);
    }
}
