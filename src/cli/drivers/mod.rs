//! `ralph drivers`: which driver scripts there are, whether one keeps the contract, and a skeleton for a new one.

use std::fs;
use std::io::Write;

use serde::Serialize;

use crate::agent::driver::{Asking, Driver, DriverError, EMBEDDED, Script, Support, check_tools};
use crate::agent::{self, DRIVER, Probe};
use crate::config::Settings;
use crate::doctor::{Finding, State};
use crate::transcript::jq::Filter;
use crate::ui::{Cell, Table, Terminal, Tone, clean};

use super::args::{DriversArguments, DriversCommand};
use super::context::Context;
use super::error::CliError;
use super::exit::Exit;
use super::hints::driver_hints;
use super::trust::{self, Consent};

const SKELETON: &str = include_str!("skeleton.sh");
const AREA: &str = "drivers";

pub(super) fn drivers(arguments: &DriversArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    match &arguments.command {
        DriversCommand::List { json } => list(arguments, *json, terminal),
        DriversCommand::Check { name, json } => check(arguments, name.as_deref(), *json, terminal),
        DriversCommand::New { name } => new(name, terminal),
    }
}

#[derive(Debug, Serialize)]
struct DriverRow {
    name: String,
    /// The file, or that it comes with ralph.
    place: String,
    embedded: bool,
    problem: Option<String>,
}

fn list(arguments: &DriversArguments, json: bool, terminal: &Terminal) -> Result<Exit, CliError> {
    let context = Context::here()?;
    let loaded = context.load(arguments.choice.overrides()?, arguments.choice.config.as_ref())?;
    let all = agent::driver_places(&loaded.settings, &context.cwd).all();
    let rows: Vec<DriverRow> = all
        .into_iter()
        .map(|(name, script)| DriverRow {
            name,
            place: script.as_ref().map(Script::place).unwrap_or_default(),
            embedded: matches!(script, Ok(Script::Embedded { .. })),
            problem: script.err().map(|error| error.to_string()),
        })
        .collect();
    let text = if json {
        serde_json::to_string_pretty(&rows).unwrap_or_default() + "\n"
    } else {
        let mut table = Table::new(["DRIVER", "WHERE"]);
        for row in &rows {
            let (place, tone) = match &row.problem {
                Some(problem) => (clean::clean(problem).into_owned(), Tone::Bad),
                None => (clean::clean(&row.place).into_owned(), Tone::Plain),
            };
            table.row([Cell::new(&row.name, Tone::Plain), Cell::new(&place, tone)]);
        }
        format!(
            "{}\nUse one: ralph run --agent driver:NAME\n",
            terminal.render(&table)
        )
    };
    terminal.print(&text).map_err(CliError::Output)?;
    Ok(Exit::Success)
}

/// One driver, or else the configured one, or else all.
fn check(
    arguments: &DriversArguments,
    name: Option<&str>,
    json: bool,
    terminal: &Terminal,
) -> Result<Exit, CliError> {
    let context = Context::here()?;
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
        None => agent::driver_places(&configured, &context.cwd)
            .all()
            .into_iter()
            .map(|(name, _)| name)
            .collect(),
    };
    let mut findings = Vec::new();
    for name in names {
        let loaded = load(Some(&name))?;
        trust::require(&context, &loaded, Consent::of(arguments.choice.trust), terminal)?;
        findings.extend(examine(&name, &loaded.settings, context.probe().as_ref()));
    }
    let text = if json {
        serde_json::to_string_pretty(&findings).unwrap_or_default() + "\n"
    } else {
        clean::clean(&super::doctor::doctor_text(&findings, terminal)).into_owned()
    };
    terminal.print(&text).map_err(CliError::Output)?;
    let broken = findings.iter().any(|finding| finding.state == State::Broken);
    Ok(if broken { Exit::Failed } else { Exit::Success })
}

/// What there is to say about a driver, for `check` and for the doctor. Runs it: the caller has asked whether it may.
pub(super) fn examine(name: &str, settings: &Settings, probe: &dyn Probe) -> Vec<Finding> {
    let finding = |state, detail: String, remedy: Option<String>| Finding {
        area: AREA,
        subject: name.to_owned(),
        state,
        detail,
        remedy,
    };
    let driver = match agent::load_driver(name, settings, probe, Asking::Check) {
        Ok(driver) => driver,
        Err(error) => {
            let remedy = driver_hints(&error).into_iter().next();
            return vec![finding(State::Broken, error.to_string(), remedy)];
        }
    };
    let mut findings = vec![finding(State::Good, summary(&driver), None)];
    findings.extend(
        driver
            .complaint
            .clone()
            .map(|complaint| finding(State::Warning, complaint, Some("mend the script".to_owned()))),
    );
    match &driver.filter {
        None => findings.push(finding(
            State::Warning,
            "it defines no driver_stream_filter".to_owned(),
            Some("without one nothing that the agent says is seen, unless ralph knows its format".to_owned()),
        )),
        Some(filter) => {
            if let Err(error) = Filter::compile(filter) {
                findings.push(finding(
                    State::Broken,
                    error.to_string(),
                    Some("mend driver_stream_filter".to_owned()),
                ));
            }
        }
    }
    if let Err(error) = sample(&driver, settings) {
        findings.push(finding(
            State::Broken,
            error.to_string(),
            driver_hints(&error).into_iter().next(),
        ));
    }
    findings.extend(
        presence(&driver, probe).map(|(detail, remedy)| finding(State::Warning, detail, Some(remedy))),
    );
    findings
}

/// A command line for a prompt that is not used, and a look at the allowed tools.
fn sample(driver: &Driver, settings: &Settings) -> Result<(), DriverError> {
    let unreadable = |source| DriverError::Unreadable {
        path: std::env::temp_dir(),
        source,
    };
    let mut prompt = tempfile::NamedTempFile::new().map_err(unreadable)?;
    prompt.write_all(b"a prompt\n").map_err(unreadable)?;
    driver.command(prompt.path(), "")?;
    check_tools(
        driver,
        settings.driver.allowed_tools.as_deref().unwrap_or_default(),
    )
    .map(|_| ())
}

fn summary(driver: &Driver) -> String {
    let supports = driver.supports;
    let abilities = [
        (supports.live_output, "live output"),
        (supports.sessions, "sessions"),
        (supports.tool_allowlist, "allowed tools"),
    ];
    let able: Vec<&str> = abilities
        .iter()
        .filter(|(support, _)| *support == Support::Yes)
        .map(|(_, word)| *word)
        .collect();
    format!("{} ({}): {}", driver.display_name, driver.place, able.join(", "))
}

/// Whether its program is there, and new enough.
fn presence(driver: &Driver, probe: &dyn Probe) -> Option<(String, String)> {
    let remedy = "install or update it".to_owned();
    let program = probe.find(&driver.binary);
    let (Some(program), true) = (program, driver.available.unwrap_or(true)) else {
        return Some((format!("`{}` is not available", driver.binary), remedy));
    };
    let wanted = semver::Version::parse(driver.min_version.as_deref()?).ok()?;
    let answer = probe.version(&program).ok()?;
    let words = answer.split(|c: char| c.is_whitespace() || c == ',');
    let found = words
        .filter_map(|word| semver::Version::parse(word.trim_start_matches('v')).ok())
        .next()?;
    (found < wanted).then(|| {
        (
            format!("{} is {found}; the driver wants {wanted}", driver.binary),
            remedy,
        )
    })
}

fn new(name: &str, terminal: &Terminal) -> Result<Exit, CliError> {
    let context = Context::here()?;
    let directory = context.cwd.join(".ralph/drivers");
    let path = directory.join(format!("{name}.sh"));
    // The name is judged as any other is.
    match agent::driver_places(&Settings::default(), &context.cwd).find(name) {
        Err(error @ DriverError::BadName { .. }) => return Err(agent::AgentError::from(error).into()),
        _ if EMBEDDED.iter().any(|(known, _)| *known == name) => {
            let note = format!("{name} also comes with ralph; this file will hide that one");
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
    let text = format!("wrote {}\ntry it: ralph drivers check {name}\n", path.display());
    terminal.print(&text).map_err(CliError::Output)?;
    Ok(Exit::Success)
}
