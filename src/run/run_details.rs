//! Everything that is known about a run, for `ralph show`, `ralph export` and the web page.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use crate::event::RunHeader;
use crate::store::{Journal, RunEntry, RunState, StoreError, id_from_path};
use crate::ui::{RunSummary, Tone, Verdict, local_time_zone, next_step, run_verdict, units};

use super::activity::LiveState;
use super::run_rows::OutcomeName;
use super::totals::partial_totals;

/// A run with all its details.
#[derive(Debug, Serialize)]
pub struct RunDetails {
    pub id: String,
    pub state: OutcomeName,
    pub directory: PathBuf,
    #[serde(flatten)]
    pub summary: RunSummary,
}

impl RunDetails {
    pub fn at(directory: &Path) -> Result<Self, StoreError> {
        let journal = directory.join("events.jsonl");
        let mut summary = RunSummary::default();
        for record in Journal::read(&journal)? {
            summary.apply(&record);
        }
        let state = RunEntry::read(directory).state;
        if !matches!(state, RunState::Ended(_))
            && let Some(totals) = partial_totals(&journal)
        {
            (summary.iterations, summary.duration_ms) = (totals.iterations, totals.duration_ms);
            summary.usage = totals.usage;
        }
        Ok(Self {
            state: OutcomeName::of(&state),
            directory: directory.to_owned(),
            id: id_from_path(directory),
            summary,
        })
    }

    /// The details of a run whose records have been read. `live` is its state if it is running.
    pub fn of_summary(directory: &Path, mut summary: RunSummary, live: Option<&LiveState>) -> Self {
        if let Some(LiveState { totals, .. }) = live {
            (summary.iterations, summary.duration_ms) = (totals.iterations, totals.duration_ms);
            summary.usage = totals.usage.clone();
        }
        let state = match (&summary.outcome, live) {
            (Some(outcome), _) => OutcomeName::of_outcome(outcome),
            (None, Some(_)) => OutcomeName::Running,
            (None, None) => OutcomeName::Died,
        };
        Self {
            state,
            directory: directory.to_owned(),
            id: id_from_path(directory),
            summary,
        }
    }

    /// Returns the state of the run as one sentence.
    pub fn verdict(&self) -> Verdict {
        if let Some(outcome) = &self.summary.outcome {
            return run_verdict(outcome, &self.summary.passed_gates());
        }
        let (mark, tone, sentence) = match self.state {
            OutcomeName::Running => ("▸", Tone::Accent, "Running."),
            OutcomeName::Broken => ("?", Tone::Bad, "The journal cannot be read."),
            _ => ("✗", Tone::Bad, "Died (process gone)."),
        };
        Verdict {
            mark,
            tone,
            sentence: sentence.to_owned(),
        }
    }

    /// Returns the outcome shown for an iteration that has not ended.
    pub fn unfinished(&self) -> &'static str {
        match self.state {
            OutcomeName::Running => "▸ running",
            _ => "! interrupted",
        }
    }

    /// Returns the next steps, one command per line.
    pub fn next_steps(&self) -> Vec<String> {
        let id = &self.id;
        let mut next = Vec::new();
        match (&self.summary.outcome, self.state) {
            (Some(outcome), _) => next.extend(next_step(outcome, id)),
            (None, OutcomeName::Running) => next.push(format!("to watch it: ralph logs -f {id}")),
            (None, _) => next.push(format!("to resume: ralph run --continue {id}")),
        }
        next.push(format!("to read it: ralph logs {id}"));
        let mut attempts = self.summary.attempts.iter();
        if attempts.any(|attempt| attempt.changes.as_ref().is_some_and(|changes| changes.files > 0)) {
            next.push(format!("to see its changes: ralph diff {id}"));
        }
        next.push(format!("to share it: ralph export {id} -o {id}.html"));
        next
    }
}

/// Returns the names and values at the top of the page.
pub fn facts(details: &RunDetails) -> Vec<(&'static str, String)> {
    let summary = &details.summary;
    let mut facts = Vec::new();
    let zone = local_time_zone();
    let time = |at: jiff::Timestamp| {
        at.to_zoned(zone.clone())
            .strftime("%Y-%m-%d %H:%M:%S")
            .to_string()
    };
    let header = summary.header.as_ref();
    if let Some(header) = header {
        facts.push(("agent", agent(header)));
        facts.push(("workspace", header.workspace.clone()));
    }
    facts.extend(summary.began.map(|at| ("started", time(at))));
    let last = summary.last.map(|at| {
        let name = if summary.outcome.is_some() {
            "ended"
        } else {
            "last seen"
        };
        (name, time(at))
    });
    facts.extend(last);
    let of = header.map(|header| format!(" of {}", units::grouped(header.max_iterations)));
    let iterations = units::grouped(summary.iterations);
    facts.push(("iterations", format!("{iterations}{}", of.unwrap_or_default())));
    facts.push((
        "time",
        units::duration(Duration::from_millis(summary.duration_ms)),
    ));
    facts.extend(
        summary
            .usage
            .tokens()
            .map(|tokens| ("tokens", units::grouped(tokens))),
    );
    facts.extend(summary.usage.cost_usd.map(|cost| ("cost", units::dollars(cost))));
    if summary.roles.has_several_roles() {
        facts.extend(summary.roles.lines().into_iter().map(|line| ("role", line)));
    }
    facts.extend(summary.usage.model.clone().map(|model| ("model", model)));
    facts
}

fn agent(header: &RunHeader) -> String {
    match &header.agent_version {
        Some(version) => format!("{} {version}", header.agent),
        None => header.agent.clone(),
    }
}
