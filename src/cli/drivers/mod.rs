//! `ralph drivers`: lists and checks driver scripts, and creates skeletons.

use std::fs;
use std::io::Write;

use serde::Serialize;

use crate::agent::driver::{DriverError, DriverScript, EMBEDDED};
use crate::agent::{self, DRIVER};
use crate::config::Settings;
use crate::doctor::FindingState;
use crate::run::Host;
use crate::trust::Consent;
use crate::ui::{Cell, Table, Terminal, Tone, clean};

use super::args::{DriversArguments, DriversCommand};
use super::common::findings_text;
use super::consent;
use super::context::{Context, working_directory};
use super::driver_check::check_driver;
use super::error::CliError;
use super::exit::Exit;

const SKELETON: &str = include_str!("skeleton.sh");

pub(super) fn drivers(
    arguments: &DriversArguments,
    terminal: &Terminal,
    host: &Host,
) -> Result<Exit, CliError> {
    match &arguments.command {
        DriversCommand::List { json } => list(arguments, *json, terminal, host),
        DriversCommand::Check { name, json } => check(arguments, name.as_deref(), *json, terminal, host),
        DriversCommand::New { name } => new(name, terminal),
    }
}

#[derive(Debug, Serialize)]
struct DriverRow {
    name: String,
    /// The path, or a note that the driver is built in.
    #[serde(rename = "place")]
    location: String,
    embedded: bool,
    problem: Option<String>,
}

fn list(
    arguments: &DriversArguments,
    json: bool,
    terminal: &Terminal,
    host: &Host,
) -> Result<Exit, CliError> {
    let context = Context::here(host)?;
    let loaded = context.load(arguments.choice.overrides()?, arguments.choice.config.as_ref())?;
    let all = agent::driver_dirs(&loaded.settings, &context.cwd).all();
    let rows: Vec<DriverRow> = all
        .into_iter()
        .map(|(name, script)| DriverRow {
            name,
            location: script.as_ref().map(DriverScript::location).unwrap_or_default(),
            embedded: matches!(script, Ok(DriverScript::Embedded { .. })),
            problem: script.err().map(|error| error.to_string()),
        })
        .collect();
    let text = if json {
        serde_json::to_string_pretty(&rows).unwrap_or_default() + "\n"
    } else {
        let mut table = Table::new(["DRIVER", "LOCATION"]);
        for row in &rows {
            let (location, tone) = match &row.problem {
                Some(problem) => (clean::clean(problem).into_owned(), Tone::Bad),
                None => (clean::clean(&row.location).into_owned(), Tone::Plain),
            };
            table.row([Cell::new(&row.name, Tone::Plain), Cell::new(&location, tone)]);
        }
        format!(
            "{}\nTo use one: ralph run --agent driver:NAME\n",
            terminal.render(&table)
        )
    };
    terminal.print(&text).map_err(CliError::Output)?;
    Ok(Exit::Success)
}

/// Checks the given driver, otherwise the configured one, otherwise all.
fn check(
    arguments: &DriversArguments,
    name: Option<&str>,
    json: bool,
    terminal: &Terminal,
    host: &Host,
) -> Result<Exit, CliError> {
    let context = Context::here(host)?;
    let load = |name: Option<&str>| {
        let mut overrides = arguments.choice.overrides()?;
        overrides.cli.backend = name
            .map(|name| format!("{DRIVER}{name}"))
            .or(overrides.cli.backend);
        context.load(overrides, arguments.choice.config.as_ref())
    };
    let configured = load(None)?.settings;
    let configured_name = configured.cli.backend.strip_prefix(DRIVER).map(str::to_owned);
    let names: Vec<String> = match name.map(str::to_owned).or(configured_name) {
        Some(name) => vec![name],
        None => agent::driver_dirs(&configured, &context.cwd)
            .all()
            .into_iter()
            .map(|(name, _)| name)
            .collect(),
    };
    let mut findings = Vec::new();
    for name in names {
        let loaded = load(Some(&name))?;
        consent::require(&context, &loaded, Consent::of(arguments.choice.trust), terminal)?;
        findings.extend(check_driver(&name, &loaded.settings, context.probe().as_ref()));
    }
    let text = if json {
        serde_json::to_string_pretty(&findings).unwrap_or_default() + "\n"
    } else {
        clean::clean(&findings_text(&findings, terminal)).into_owned()
    };
    terminal.print(&text).map_err(CliError::Output)?;
    let broken = findings
        .iter()
        .any(|finding| finding.state == FindingState::Broken);
    Ok(if broken { Exit::Failed } else { Exit::Success })
}

fn new(name: &str, terminal: &Terminal) -> Result<Exit, CliError> {
    let cwd = working_directory()?;
    let directory = cwd.join(".ralph/drivers");
    let path = directory.join(format!("{name}.sh"));
    // Validate the name like that of an existing driver.
    match agent::driver_dirs(&Settings::default(), &cwd).find(name) {
        Err(error @ DriverError::BadName { .. }) => return Err(agent::AgentError::from(error).into()),
        _ if EMBEDDED.iter().any(|(known, _)| *known == name) => {
            let note = format!("`{name}` is also a built-in driver; this file overrides it");
            terminal.warn(&note).map_err(CliError::Output)?;
        }
        _ => {}
    }
    let written = fs::create_dir_all(&directory).and_then(|()| {
        let mut file = fs::File::options().write(true).create_new(true).open(&path)?;
        file.write_all(SKELETON.replace("@NAME@", name).as_bytes())
    });
    written.map_err(|source| CliError::Unwritable {
        path: path.clone(),
        source,
    })?;
    let text = format!(
        "wrote {}\nto check it: ralph drivers check {name}\n",
        path.display()
    );
    terminal.print(&text).map_err(CliError::Output)?;
    Ok(Exit::Success)
}
