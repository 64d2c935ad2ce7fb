//! `ralph agents` and `ralph doctor`: what there is, as a table or as JSON.

use std::path::Path;

use serde::Serialize;

use crate::agent::{self, AGENTS, Agent, Checked, DRIVER, Evidence, Selected, StdinSource};
use crate::config::{Loaded, Settings};
use crate::doctor::{self, Finding, Scene, State};
use crate::transcript::{self, Capabilities};
use crate::ui::{Cell, Table, Terminal, Tone};

use super::args::ListArguments;
use super::context::Context;
use super::drivers;
use super::error::CliError;
use super::exit::Exit;
use super::hats;
use super::trust::{self, Consent};

/// One agent, as listed.
#[derive(Debug, Serialize)]
struct Row {
    name: &'static str,
    display_name: &'static str,
    found: bool,
    enabled: bool,
    /// The one that `backend: auto` takes.
    selected: bool,
    version: Option<String>,
    problem: Option<String>,
    transcript: String,
    capabilities: Option<Told>,
    /// `PROMPT` stands for the prompt.
    command: Vec<String>,
    stdin: &'static str,
    /// The version that ralph was tested with; absent where it is known from documentation only.
    tested_with: Option<&'static str>,
    /// The oldest version that will do, where that is known, and whether the one found is older.
    oldest: Option<&'static str>,
    outdated: bool,
    install: &'static str,
}

#[derive(Debug, Serialize)]
struct Told {
    roles: bool,
    tools: bool,
    usage: bool,
    sessions: bool,
    prompt_hiding: bool,
}

pub(super) fn agents(arguments: &ListArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let context = Context::here()?;
    let loaded = context.load(arguments.choice.wishes()?, arguments.choice.config.as_ref())?;
    let checked = agent::survey(&context.probe(), &loaded.settings);
    let selected = checked.iter().position(|checked| checked.answer.is_ok());
    let rows: Vec<Row> = checked
        .iter()
        .enumerate()
        .map(|(index, checked)| row(checked, Some(index) == selected, &loaded.settings))
        .collect();
    let text = if arguments.json {
        json(&rows)
    } else {
        agents_text(&rows, terminal)
    };
    terminal.print(&text).map_err(CliError::Output)?;
    Ok(Exit::Success)
}

fn row(checked: &Checked, selected: bool, settings: &Settings) -> Row {
    let agent = checked.agent;
    let program = checked
        .program
        .clone()
        .unwrap_or_else(|| agent.programs[0].into());
    let chosen = Selected::builtin(agent, program, None, settings);
    let (command, stdin) = sample_call(agent, &chosen);
    let capabilities = transcript::find(&chosen.format).map(|format| format.capabilities);
    Row {
        name: agent.name,
        display_name: agent.display_name,
        found: checked.program.is_some(),
        enabled: settings
            .adapters
            .get(agent.name)
            .is_none_or(|adapter| adapter.enabled),
        selected,
        version: checked.answer.clone().ok(),
        problem: checked.answer.as_ref().err().map(ToString::to_string),
        transcript: chosen.format,
        capabilities: capabilities.map(told),
        command,
        stdin,
        tested_with: match agent.tested_with {
            Evidence::Version(version) => Some(version),
            Evidence::Documentation => None,
        },
        oldest: agent.oldest,
        outdated: checked
            .answer
            .as_ref()
            .is_ok_and(|version| agent.is_outdated(version)),
        install: agent.install,
    }
}

fn told(capabilities: Capabilities) -> Told {
    let Capabilities {
        roles,
        tools,
        usage,
        sessions,
        prompt_hiding,
        ..
    } = capabilities;
    Told {
        roles,
        tools,
        usage,
        sessions,
        prompt_hiding,
    }
}

fn sample_call(agent: &Agent, chosen: &Selected) -> (Vec<String>, &'static str) {
    let program = agent.programs[0].to_owned();
    match chosen.invocation("THE PROMPT", Path::new("prompt.md")) {
        Ok(call) => {
            let stdin = match call.stdin {
                StdinSource::Null => "/dev/null",
                StdinSource::PromptFile(_) => "the prompt",
                StdinSource::Screen => "screen",
            };
            let args = call.args.into_iter().map(|arg| {
                arg.to_string_lossy()
                    .replace("THE PROMPT", "PROMPT")
                    .replace("usage.json", "FILE")
            });
            (std::iter::once(program).chain(args).collect(), stdin)
        }
        Err(_) => (vec![program], "/dev/null"),
    }
}

fn agents_text(rows: &[Row], terminal: &Terminal) -> String {
    let mut table = Table::new(["", "AGENT", "STATUS", "TRANSCRIPT", "TELLS"]);
    for row in rows {
        let (status, tone) = match (&row.version, &row.problem) {
            (Some(version), _) if row.outdated => {
                let oldest = row.oldest.unwrap_or_default();
                (format!("{version}; needs {oldest} or newer"), Tone::Warning)
            }
            (Some(version), _) => (version.clone(), Tone::Good),
            (None, problem) => (problem.clone().unwrap_or_default(), Tone::Faint),
        };
        table.row([
            Cell::new(if row.selected { "→" } else { "" }, Tone::Good),
            Cell::new(row.name, Tone::Plain),
            Cell::new(&status, tone),
            Cell::new(&row.transcript, Tone::Plain),
            Cell::new(&tells(row.capabilities.as_ref()), Tone::Plain),
        ]);
    }
    let mut text = terminal.render(&table);
    text.push_str("\nHow each is called:\n");
    for row in rows {
        let stdin = if row.stdin == "/dev/null" {
            ""
        } else {
            "   < PROMPT"
        };
        let unproven = if row.tested_with.is_none() {
            "   (from its documentation, not tested)"
        } else {
            ""
        };
        text.push_str(&format!("  {}{stdin}{unproven}\n", row.command.join(" ")));
    }
    debug_assert_eq!(rows.len(), AGENTS.len());
    text
}

fn tells(capabilities: Option<&Told>) -> String {
    let Some(told) = capabilities else {
        return String::new();
    };
    let all = [
        (told.roles, "roles"),
        (told.tools, "tools"),
        (told.usage, "usage"),
        (told.sessions, "sessions"),
        (told.prompt_hiding, "prompt"),
    ];
    let words: Vec<&str> = all
        .into_iter()
        .filter(|(has, _)| *has)
        .map(|(_, word)| word)
        .collect();
    if words.is_empty() {
        "text only".to_owned()
    } else {
        words.join(" ")
    }
}

pub(super) fn doctor(arguments: &ListArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let context = Context::here()?;
    let loaded = context.load(arguments.choice.wishes()?, arguments.choice.config.as_ref());
    let (loaded, problem) = match loaded {
        Ok(loaded) => (Some(loaded), None),
        Err(CliError::Config(problem)) => (None, Some(problem)),
        Err(error) => return Err(error),
    };
    let defaults = Settings::default();
    let settings = loaded.as_ref().map_or(&defaults, |loaded| &loaded.settings);
    let agents = agent::survey(&context.probe(), settings);
    let configuration = match (&loaded, &problem) {
        (Some(loaded), _) => Ok(loaded),
        (None, Some(problem)) => Err(problem),
        (None, None) => return Ok(Exit::Failed),
    };
    let mut findings = doctor::examine(&Scene {
        configuration,
        agents: &agents,
    });
    if let Some(loaded) = &loaded {
        findings.extend(hats::findings(&loaded.settings));
        findings.extend(doctor::judgement(&loaded.settings, context.probe().as_ref()));
        findings.extend(driver_findings(
            &context,
            loaded,
            Consent::of(arguments.choice.trust),
        )?);
    }
    let text = if arguments.json {
        json(&findings)
    } else {
        doctor_text(&findings, terminal)
    };
    terminal.print(&text).map_err(CliError::Output)?;
    Ok(if doctor::is_broken(&findings) {
        Exit::Failed
    } else {
        Exit::Success
    })
}

/// The configured driver, if it may be run.
fn driver_findings(context: &Context, loaded: &Loaded, consent: Consent) -> Result<Vec<Finding>, CliError> {
    let Some(name) = loaded.settings.cli.backend.strip_prefix(DRIVER) else {
        return Ok(Vec::new());
    };
    if trust::is_settled(context, loaded, consent)? {
        return Ok(drivers::examine(name, &loaded.settings, context.probe().as_ref()));
    }
    Ok(vec![Finding {
        area: "drivers",
        subject: name.to_owned(),
        state: State::Warning,
        detail: "not asked: it is not allowed yet".to_owned(),
        remedy: Some("to see what it would run, and to allow it: ralph trust --show, ralph trust".to_owned()),
    }])
}

pub(super) fn doctor_text(findings: &[Finding], terminal: &Terminal) -> String {
    let mut text = String::new();
    let mut area = "";
    for finding in findings {
        if finding.area != area {
            area = finding.area;
            text.push_str(&format!("{}{area}\n", if text.is_empty() { "" } else { "\n" }));
        }
        let (mark, tone) = match finding.state {
            State::Good => ("✓", Tone::Good),
            State::Absent => ("·", Tone::Faint),
            State::Warning => ("!", Tone::Warning),
            State::Broken => ("✗", Tone::Bad),
        };
        let detail = finding.detail.replace('\n', "\n      ");
        text.push_str(&format!(
            "  {} {:<16} {detail}\n",
            terminal.tinted(mark, tone),
            finding.subject
        ));
        if let Some(remedy) = &finding.remedy
            && matches!(finding.state, State::Warning | State::Broken)
        {
            text.push_str(&format!("    {:<16} → {remedy}\n", ""));
        }
    }
    text
}

pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}
