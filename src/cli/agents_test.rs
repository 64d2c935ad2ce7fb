//! `ralph agents test`: sends an agent a short prompt and reports whether it works.

use serde::Serialize;

use crate::agent::{self, AgentError, CUSTOM, ResolvedAgent, StdinSource, Terminal as AgentTerminal};
use crate::doctor::{AgentTest, AgentVerdict, Finding, PROMPT, next_call, unusable};
use crate::event::ProcessEnd;
use crate::policy::Seconds;
use crate::run::{CallMode, Host, Trial, TrialError, TrialOutput};
use crate::trust::Consent;
use crate::ui::{Terminal, clean, pretty_json};

use super::args::AgentTestArguments;
use super::common::findings_text;
use super::consent;
use super::context::Context;
use super::error::CliError;
use super::exit::Exit;
use super::transcript_format::resolve_format;

/// The result of the test, as printed with `--json`.
#[derive(Debug, Serialize)]
struct TestReport {
    agent: String,
    display_name: String,
    verdict: AgentVerdict,
    prompt: &'static str,
    calls: Vec<TestCall>,
    findings: Vec<Finding>,
}

/// One call of the agent.
#[derive(Debug, Serialize)]
struct TestCall {
    mode: CallMode,
    command: Vec<String>,
    stdin: &'static str,
    stdout: &'static str,
    /// Absent if the call timed out.
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<ProcessEnd>,
    seconds: f64,
    stdout_bytes: usize,
    stderr_bytes: usize,
    leftovers: u64,
}

pub(super) fn test(
    arguments: &AgentTestArguments,
    terminal: &Terminal,
    host: &Host,
) -> Result<Exit, CliError> {
    let context = Context::here(host)?;
    let mut overrides = arguments.choice.overrides()?;
    overrides.cli.backend = arguments.name.clone().or(overrides.cli.backend);
    let loaded = context.load(overrides, arguments.choice.config.as_ref())?;
    consent::require(&context, &loaded, Consent::of(arguments.choice.trust), terminal)?;
    let probe = context.probe();
    let mut selected = match agent::resolve(&loaded.settings, &probe) {
        Ok(selected) => selected,
        Err(error) => return report_unresolved(&loaded.settings.cli.backend, error, arguments, terminal),
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
        supervisors: host.supervisors().clone(),
        timeout: arguments.timeout.duration(),
        variables: Vec::new(),
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
    while let Some(mode) = next_call(agent, &calls) {
        match trial.call(mode) {
            Ok(output) => calls.push(output),
            Err(error @ (TrialError::Process(_) | TrialError::Start(_))) => {
                let finding = unusable(error.to_string(), None);
                return report_unusable(&agent.name, finding, arguments, terminal);
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
        calls: calls.iter().map(test_call).collect(),
        findings: tested.findings(),
    };
    show(&report, arguments, terminal)?;
    Ok(match report.verdict {
        AgentVerdict::Works => Exit::Success,
        AgentVerdict::Unproven | AgentVerdict::Broken => Exit::Failed,
    })
}

/// Reports a missing program as a finding; other errors are returned.
fn report_unresolved(
    backend: &str,
    error: AgentError,
    arguments: &AgentTestArguments,
    terminal: &Terminal,
) -> Result<Exit, CliError> {
    let error = CliError::Agent(error);
    if error.exit() != Exit::NoAgent {
        return Err(error);
    }
    let hint = error.hints().into_iter().find(|hint| !hint.starts_with(' '));
    let finding = unusable(error.to_string(), hint);
    report_unusable(backend, finding, arguments, terminal)
}

fn report_unusable(
    agent: &str,
    finding: Finding,
    arguments: &AgentTestArguments,
    terminal: &Terminal,
) -> Result<Exit, CliError> {
    let report = TestReport {
        agent: agent.to_owned(),
        display_name: agent.to_owned(),
        verdict: AgentVerdict::Broken,
        prompt: PROMPT,
        calls: Vec::new(),
        findings: vec![finding],
    };
    show(&report, arguments, terminal)?;
    Ok(Exit::NoAgent)
}

fn test_call(output: &TrialOutput) -> TestCall {
    TestCall {
        mode: output.mode,
        command: output.command.clone(),
        stdin: match output.stdin {
            StdinSource::Null => "/dev/null",
            StdinSource::PromptFile(_) => "the prompt",
            StdinSource::Terminal => "the terminal",
            StdinSource::Protocol => "messages",
        },
        stdout: match output.terminal {
            AgentTerminal::Pipe => "pipe",
            AgentTerminal::Pty | AgentTerminal::Interactive => "pty",
        },
        end: output.end,
        seconds: (output.took.as_secs_f64() * 1000.0).round() / 1000.0,
        stdout_bytes: output.stdout.len(),
        stderr_bytes: output.stderr.len(),
        leftovers: output.swept,
    }
}

/// Announces the call before it is made, because it may cost money.
fn announcement(agent: &ResolvedAgent, timeout: Seconds) -> String {
    let more = if agent.adapter() == CUSTOM {
        "; without an answer, up to two more calls follow"
    } else {
        ""
    };
    format!(
        "Calling {} as `ralph run` would, with a prompt of {} bytes{more}.\nTimeout per call: {timeout}.\n\n",
        agent.display_name,
        PROMPT.len()
    )
}

fn show(report: &TestReport, arguments: &AgentTestArguments, terminal: &Terminal) -> Result<(), CliError> {
    let text = if arguments.json {
        pretty_json(report)
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
        0 => "not called".to_owned(),
        1 => "prompt sent once".to_owned(),
        times => format!("prompt sent {times} times"),
    };
    let verdict = match report.verdict {
        AgentVerdict::Works => "works",
        AgentVerdict::Unproven => "inconclusive: it did not give the requested answer",
        AgentVerdict::Broken => "does not work as configured",
    };
    format!(
        "{}\n{}: {verdict} ({sent})\n",
        findings_text(&cleaned, terminal),
        clean::clean(&report.display_name)
    )
}
