//! The rows of a list of runs, and their totals by day, project and agent.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::Serialize;

use super::totals::{RunTotals, partial_totals};
use crate::event::{RunOutcome, Usage};
use crate::files::{self, Links};
use crate::store::{RunEntry, RunIndex, RunState};

/// Number of prompt bytes to read for its first line.
const PROMPT_BYTES: usize = 512;
const PROMPT_COLUMNS: usize = 120;

/// The outcome of a run, explained in docs/runs.md. The variants have no help texts, to keep `-h` short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeName {
    Complete,
    Failed,
    Unreviewed,
    Auth,
    Limit,
    Interrupted,
    Running,
    Died,
    Broken,
}

/// A row of the list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RunRow {
    pub id: String,
    pub began: Option<Timestamp>,
    pub agent: Option<String>,
    pub outcome: OutcomeName,
    #[serde(flatten)]
    pub totals: Option<RunTotals>,
    /// The first line of the prompt, shortened.
    pub prompt: Option<String>,
}

/// A run of any project.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ProjectRow {
    pub project: String,
    pub project_root: String,
    #[serde(flatten)]
    pub run: RunRow,
}

/// Totals of many runs.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct ListTotals {
    /// By local date, the newest last.
    pub days: BTreeMap<String, ListTotal>,
    /// By project root.
    pub projects: BTreeMap<String, ListTotal>,
    pub agents: BTreeMap<String, ListTotal>,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct ListTotal {
    pub runs: u64,
    /// Runs that ended as complete.
    pub complete: u64,
    pub iterations: u64,
    pub usage: Usage,
}

impl OutcomeName {
    pub fn of(state: &RunState) -> Self {
        match state {
            RunState::Running => Self::Running,
            RunState::Died => Self::Died,
            RunState::Broken => Self::Broken,
            RunState::Ended(ending) => Self::of_outcome(&ending.outcome),
        }
    }

    pub fn of_outcome(outcome: &RunOutcome) -> Self {
        match outcome {
            RunOutcome::Complete { .. } => Self::Complete,
            RunOutcome::Failed { .. } | RunOutcome::Misconfigured { .. } => Self::Failed,
            RunOutcome::AuthRequired { .. } => Self::Auth,
            RunOutcome::Unreviewed { .. } => Self::Unreviewed,
            RunOutcome::LimitReached { .. } | RunOutcome::RateLimited { .. } => Self::Limit,
            RunOutcome::Interrupted { .. } | RunOutcome::CheckpointRefused { .. } => Self::Interrupted,
        }
    }
}

impl RunRow {
    /// Reads the whole journal of a run that has not ended, to compute its totals.
    pub fn read(index: &RunIndex, entry: &RunEntry) -> Self {
        let directory = index.directory(&entry.id);
        let totals = match &entry.state {
            RunState::Ended(ending) => Some(RunTotals {
                iterations: ending.iterations,
                duration_ms: ending.duration_ms,
                usage: ending.usage.clone(),
            }),
            RunState::Running | RunState::Died => partial_totals(&directory.join("events.jsonl")),
            RunState::Broken => None,
        };
        Self {
            totals,
            ..Self::without_totals(&directory, entry)
        }
    }

    /// Reads everything but the totals.
    pub fn without_totals(directory: &Path, entry: &RunEntry) -> Self {
        Self {
            prompt: first_line(&directory.join("iterations/0001/prompt.md")),
            id: entry.id.clone(),
            began: entry.began,
            agent: entry.header.as_ref().map(|header| header.agent.clone()),
            outcome: OutcomeName::of(&entry.state),
            totals: None,
        }
    }
}

impl ListTotals {
    pub fn add(&mut self, row: &ProjectRow, zone: &TimeZone) {
        let day = row
            .run
            .began
            .map(|began| began.to_zoned(zone.clone()).date().to_string());
        let agent = row.run.agent.clone();
        let totals = [
            self.days.entry(day.unwrap_or_else(|| "unknown".to_owned())),
            self.projects.entry(row.project_root.clone()),
            self.agents.entry(agent.unwrap_or_else(|| "unknown".to_owned())),
        ];
        for total in totals {
            let total = total.or_default();
            total.runs += 1;
            total.complete += u64::from(row.run.outcome == OutcomeName::Complete);
            if let Some(of_run) = &row.run.totals {
                total.iterations += of_run.iterations;
                total.usage.add(&of_run.usage);
            }
        }
    }
}

/// The first non-empty line, without heading markers, shortened.
fn first_line(prompt: &Path) -> Option<String> {
    let mut bytes = [0; PROMPT_BYTES];
    let count = files::open(prompt, Links::Refuse).ok()?.read(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes[..count]);
    let mut lines = text
        .lines()
        .map(|line| line.trim().trim_start_matches('#').trim());
    let words = lines.find(|line| !line.is_empty())?;
    let mut cut: String = words.chars().take(PROMPT_COLUMNS).collect();
    if cut.len() < words.len() {
        cut.push('…');
    }
    Some(cut)
}
