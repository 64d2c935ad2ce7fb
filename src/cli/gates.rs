//! `ralph gates`: lists the gates, or runs them as the loop would.

use serde::Serialize;

use crate::config::{PartialSettings, Settings};
use crate::event::{GateResult, TestReport};
use crate::run::{Host, run_gate};
use crate::trust::Consent;
use crate::ui::{Cell, Table, Terminal, Tone, clean::clean, gate_failure, pretty_json, units};

use super::args::{ConfigArguments, GatesArguments, GatesCommand};
use super::consent;
use super::context::Context;
use super::error::CliError;
use super::exit::Exit;

pub(super) fn gates(arguments: &GatesArguments, terminal: &Terminal, host: &Host) -> Result<Exit, CliError> {
    let context = Context::here(host)?;
    let load = |config: &ConfigArguments| -> Result<Settings, CliError> {
        Ok(context
            .load(PartialSettings::default(), config.config.as_ref())?
            .settings)
    };
    match &arguments.command {
        None => list(&load(&arguments.config)?, arguments.config.json, terminal),
        Some(GatesCommand::List(config)) => list(&load(config)?, config.json, terminal),
        Some(GatesCommand::Run { name, trust, config }) => {
            let loaded = context.load(PartialSettings::default(), config.config.as_ref())?;
            consent::require(&context, &loaded, Consent::of(*trust), terminal)?;
            let settings = loaded.settings;
            run(&context, &settings, name.as_deref(), config.json, terminal)
        }
    }
}

fn list(settings: &Settings, as_json: bool, terminal: &Terminal) -> Result<Exit, CliError> {
    let text = if as_json {
        pretty_json(&settings.gates)
    } else if settings.gates.is_empty() {
        "No gates are configured, so completion is not verified (see docs/gates.md).\n".to_owned()
    } else {
        let mut table = Table::new(["GATE", "COMMAND", "TIMEOUT"]);
        for gate in &settings.gates {
            let directory = gate.cwd.as_ref().map(|cwd| format!(" (in {})", cwd.display()));
            table.row([
                Cell::new(&gate.name, Tone::Accent),
                Cell::from(format!(
                    "{}{}",
                    gate.shown_command().trim_end(),
                    directory.unwrap_or_default()
                )),
                Cell::from(gate.timeout.to_string()),
            ]);
        }
        terminal.render(&table)
    };
    terminal.print(&text).map_err(CliError::Output)?;
    Ok(Exit::Success)
}

/// The result of one gate.
#[derive(Debug, Serialize)]
struct GateRow {
    name: String,
    command: String,
    result: GateResult,
    duration_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    tests: Option<TestReport>,
    output: String,
}

/// Runs all gates, even after a failure, unlike the loop.
fn run(
    context: &Context,
    settings: &Settings,
    name: Option<&str>,
    as_json: bool,
    terminal: &Terminal,
) -> Result<Exit, CliError> {
    let rules = &settings.gates;
    if rules.is_empty() && name.is_none() {
        return list(settings, as_json, terminal);
    }
    let selected: Vec<_> = rules
        .iter()
        .filter(|rule| name.is_none_or(|name| rule.name == name))
        .collect();
    if let (Some(name), true) = (name, selected.is_empty()) {
        return Err(CliError::UnknownName {
            what: "gate",
            name: name.to_owned(),
            known: rules.iter().map(|rule| rule.name.clone()).collect(),
        });
    }
    let grace = settings.event_loop.stop_grace_seconds.duration();
    let mut rows = Vec::new();
    for rule in selected {
        if rule.is_review() {
            if !as_json {
                let text = format!(
                    "▸ {} · {}: run it with `ralph review`\n",
                    rule.name,
                    rule.shown_command()
                );
                terminal.print(&clean(&text)).map_err(CliError::Output)?;
            }
            continue;
        }
        if !as_json {
            let title = format!("▸ {} · {}\n", rule.name, rule.run);
            terminal.print(&clean(&title)).map_err(CliError::Output)?;
        }
        let report = run_gate(context.host.supervisors(), rule, &context.cwd, grace);
        let row = GateRow {
            name: rule.name.clone(),
            command: rule.run.clone(),
            result: report.result,
            duration_ms: u64::try_from(report.took.as_millis()).unwrap_or(u64::MAX),
            tests: report.tests,
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
        terminal.print(&pretty_json(&rows)).map_err(CliError::Output)?;
    }
    let all_passed = rows.iter().all(|row| row.result == GateResult::Passed);
    Ok(if all_passed { Exit::Success } else { Exit::Failed })
}

fn gate_text(row: &GateRow, took: std::time::Duration, terminal: &Terminal) -> String {
    let output = clean(row.output.trim_end());
    let indented: String = output.lines().map(|line| format!("  {line}\n")).collect();
    let (mark, tone) = match row.result.passed() {
        true => ("✓", Tone::Good),
        false => ("✗", Tone::Bad),
    };
    let why = gate_failure(row.result).map(|why| format!(" · {why}"));
    let tests = row.tests.as_ref().map(|tests| format!(" · {tests}"));
    format!(
        "{indented}{} {} · {}{}{}\n",
        terminal.styled(mark, tone),
        clean(&row.name),
        units::duration(took),
        why.unwrap_or_default(),
        tests.unwrap_or_default()
    )
}
