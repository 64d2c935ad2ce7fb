//! `ralph agents test`: one small prompt for an agent, before a night is trusted to it.

use std::time::Duration;

use serde::Serialize;

use crate::agent::{self, AgentError, CUSTOM, ResolvedAgent, StdinSource, Terminal as AgentTerminal};
use crate::doctor::{AgentTest, Finding, PROMPT, Verdict, next_call, unusable};
use crate::event::ProcessEnd;
use crate::run::{Trial, TrialError, TrialOutput, Way};
use crate::ui::{Terminal, clean};

use super::agents::json;
use super::args::AgentTestArguments;
use super::context::Context;
use super::doctor::doctor_text;
use super::error::CliError;
use super::exit::Exit;
use super::transcript_format::resolve_format;
use super::trust::{self, Consent};

/// All of it, for a program.
#[derive(Debug, Serialize)]
struct TestReport {
    agent: String,
    display_name: String,
    verdict: Verdict,
    prompt: &'static str,
    calls: Vec<TestCall>,
    findings: Vec<Finding>,
}

/// One call that was made.
#[derive(Debug, Serialize)]
struct TestCall {
    way: Way,
    command: Vec<String>,
    stdin: &'static str,
    stdout: &'static str,
    /// Absent if it had to be stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<ProcessEnd>,
    seconds: f64,
    stdout_bytes: usize,
    stderr_bytes: usize,
    leftovers: u64,
}

pub(super) fn test(arguments: &AgentTestArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let context = Context::here()?;
    let mut overrides = arguments.choice.overrides()?;
    overrides.cli.backend = arguments.name.clone().or(overrides.cli.backend);
    let loaded = context.load(overrides, arguments.choice.config.as_ref())?;
    trust::require(&context, &loaded, Consent::of(arguments.choice.trust), terminal)?;
    let probe = context.probe();
    let mut selected = match agent::resolve(&loaded.settings, &probe) {
        Ok(selected) => selected,
        Err(error) => return nothing_to_call(&loaded.settings.cli.backend, error, arguments, terminal),
    };
    if selected.version.is_none() && selected.adapter() != CUSTOM {
        selected.version = probe.version(&selected.program).ok();
    }
    let (format, filter) = resolve_format(&mut selected)?;
    let warned = selected.warnings.iter().try_for_each(|text| terminal.warn(text));
    warned.map_err(CliError::Output)?;
    let trial = Trial {
        agent: &selected,
        format,
        filter: filter.as_ref(),
        prompt: PROMPT,
        workspace: context.cwd.clone(),
        supervisors: context.supervisors.clone(),
        timeout: Duration::from_secs(arguments.timeout),
    };
    if !arguments.json {
        let announced = terminal.print(&clean::clean(&announcement(&selected, arguments.timeout)));
        announced.map_err(CliError::Output)?;
    }
    execute(&trial, arguments, terminal)
}

fn execute(trial: &Trial<'_>, arguments: &AgentTestArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let agent = trial.agent;
    let mut calls = Vec::new();
    while let Some(way) = next_call(agent, &calls) {
        match trial.call(way) {
            Ok(heard) => calls.push(heard),
            Err(TrialError::Process(error)) => {
                return no_call(
                    &agent.name,
                    unusable(error.to_string(), None),
                    arguments,
                    terminal,
                );
            }
            Err(TrialError::Agent(error)) => return Err(error.into()),
            Err(TrialError::Scratch { path, source }) => return Err(CliError::Unwritable { path, source }),
        }
    }
    let tested = AgentTest {
        agent,
        format: trial.format,
        timeout: trial.timeout,
        calls: &calls,
    };
    let report = TestReport {
        agent: agent.name.clone(),
        display_name: agent.display_name.clone(),
        verdict: tested.verdict(),
        prompt: PROMPT,
        calls: calls.iter().map(call).collect(),
        findings: tested.findings(),
    };
    show(&report, arguments, terminal)?;
    Ok(match report.verdict {
        Verdict::Works => Exit::Success,
        Verdict::Unproven | Verdict::Broken => Exit::Failed,
    })
}

/// A program that is not there is an answer like any other; whatever else is wrong is a mistake.
fn nothing_to_call(
    backend: &str,
    error: AgentError,
    arguments: &AgentTestArguments,
    terminal: &Terminal,
) -> Result<Exit, CliError> {
    let error = CliError::Agent(error);
    if error.exit() != Exit::NoAgent {
        return Err(error);
    }
    let finding = unusable(error.to_string(), error.hints().into_iter().next());
    no_call(backend, finding, arguments, terminal)
}

fn no_call(
    agent: &str,
    finding: Finding,
    arguments: &AgentTestArguments,
    terminal: &Terminal,
) -> Result<Exit, CliError> {
    let report = TestReport {
        agent: agent.to_owned(),
        display_name: agent.to_owned(),
        verdict: Verdict::Broken,
        prompt: PROMPT,
        calls: Vec::new(),
        findings: vec![finding],
    };
    show(&report, arguments, terminal)?;
    Ok(Exit::NoAgent)
}

fn call(heard: &TrialOutput) -> TestCall {
    TestCall {
        way: heard.way,
        command: heard.command.clone(),
        stdin: match heard.stdin {
            StdinSource::Null => "/dev/null",
            StdinSource::PromptFile(_) => "the prompt",
            StdinSource::Screen => "the terminal",
        },
        stdout: match heard.terminal {
            AgentTerminal::Pipe => "pipe",
            AgentTerminal::Pty | AgentTerminal::Screen => "pty",
        },
        end: heard.end,
        seconds: (heard.took.as_secs_f64() * 1000.0).round() / 1000.0,
        stdout_bytes: heard.stdout.len(),
        stderr_bytes: heard.stderr.len(),
        leftovers: heard.swept,
    }
}

/// What will be done, before it is: it may cost something.
fn announcement(agent: &ResolvedAgent, seconds: u64) -> String {
    let more = if agent.adapter() == CUSTOM {
        ", and, if no answer comes, up to twice more in other ways"
    } else {
        ""
    };
    format!(
        "Calling {} once, as `ralph run` would, with a prompt of {} bytes{more}.\nA call may take {seconds} s.\n\n",
        agent.display_name,
        PROMPT.len()
    )
}

fn show(report: &TestReport, arguments: &AgentTestArguments, terminal: &Terminal) -> Result<(), CliError> {
    let text = if arguments.json {
        json(report)
    } else {
        text(report, terminal)
    };
    terminal.print(&text).map_err(CliError::Output)
}

fn text(report: &TestReport, terminal: &Terminal) -> String {
    let cleaned: Vec<Finding> = report
        .findings
        .iter()
        .map(|finding| Finding {
            detail: clean::clean(&finding.detail).into_owned(),
            remedy: finding
                .remedy
                .as_deref()
                .map(|text| clean::clean(text).into_owned()),
            ..finding.clone()
        })
        .collect();
    let sent = match report.calls.len() {
        0 => "nothing was called".to_owned(),
        1 => "the prompt was sent once".to_owned(),
        times => format!("the prompt was sent {times} times"),
    };
    let verdict = match report.verdict {
        Verdict::Works => "works",
        Verdict::Unproven => "may work, but that is not proven",
        Verdict::Broken => "does not work as it is configured",
    };
    format!(
        "{}\n{} {verdict}; {sent}.\n",
        doctor_text(&cleaned, terminal),
        clean::clean(&report.display_name)
    )
}
