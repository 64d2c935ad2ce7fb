//! `ralph gates`: the checks that decide whether work is done; listed, or run by hand as the loop would run them.

use serde::Serialize;

use crate::config::{Partial, Settings};
use crate::event::GateResult;
use crate::run::run_gate;
use crate::ui::{Cell, Table, Terminal, Tone, clean::clean, gate_words, units};

use super::agents::json;
use super::args::{ConfigArguments, GatesArguments, GatesCommand};
use super::context::Context;
use super::error::CliError;
use super::exit::Exit;
use super::policy;
use super::trust::{self, Consent};

pub(super) fn gates(arguments: &GatesArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let context = Context::here()?;
    let load = |config: &ConfigArguments| -> Result<Settings, CliError> {
        Ok(context.load(Partial::default(), config.config.as_ref())?.settings)
    };
    match &arguments.command {
        None => list(&load(&arguments.config)?, arguments.config.json, terminal),
        Some(GatesCommand::List(config)) => list(&load(config)?, config.json, terminal),
        Some(GatesCommand::Run { name, trust, config }) => {
            let loaded = context.load(Partial::default(), config.config.as_ref())?;
            trust::require(&context, &loaded, Consent::of(*trust), terminal)?;
            let settings = loaded.settings;
            run(&context, &settings, name.as_deref(), config.json, terminal)
        }
    }
}

fn list(settings: &Settings, as_json: bool, terminal: &Terminal) -> Result<Exit, CliError> {
    let text = if as_json {
        json(&settings.gates)
    } else if settings.gates.is_empty() {
        "No gates are configured: a claim to be done is believed (see docs/config.md).\n".to_owned()
    } else {
        let mut table = Table::new(["GATE", "COMMAND", "TIMEOUT"]);
        for gate in &settings.gates {
            let place = gate.cwd.as_ref().map(|cwd| format!(" (in {})", cwd.display()));
            table.row([
                Cell::new(&gate.name, Tone::Accent),
                Cell::from(format!("{}{}", gate.run.trim_end(), place.unwrap_or_default())),
                Cell::from(format!("{} s", gate.timeout)),
            ]);
        }
        terminal.render(&table)
    };
    terminal.print(&text).map_err(CliError::Output)?;
    Ok(Exit::Success)
}

/// One gate that was run.
#[derive(Debug, Serialize)]
struct GateRow {
    name: String,
    command: String,
    result: GateResult,
    duration_ms: u64,
    output: String,
}

/// By hand every gate runs, also after one that failed: who asks wants to know all of it.
fn run(
    context: &Context,
    settings: &Settings,
    name: Option<&str>,
    as_json: bool,
    terminal: &Terminal,
) -> Result<Exit, CliError> {
    let rules = policy::gates(settings);
    if rules.is_empty() && name.is_none() {
        return list(settings, as_json, terminal);
    }
    let chosen: Vec<_> = rules
        .iter()
        .filter(|rule| name.is_none_or(|name| rule.name == name))
        .collect();
    if let (Some(name), true) = (name, chosen.is_empty()) {
        return Err(CliError::UnknownName {
            what: "gate",
            name: name.to_owned(),
            known: rules.iter().map(|rule| rule.name.clone()).collect(),
        });
    }
    let grace = std::time::Duration::from_secs(settings.event_loop.stop_grace_seconds);
    let mut rows = Vec::new();
    for rule in chosen {
        if !as_json {
            let title = format!("▸ {} · {}\n", rule.name, rule.command);
            terminal.print(&clean(&title)).map_err(CliError::Output)?;
        }
        let report = run_gate(&context.supervisors, rule, &context.cwd, grace);
        let row = GateRow {
            name: rule.name.clone(),
            command: rule.command.clone(),
            result: report.result,
            duration_ms: u64::try_from(report.took.as_millis()).unwrap_or(u64::MAX),
            output: report.output,
        };
        if !as_json {
            terminal
                .print(&gate_text(&row, report.took, terminal))
                .map_err(CliError::Output)?;
        }
        rows.push(row);
    }
    if as_json {
        terminal.print(&json(&rows)).map_err(CliError::Output)?;
    }
    let all_passed = rows.iter().all(|row| row.result == GateResult::Passed);
    Ok(if all_passed { Exit::Success } else { Exit::Failed })
}

fn gate_text(row: &GateRow, took: std::time::Duration, terminal: &Terminal) -> String {
    let output = clean(row.output.trim_end());
    let indented: String = output.lines().map(|line| format!("  {line}\n")).collect();
    let (mark, tone) = match row.result {
        GateResult::Passed => ("✓", Tone::Good),
        GateResult::Failed { .. } | GateResult::TimedOut | GateResult::CouldNotStart => ("✗", Tone::Bad),
    };
    let why = gate_words(row.result).map(|why| format!(" · {why}"));
    format!(
        "{indented}{} {} · {}{}\n",
        terminal.tinted(mark, tone),
        clean(&row.name),
        units::duration(took),
        why.unwrap_or_default()
    )
}
