//! `ralph agents`: lists the agents with their status and command lines.

use std::path::Path;

use serde::Serialize;

use crate::agent::{self, AGENTS, Agent, AgentCheck, Evidence, ResolvedAgent, StdinSource};
use crate::config::Settings;
use crate::run::Host;
use crate::transcript::{self, Capabilities};
use crate::ui::{Cell, Table, Terminal, Tone, pretty_json};

use super::args::ListArguments;
use super::context::Context;
use super::error::CliError;
use super::exit::Exit;

/// A row of the list.
#[derive(Debug, Serialize)]
struct AgentRow {
    name: &'static str,
    display_name: &'static str,
    found: bool,
    enabled: bool,
    /// Whether `backend: auto` uses this agent.
    selected: bool,
    version: Option<String>,
    problem: Option<String>,
    transcript: String,
    capabilities: Option<AgentCapabilities>,
    /// The command line, with `PROMPT` in place of the prompt.
    command: Vec<String>,
    stdin: &'static str,
    /// How the row was verified: `measured` with the program, `captured` output only, or `documentation` only.
    evidence: &'static str,
    /// The version that was measured or captured.
    tested_with: Option<&'static str>,
    /// The oldest supported version, if known, and whether the installed one is older.
    oldest: Option<&'static str>,
    outdated: bool,
    install: &'static str,
}

#[derive(Debug, Serialize)]
struct AgentCapabilities {
    roles: bool,
    tools: bool,
    usage: bool,
    sessions: bool,
    prompt_hiding: bool,
}

pub(super) fn agents(arguments: &ListArguments, terminal: &Terminal, host: &Host) -> Result<Exit, CliError> {
    let context = Context::here(host)?;
    let loaded = context.load(arguments.choice.overrides()?, arguments.choice.config.as_ref())?;
    let checked = agent::check_all(&context.probe(), &loaded.settings);
    let selected = checked.iter().position(|checked| checked.version.is_ok());
    let rows: Vec<AgentRow> = checked
        .iter()
        .enumerate()
        .map(|(index, checked)| row(checked, Some(index) == selected, &loaded.settings))
        .collect();
    let text = if arguments.json {
        pretty_json(&rows)
    } else {
        agents_text(&rows, terminal)
    };
    terminal.print(&text).map_err(CliError::Output)?;
    Ok(Exit::Success)
}

fn row(checked: &AgentCheck, selected: bool, settings: &Settings) -> AgentRow {
    let agent = checked.agent;
    let program = checked
        .program
        .clone()
        .unwrap_or_else(|| agent.programs[0].into());
    let resolved = ResolvedAgent::builtin(agent, program, None, settings);
    let (command, stdin) = sample_call(agent, &resolved);
    let capabilities = transcript::find(&resolved.format).map(|format| format.capabilities);
    AgentRow {
        name: agent.name,
        display_name: agent.display_name,
        found: checked.program.is_some(),
        enabled: settings
            .adapters
            .get(agent.name)
            .is_none_or(|adapter| adapter.enabled),
        selected,
        version: checked.version.clone().ok(),
        problem: checked.version.as_ref().err().map(ToString::to_string),
        transcript: resolved.format,
        capabilities: capabilities.map(agent_capabilities),
        command,
        stdin,
        evidence: match agent.tested_with {
            Evidence::Version(_) => "measured",
            Evidence::Captured(_) => "captured",
            Evidence::Documentation => "documentation",
        },
        tested_with: match agent.tested_with {
            Evidence::Version(version) | Evidence::Captured(version) => Some(version),
            Evidence::Documentation => None,
        },
        oldest: agent.min_version,
        outdated: checked
            .version
            .as_ref()
            .is_ok_and(|version| agent.is_outdated(version)),
        install: agent.install,
    }
}

fn agent_capabilities(capabilities: Capabilities) -> AgentCapabilities {
    let Capabilities {
        roles,
        tools,
        usage,
        sessions,
        prompt_hiding,
        ..
    } = capabilities;
    AgentCapabilities {
        roles,
        tools,
        usage,
        sessions,
        prompt_hiding,
    }
}

fn sample_call(agent: &Agent, resolved: &ResolvedAgent) -> (Vec<String>, &'static str) {
    let program = agent.programs[0].to_owned();
    match resolved.invocation("THE PROMPT", Path::new("prompt.md")) {
        Ok(call) => {
            let stdin = match call.stdin {
                StdinSource::Null => "/dev/null",
                StdinSource::PromptFile(_) => "the prompt",
                StdinSource::Terminal => "screen",
                StdinSource::Protocol => "messages",
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

fn agents_text(rows: &[AgentRow], terminal: &Terminal) -> String {
    let mut table = Table::new(["", "AGENT", "STATUS", "TRANSCRIPT", "REPORTS"]);
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
            Cell::new(&capability_list(row.capabilities.as_ref()), Tone::Plain),
        ]);
    }
    let mut text = terminal.render(&table);
    text.push_str("\nCommand lines:\n");
    for row in rows {
        let stdin = if row.stdin == "/dev/null" {
            ""
        } else {
            "   < PROMPT"
        };
        let tested = match (row.evidence, row.tested_with) {
            ("measured", Some(version)) => format!("   (tested with {version})"),
            ("captured", Some(version)) => {
                format!("   (output tested with {version}; command from documentation)")
            }
            _ => "   (from documentation, not tested)".to_owned(),
        };
        text.push_str(&format!("  {}{stdin}{tested}\n", row.command.join(" ")));
    }
    debug_assert_eq!(rows.len(), AGENTS.len());
    text
}

fn capability_list(capabilities: Option<&AgentCapabilities>) -> String {
    let Some(capabilities) = capabilities else {
        return String::new();
    };
    let all = [
        (capabilities.roles, "roles"),
        (capabilities.tools, "tools"),
        (capabilities.usage, "usage"),
        (capabilities.sessions, "sessions"),
        (capabilities.prompt_hiding, "prompt"),
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
