//! `ralph race`: continues a run with several agents side by side, each in a fork, until the gates verify one of them.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::event::RunOutcome;
use crate::plan::{Contender, RaceEnd, RaceNews, RaceResult, race as run_race};
use crate::run::Host;
use crate::ui::clean::clean;
use crate::ui::{Cell, PassedGates, Table, Terminal, Tone, pretty_json, run_verdict, units};

use super::args::RaceArguments;
use super::common::ignore_broken_pipe;
use super::error::CliError;
use super::exit::Exit;
use super::fork_setup::ForkSource;
use super::undo_error::UndoError;

#[derive(Serialize)]
struct RaceReport {
    /// The run that the gates verified first.
    #[serde(skip_serializing_if = "Option::is_none")]
    winner: Option<String>,
    contenders: Vec<RaceRow>,
}

#[derive(Serialize)]
struct RaceRow {
    agent: String,
    run: String,
    directory: PathBuf,
    verified: bool,
    outcome: String,
    iterations: u64,
    duration_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
}

pub(super) fn race(arguments: &RaceArguments, terminal: &Terminal, host: &Host) -> Result<Exit, CliError> {
    let source = ForkSource::find(&arguments.what, host)?;
    if source.saved()?.gates().is_empty() {
        return Err(UndoError::RaceWithoutGates.into());
    }
    let mut contenders = Vec::new();
    for agent in &arguments.agents {
        let run_arguments = arguments.run_arguments(agent);
        let fork = source.create(&run_arguments.overrides()?, None, host)?;
        if !arguments.json {
            let line = format!(
                "{agent}: run {} in {}\n",
                fork.run,
                fork.place.workspace.display()
            );
            terminal.print(&clean(&line)).map_err(CliError::Output)?;
        }
        contenders.push(Contender {
            agent: agent.clone(),
            arguments: arguments.words(agent, &fork.run),
            run: fork.run,
            workspace: fork.place.workspace,
        });
    }
    let result = run_race(host, &contenders, |news| {
        if !arguments.json {
            // A closed pipe does not end the race.
            let _ = terminal.print(&news_line(news, &contenders));
        }
    })?;
    let report = report(&contenders, &result);
    let text = match arguments.json {
        true => pretty_json(&report),
        false => end_text(&report, terminal),
    };
    let exit = match (result.winner, result.signal) {
        (Some(_), _) => Exit::Success,
        (None, Some(_)) => Exit::Interrupted,
        (None, None) => Exit::Failed,
    };
    terminal.print(&text).map(|()| exit).or_else(ignore_broken_pipe)
}

fn news_line(news: &RaceNews, contenders: &[Contender]) -> String {
    let line = match news {
        RaceNews::Iteration(number, iteration) => {
            format!("{}: iteration {iteration}", contenders[*number].agent)
        }
        RaceNews::Ended(number, end) => format!("{}: {}", contenders[*number].agent, sentence(end)),
    };
    format!("{}\n", clean(&line))
}

fn sentence(end: &RaceEnd) -> String {
    match (&end.outcome, &end.problem) {
        (Some(RunOutcome::Complete { .. }), _) if end.verified => "verified".to_owned(),
        (Some(RunOutcome::Interrupted { .. }), _) => "stopped".to_owned(),
        (Some(outcome), _) => run_verdict(outcome, &PassedGates::default()).sentence,
        (None, Some(problem)) => problem.clone(),
        (None, None) => "stopped".to_owned(),
    }
}

fn report(contenders: &[Contender], result: &RaceResult) -> RaceReport {
    let rows = contenders
        .iter()
        .zip(&result.ends)
        .map(|(contender, end)| RaceRow {
            agent: contender.agent.clone(),
            run: contender.run.clone(),
            directory: contender.workspace.clone(),
            verified: end.verified,
            outcome: sentence(end),
            iterations: end.iterations,
            duration_ms: end.duration_ms,
            cost_usd: end.usage.cost_usd.map(f64::from),
        });
    RaceReport {
        winner: result.winner.map(|winner| contenders[winner].run.clone()),
        contenders: rows.collect(),
    }
}

fn end_text(report: &RaceReport, terminal: &Terminal) -> String {
    let mut table = Table::new(["AGENT", "RUN", "RESULT", "ITERATIONS", "TIME", "COST"]);
    for row in &report.contenders {
        let tone = if row.verified { Tone::Good } else { Tone::Plain };
        table.row([
            Cell::new(&clean(&row.agent), Tone::Accent),
            Cell::new(&row.run, Tone::Plain),
            Cell::new(&clean(&row.outcome), tone),
            Cell::from(row.iterations.to_string()),
            Cell::from(units::duration(Duration::from_millis(row.duration_ms))),
            Cell::from(row.cost_usd.map(units::dollars).unwrap_or_default()),
        ]);
    }
    let winner = report
        .contenders
        .iter()
        .find(|row| Some(&row.run) == report.winner.as_ref());
    let end = match winner {
        Some(row) => format!(
            "{} won.\n  what it changed:    ralph diff {run}\n  take over its files: ralph restore {run}@{}\n",
            clean(&row.agent),
            row.iterations,
            run = row.run,
        ),
        None => "No agent passed the gates.\n".to_owned(),
    };
    format!("\n{}{end}", terminal.render(&table))
}
