//! `ralph show`: prints a run's iterations, outcome, files and next steps.

use std::path::Path;
use std::time::Duration;

use jiff::tz::TimeZone;
use serde_json::Value;

use crate::event::{ChangedFile, Finding, FindingStatus, GateResult, IterationOutcome};
use crate::run::{RunDetails, facts};
use crate::ui::clean::clean;
use crate::ui::{
    AttemptSummary, Cell, Table, Terminal, Tone, Verdict, gate_failure, iteration_label, iteration_verdict,
    pretty_json, units,
};

use super::args::ShowRunArguments;
use super::common::ignore_broken_pipe;
use super::error::CliError;
use super::exit::Exit;

use super::run_lookup::resolve_run;

pub(super) fn show(arguments: &ShowRunArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let details = RunDetails::at(&resolve_run(arguments.run.as_deref())?)?;
    let text = if arguments.json {
        pretty_json(&json(&details))
    } else {
        text(&details, terminal)
    };
    terminal
        .print(&text)
        .map(|()| Exit::Success)
        .or_else(ignore_broken_pipe)
}

/// The details as JSON, in which `iterations` is the list of iterations.
fn json(details: &RunDetails) -> Value {
    let mut json = serde_json::to_value(details).unwrap_or_default();
    if let Some(fields) = json.as_object_mut()
        && let Some(list) = fields.remove("turns")
        && let Some(count) = fields.insert("iterations".to_owned(), list)
    {
        fields.insert("iteration_count".to_owned(), count);
    }
    json
}

fn text(details: &RunDetails, terminal: &Terminal) -> String {
    let verdict = details.verdict();
    let mut text = format!(
        "{}\n{} {}\n",
        terminal.styled(&format!("Run {}", clean(&details.id)), Tone::Strong),
        terminal.styled(verdict.mark, verdict.tone),
        clean(&verdict.sentence)
    );
    for (name, value) in facts(details) {
        let name = terminal.styled(&format!("{name:<12}"), Tone::Faint);
        text.push_str(&format!("  {name}{}\n", clean(&value)));
    }
    if !details.summary.attempts.is_empty() {
        text.push('\n');
        text.push_str(&terminal.render(&attempt_table(&details.summary.attempts, details.unfinished())));
        text.push_str(&problems(&details.summary.attempts, terminal));
        text.push_str(&changed_files(&details.summary.attempts, terminal));
    }
    text.push_str(&findings(&details.summary.findings, terminal));
    let message = details.summary.final_message.trim();
    if !message.is_empty() {
        text.push_str(&format!("\n{}\n", terminal.styled("Final message", Tone::Strong)));
        text.push_str(&excerpt(message));
    }
    text.push_str(&format!("\n{}\n", terminal.styled("Files", Tone::Strong)));
    for (name, what) in files(&details.directory) {
        text.push_str(&format!(
            "  {}  {}\n",
            clean(&name),
            terminal.styled(what, Tone::Faint)
        ));
    }
    text.push_str(&format!("\n{}\n", terminal.styled("Next", Tone::Strong)));
    for line in details.next_steps() {
        text.push_str(&format!("  {}\n", clean(&line)));
    }
    text
}

/// The findings of reviews, those that block first.
fn findings(all: &[Finding], terminal: &Terminal) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut sorted: Vec<&Finding> = all.iter().collect();
    sorted.sort_by_key(|finding| !finding.status.blocks());
    let mut text = format!("\n{}\n", terminal.styled("Findings", Tone::Strong));
    for finding in sorted {
        let tone = match (finding.status, finding.status.blocks()) {
            (FindingStatus::Resolved, _) => Tone::Good,
            (_, true) => Tone::Bad,
            (_, false) => Tone::Plain,
        };
        text.push_str(&format!(
            "  {} · {}\n",
            clean(&finding.heading()),
            terminal.styled(finding.status.label(), tone)
        ));
        let claim = finding
            .claim
            .lines()
            .map(|line| format!("    {}\n", clean(line.trim_end())));
        text.push_str(&claim.collect::<String>());
        if let Some(answer) = &finding.answer {
            text.push_str(&format!("    the agent: {}\n", clean(&answer.to_string())));
        }
    }
    text
}

fn attempt_table(attempts: &[AttemptSummary], unfinished: &str) -> Table {
    let mut table = Table::new([
        "#", "OUTCOME", "TIME", "TOOLS", "TOKENS", "COST", "GATES", "FILES", "",
    ]);
    for attempt in attempts {
        let role = [&attempt.hat, &attempt.agent].into_iter().flatten();
        let role = role.map(String::as_str).collect::<Vec<_>>().join(" · ");
        table.row([
            number(attempt).into(),
            outcome_cell(attempt, unfinished),
            duration(attempt).into(),
            tools(attempt).into(),
            attempt
                .usage
                .tokens()
                .map(units::tokens)
                .unwrap_or_default()
                .into(),
            attempt
                .usage
                .cost_usd
                .map(units::dollars)
                .unwrap_or_default()
                .into(),
            gates(attempt).into(),
            attempt.files_label().unwrap_or_default().into(),
            Cell::new(&role, Tone::Faint),
        ]);
    }
    table
}

/// `3`, or `3.2` for the second attempt.
fn number(attempt: &AttemptSummary) -> String {
    match attempt.attempt {
        0 | 1 => attempt.iteration.to_string(),
        number => format!("{}.{number}", attempt.iteration),
    }
}

fn outcome_cell(attempt: &AttemptSummary, unfinished: &str) -> Cell {
    match &attempt.outcome {
        Some(outcome) => {
            let verdict = iteration_verdict(outcome, attempt.began, &TimeZone::UTC);
            Cell::new(
                &format!("{} {}", verdict.mark, iteration_label(outcome)),
                verdict.tone,
            )
        }
        None => Cell::new(unfinished, Tone::Faint),
    }
}

/// An unfinished attempt has no duration.
fn duration(attempt: &AttemptSummary) -> String {
    match attempt.outcome {
        Some(_) => units::duration(Duration::from_millis(attempt.duration_ms)),
        None => String::new(),
    }
}

fn tools(attempt: &AttemptSummary) -> String {
    match attempt.failed_tools {
        0 => count(attempt.tools),
        failed => format!("{} ({failed} failed)", attempt.tools),
    }
}

fn gates(attempt: &AttemptSummary) -> String {
    let mark = |result| {
        if result == GateResult::Passed {
            "✓"
        } else {
            "✗"
        }
    };
    let gates = attempt
        .gates
        .iter()
        .map(|gate| format!("{} {}", mark(gate.result), gate.name));
    gates.collect::<Vec<_>>().join(" ")
}

/// Formats a number; 0 is empty, to keep the table readable.
fn count(number: u64) -> String {
    match number {
        0 => String::new(),
        number => units::grouped(number),
    }
}

/// Lists the reasons of failed iterations and gates, the last few only.
fn problems(attempts: &[AttemptSummary], terminal: &Terminal) -> String {
    const MAX_LINES: usize = 8;
    let zone = crate::ui::local_time_zone();
    let mut lines: Vec<String> = Vec::new();
    for attempt in attempts {
        let verdict = attempt
            .outcome
            .as_ref()
            .map(|outcome| iteration_verdict(outcome, attempt.began, &zone));
        // The line of the failed gate already explains a rejection.
        let rejected = matches!(
            &attempt.outcome,
            Some(IterationOutcome::Continued { rejected_by: Some(_) })
        );
        let is_problem = |verdict: &Verdict| !rejected && matches!(verdict.tone, Tone::Bad | Tone::Warning);
        if let Some(verdict) = verdict.filter(is_problem) {
            let mark = terminal.styled(verdict.mark, verdict.tone);
            lines.push(format!(
                "  {:<4} {mark} {}\n",
                number(attempt),
                one_line(&verdict.sentence)
            ));
        }
        for gate in attempt
            .gates
            .iter()
            .filter(|gate| gate.result != GateResult::Passed)
        {
            let why = gate_failure(gate.result).unwrap_or_default();
            let mark = terminal.styled("✗", Tone::Bad);
            let gate = one_line(&format!("gate {}: {why}", gate.name));
            lines.push(format!("  {:<4} {mark} {gate}\n", number(attempt)));
        }
    }
    let earlier = lines.len().saturating_sub(MAX_LINES);
    let mut text = if lines.is_empty() {
        String::new()
    } else {
        "\n".to_owned()
    };
    if earlier > 0 {
        text.push_str(&format!("  … {earlier} earlier\n"));
    }
    text.extend(lines.drain(earlier..));
    text
}

/// Lists the files that the snapshots show as changed, for each iteration.
fn changed_files(attempts: &[AttemptSummary], terminal: &Terminal) -> String {
    const MAX_ITERATIONS: usize = 10;
    let changed: Vec<String> = attempts
        .iter()
        .filter(|attempt| attempt.changes.as_ref().is_some_and(|changes| changes.files > 0))
        .map(|attempt| {
            let files: Vec<String> = attempt.changed_files.iter().map(ChangedFile::label).collect();
            format!("  {:<4} {}\n", number(attempt), one_line(&files.join(", ")))
        })
        .collect();
    if changed.is_empty() {
        return String::new();
    }
    let earlier = changed.len().saturating_sub(MAX_ITERATIONS);
    let mut text = format!("\n{}\n", terminal.styled("Changed files", Tone::Strong));
    if earlier > 0 {
        text.push_str(&format!("  … {earlier} earlier\n"));
    }
    text.extend(changed.into_iter().skip(earlier));
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

/// The last lines of a message, indented.
fn excerpt(message: &str) -> String {
    const MAX_LINES: usize = 30;
    let message = clean(message);
    let lines: Vec<&str> = message.lines().collect();
    let hidden = lines.len().saturating_sub(MAX_LINES);
    let mut text = String::new();
    if hidden > 0 {
        text.push_str(&format!("  … {} omitted\n", units::count(hidden as u64, "line")));
    }
    for line in &lines[hidden..] {
        let indent = if line.is_empty() { "" } else { "  " };
        text.push_str(&format!("{indent}{line}\n"));
    }
    text
}

/// Returns the paths of the run's files, with descriptions.
fn files(run: &Path) -> Vec<(String, &'static str)> {
    let all = [
        ("events.jsonl", "event log (JSON lines)"),
        ("summary.md", "final report"),
        ("iterations", "prompt, raw output and outcome of each iteration"),
    ];
    let existing = all.into_iter().filter(|(name, _)| run.join(name).exists());
    existing
        .map(|(name, what)| (run.join(name).display().to_string(), what))
        .collect()
}
