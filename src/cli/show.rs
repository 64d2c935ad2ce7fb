//! `ralph show`: what a run did, iteration by iteration, what came of it, where its files are, and what to do now.

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::tz::TimeZone;
use serde::Serialize;

use crate::event::{GateResult, IterationOutcome, RunHeader};
use crate::store::{Journal, LATEST, RunIndex, State, StoreError, id_of, journal_at};
use crate::ui::clean::clean;
use crate::ui::{
    AttemptSummary, Cell, RunSummary, Table, Terminal, Tone, Verdict, gate_words, iteration_verdict,
    iteration_word, run_advice, run_verdict, units,
};

use super::agents::json;
use super::args::{OutcomeName, ShowRunArguments};
use super::error::CliError;
use super::exit::Exit;
use super::replay::named_run;
use super::runs::{outcome_of, partial_figures};
use super::transcript::ignore_broken_pipe;

/// A run that was looked at closely.
#[derive(Debug, Serialize)]
pub(super) struct RunDetails {
    pub(super) id: String,
    pub(super) state: OutcomeName,
    pub(super) directory: PathBuf,
    #[serde(flatten)]
    pub(super) account: RunSummary,
}

pub(super) fn show(arguments: &ShowRunArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let details = RunDetails::at(&resolve_run(arguments.run.as_deref())?)?;
    let text = if arguments.json {
        json(&details)
    } else {
        text(&details, terminal)
    };
    terminal
        .print(&text)
        .map(|()| Exit::Success)
        .or_else(ignore_broken_pipe)
}

/// The directory of the run that is meant: by its name, by its path, or else the newest.
pub(super) fn resolve_run(run: Option<&Path>) -> Result<PathBuf, CliError> {
    let what = run.unwrap_or(Path::new(LATEST));
    let place = named_run(what)?.unwrap_or_else(|| what.to_owned());
    let not_a_run = || StoreError::NotARun { path: place.clone() };
    let journal = journal_at(&place)?.ok_or_else(not_a_run)?;
    let journal = std::fs::canonicalize(&journal).unwrap_or(journal);
    Ok(journal.parent().unwrap_or(Path::new(".")).to_owned())
}

impl RunDetails {
    pub(super) fn at(directory: &Path) -> Result<Self, CliError> {
        let id = id_of(directory);
        let journal = directory.join("events.jsonl");
        let mut account = RunSummary::default();
        for record in Journal::read(&journal)? {
            account.hear(&record);
        }
        let workspace = directory.ancestors().nth(3).unwrap_or(Path::new("."));
        let state = RunIndex::of(workspace).entry(&id).state;
        if !matches!(state, State::Ended(_))
            && let Some(figures) = partial_figures(&journal)
        {
            (account.iterations, account.duration_ms) = (figures.iterations, figures.duration_ms);
            account.usage = figures.usage;
        }
        Ok(Self {
            state: outcome_of(&state),
            directory: directory.to_owned(),
            id,
            account,
        })
    }

    /// How it stands, in one sentence.
    pub(super) fn verdict(&self) -> Verdict {
        if let Some(outcome) = &self.account.outcome {
            return run_verdict(outcome, &self.account.passed_gates());
        }
        let (mark, tone, sentence) = match self.state {
            OutcomeName::Running => ("▸", Tone::Accent, "At work."),
            OutcomeName::Broken => ("?", Tone::Bad, "Its journal cannot be read."),
            _ => ("✗", Tone::Bad, "Died: it was killed, or the power was cut."),
        };
        Verdict {
            mark,
            tone,
            sentence: sentence.to_owned(),
        }
    }

    /// What can be done now, a command each.
    fn next(&self) -> Vec<String> {
        let id = &self.id;
        let mut next = Vec::new();
        match (&self.account.outcome, self.state) {
            (Some(outcome), _) => next.extend(run_advice(outcome, id)),
            (None, OutcomeName::Running) => next.push(format!("to watch it: ralph logs -f {id}")),
            (None, _) => next.push(format!("to resume: ralph run --continue {id}")),
        }
        next.push(format!("to read it: ralph logs {id}"));
        next.push(format!(
            "to share it: ralph export {id} --format html -o {id}.html"
        ));
        next
    }
}

fn text(details: &RunDetails, terminal: &Terminal) -> String {
    let verdict = details.verdict();
    let mut text = format!(
        "{}\n{} {}\n",
        terminal.tinted(&format!("Run {}", clean(&details.id)), Tone::Strong),
        terminal.tinted(verdict.mark, verdict.tone),
        clean(&verdict.sentence)
    );
    for (name, value) in facts(details) {
        let name = terminal.tinted(&format!("{name:<12}"), Tone::Faint);
        text.push_str(&format!("  {name}{}\n", clean(&value)));
    }
    if !details.account.turns.is_empty() {
        text.push('\n');
        text.push_str(&terminal.render(&turn_table(&details.account.turns)));
        text.push_str(&troubles(&details.account.turns, terminal));
    }
    let message = details.account.final_message.trim();
    if !message.is_empty() {
        text.push_str(&format!("\n{}\n", terminal.tinted("Final message", Tone::Strong)));
        text.push_str(&excerpt(message));
    }
    text.push_str(&format!("\n{}\n", terminal.tinted("Files", Tone::Strong)));
    for (name, what) in files(&details.directory) {
        text.push_str(&format!(
            "  {}  {}\n",
            clean(&name),
            terminal.tinted(what, Tone::Faint)
        ));
    }
    text.push_str(&format!("\n{}\n", terminal.tinted("Next", Tone::Strong)));
    for line in details.next() {
        text.push_str(&format!("  {}\n", clean(&line)));
    }
    text
}

/// Names and values for the top of a page.
pub(super) fn facts(details: &RunDetails) -> Vec<(&'static str, String)> {
    let account = &details.account;
    let mut facts = Vec::new();
    let zone = TimeZone::system();
    let time = |at: jiff::Timestamp| {
        at.to_zoned(zone.clone())
            .strftime("%Y-%m-%d %H:%M:%S")
            .to_string()
    };
    let header = account.header.as_ref();
    if let Some(header) = header {
        facts.push(("agent", agent(header)));
        facts.push(("workspace", header.workspace.clone()));
    }
    facts.extend(account.began.map(|at| ("began", time(at))));
    let last = account.last.map(|at| {
        let name = if account.outcome.is_some() {
            "ended"
        } else {
            "last seen"
        };
        (name, time(at))
    });
    facts.extend(last);
    let of = header.map(|header| format!(" of {}", units::grouped(header.max_iterations)));
    let iterations = units::grouped(account.iterations);
    facts.push(("iterations", format!("{iterations}{}", of.unwrap_or_default())));
    facts.push((
        "time",
        units::duration(Duration::from_millis(account.duration_ms)),
    ));
    facts.extend(
        account
            .usage
            .tokens()
            .map(|tokens| ("tokens", units::grouped(tokens))),
    );
    facts.extend(account.usage.cost_usd.map(|cost| ("cost", units::dollars(cost))));
    facts.extend(account.usage.model.clone().map(|model| ("model", model)));
    facts
}

fn agent(header: &RunHeader) -> String {
    match &header.agent_version {
        Some(version) => format!("{} {version}", header.agent),
        None => header.agent.clone(),
    }
}

fn turn_table(turns: &[AttemptSummary]) -> Table {
    let has_hats = turns.iter().any(|turn| turn.hat.is_some());
    let mut table = Table::new([
        "#", "OUTCOME", "TIME", "TOOLS", "TOKENS", "COST", "GATES", "FILES", "",
    ]);
    for turn in turns {
        let hat = turn.hat.as_deref().filter(|_| has_hats);
        table.row([
            number(turn).into(),
            outcome_cell(turn),
            units::duration(Duration::from_millis(turn.duration_ms)).into(),
            tools(turn).into(),
            turn.usage.tokens().map(units::tokens).unwrap_or_default().into(),
            turn.usage.cost_usd.map(units::dollars).unwrap_or_default().into(),
            gates(turn).into(),
            count(turn.files.len() as u64).into(),
            Cell::new(hat.unwrap_or_default(), Tone::Faint),
        ]);
    }
    table
}

/// `3`, or `3.2` for its second try.
fn number(turn: &AttemptSummary) -> String {
    match turn.attempt {
        0 | 1 => turn.iteration.to_string(),
        attempt => format!("{}.{attempt}", turn.iteration),
    }
}

fn outcome_cell(turn: &AttemptSummary) -> Cell {
    match &turn.outcome {
        Some(outcome) => {
            let verdict = iteration_verdict(outcome, turn.began, &TimeZone::UTC);
            Cell::new(
                &format!("{} {}", verdict.mark, iteration_word(outcome)),
                verdict.tone,
            )
        }
        None => Cell::new("… no end", Tone::Faint),
    }
}

fn tools(turn: &AttemptSummary) -> String {
    match turn.failed_tools {
        0 => count(turn.tools),
        failed => format!("{} ({failed} failed)", turn.tools),
    }
}

fn gates(turn: &AttemptSummary) -> String {
    let mark = |result| {
        if result == GateResult::Passed {
            "✓"
        } else {
            "✗"
        }
    };
    let gates = turn
        .gates
        .iter()
        .map(|gate| format!("{} {}", mark(gate.result), gate.name));
    gates.collect::<Vec<_>>().join(" ")
}

/// Nothing, rather than a zero, so that the eye finds what there is.
fn count(number: u64) -> String {
    match number {
        0 => String::new(),
        number => units::grouped(number),
    }
}

/// Why iterations did not go well, the last of them.
fn troubles(turns: &[AttemptSummary], terminal: &Terminal) -> String {
    const MOST: usize = 8;
    let zone = TimeZone::system();
    let mut lines: Vec<String> = Vec::new();
    for turn in turns {
        let verdict = turn
            .outcome
            .as_ref()
            .map(|outcome| iteration_verdict(outcome, turn.began, &zone));
        // A gate that refused the agent's claim speaks for itself.
        let rejected = matches!(
            &turn.outcome,
            Some(IterationOutcome::Continued { rejected_by: Some(_) })
        );
        let is_trouble = |verdict: &Verdict| !rejected && matches!(verdict.tone, Tone::Bad | Tone::Warning);
        if let Some(verdict) = verdict.filter(is_trouble) {
            let mark = terminal.tinted(verdict.mark, verdict.tone);
            lines.push(format!(
                "  {:<4} {mark} {}\n",
                number(turn),
                one_line(&verdict.sentence)
            ));
        }
        for gate in turn.gates.iter().filter(|gate| gate.result != GateResult::Passed) {
            let why = gate_words(gate.result).unwrap_or_default();
            let mark = terminal.tinted("✗", Tone::Bad);
            let gate = one_line(&format!("gate {}: {why}", gate.name));
            lines.push(format!("  {:<4} {mark} {gate}\n", number(turn)));
        }
    }
    let earlier = lines.len().saturating_sub(MOST);
    let mut text = if lines.is_empty() {
        String::new()
    } else {
        "\n".to_owned()
    };
    if earlier > 0 {
        text.push_str(&format!("  … {earlier} more before\n"));
    }
    text.extend(lines.drain(earlier..));
    text
}

fn one_line(text: &str) -> String {
    const COLUMNS: usize = 160;
    let line = clean(text).split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(COLUMNS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// The end of a message, indented.
fn excerpt(message: &str) -> String {
    const MOST: usize = 30;
    let message = clean(message);
    let lines: Vec<&str> = message.lines().collect();
    let hidden = lines.len().saturating_sub(MOST);
    let mut text = String::new();
    if hidden > 0 {
        text.push_str(&format!("  … {} above\n", units::count(hidden as u64, "line")));
    }
    for line in &lines[hidden..] {
        let indent = if line.is_empty() { "" } else { "  " };
        text.push_str(&format!("{indent}{line}\n"));
    }
    text
}

/// Where things are, and what they are.
fn files(run: &Path) -> Vec<(String, &'static str)> {
    let all = [
        ("events.jsonl", "all that happened, a JSON record each"),
        ("summary.md", "how it ended"),
        (
            "iterations",
            "prompt.md, stdout.raw, stderr.raw and outcome.json of each",
        ),
    ];
    let there = all.into_iter().filter(|(name, _)| run.join(name).exists());
    there
        .map(|(name, what)| (run.join(name).display().to_string(), what))
        .collect()
}
